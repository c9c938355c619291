package direct

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"hermes-mobile/gateway"
)

// start starts the turn at the gateway, or resumes the one from before a restart.
func (t *turn) start() (*gateway.Turn, error) {
	known, err := t.agent.memory.get(t.startCtx, t.in.Device)
	if err != nil {
		return nil, err
	}
	images, beside, err := t.attachment()
	if err != nil {
		return nil, err
	}
	caps := t.agent.capabilities()
	keyed := len(images) == 0 && caps.Feature("runs_idempotency") // started again with its key, it is the same run
	t.resumed, t.model, t.provider = false, known.Model, known.Provider
	b := known.Turn
	if b != nil && b.N != t.in.N {
		b = nil
	}
	key := fmt.Sprintf("hermes-mobile-%s-%d", t.agent.Instance, t.in.N)
	if b != nil && b.Tries > 0 {
		key = fmt.Sprintf("%s-%d", key, b.Tries) // the previous key would return the failed run
		if b.Handle == nil && !t.pause(t.startCtx, busyWait) {
			return nil, t.startCtx.Err()
		}
	}
	switch {
	case b == nil && t.in.Handed && (!keyed || t.in.Steer): // an addition to another turn has no run of its own
		return nil, errLost // its stored state is lost
	case b == nil || b.Handle == nil:
	case b.Handle.RunID != "" || b.Handle.Mode != gateway.ModeRun || !keyed:
		t.resumed = true
		return t.resume(*b.Handle)
	default:
		known.Session, t.model, t.provider = b.Handle.SessionID, b.Model, b.Provider
	}
	if t.model == "" && !hasSessions(caps) {
		t.model = t.agent.defaultModel()
	}
	req := gateway.TurnRequest{Text: t.text(beside), Images: images, Model: t.model, Provider: t.provider,
		IdempotencyKey: key, OutcomeTimeout: t.agent.OutcomeTimeout, OnHandle: t.remember}
	if caps.Offers("session_create") {
		if req.SessionID, err = t.agent.session(t.startCtx, t.in.Device, known); err != nil {
			return nil, err
		}
	} else {
		req.History, req.PreviousResponseID = known.History, known.Response
	}
	running, err := t.request(req, keyed)
	var refused *gateway.Error
	if errors.As(err, &refused) && refused.Code == "idempotency_key_conflict" {
		// It was started, with other contents than are known now.
		if b == nil || b.Handle == nil {
			return nil, errLost
		}
		t.remember(*b.Handle)
		return t.resume(*b.Handle)
	}
	return running, err
}

// resume resumes a turn by its handle.
func (t *turn) resume(l gateway.TurnHandle) (*gateway.Turn, error) {
	t.mu.Lock()
	t.handle = &l
	t.mu.Unlock()
	t.session = l.SessionID
	return t.agent.Client.ResumeTurn(t.ctx, l, "")
}

// request asks the gateway to start a turn, and retries while the gateway is at its turn limit.
func (t *turn) request(req gateway.TurnRequest, keyed bool) (*gateway.Turn, error) {
	var waiting busyQueue
	defer func() { waiting.over(t.agent) }()
	for fresh := false; ; {
		t.session = req.SessionID
		running, err := t.begin(req)
		if err == nil {
			t.agent.setCredentialErr(nil)
			return running, nil
		}
		var refused *gateway.Error
		switch answered := errors.As(err, &refused); {
		case answered && refused.Status == http.StatusNotFound && (refused.Code == "" || refused.Code == "session_not_found") && req.SessionID != "" && !fresh:
			// The session was deleted elsewhere.
			t.refused()
			fresh = true
			if req.SessionID, err = t.agent.newSession(t.startCtx, t.in.Device, ""); err != nil {
				return nil, err
			}
		case answered && busy(refused):
			// The gateway is full or about to stop: the message waits, as it does while the agent
			// is offline.
			t.refused()
			if goOn, why := waiting.wait(t, refused); !goOn {
				return nil, why
			}
		case answered && refused.Code != "idempotency_key_conflict":
			t.refused()
			return nil, err
		case errors.Is(err, context.DeadlineExceeded) && t.startCtx.Err() == nil:
			// Either the turns before it take long, or the gateway did not answer in time.
			if l := t.uncertainHandle(); l != nil && !keyed {
				return t.resume(*l)
			}
		default:
			return nil, err
		}
	}
}

func (t *turn) begin(req gateway.TurnRequest) (*gateway.Turn, error) {
	ctx, cancel := context.WithTimeout(t.startCtx, startLimit)
	defer cancel()
	return t.agent.Client.StartTurn(ctx, req)
}

// uncertainHandle returns the handle of a request whose result is unknown.
func (t *turn) uncertainHandle() *gateway.TurnHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.handle
}

// refused records that the gateway does not have the turn.
func (t *turn) refused() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.handle = nil
	if t.stopped {
		t.cancelStart()
	}
}
