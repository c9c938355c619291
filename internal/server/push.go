package server

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/push"
)

// openPush makes what sends notifications, unless they are off. Without them the server works all the same, so what is
// wrong with them does not keep it from starting.
func (s *Server) openPush() {
	subject, why := s.cfg.PushSubject()
	if subject == "" {
		if s.cfg.Push != "off" {
			s.pushOff = why
			s.log.Info("devices that are away are not notified", "why", why)
		}
		return
	}
	keys, err := push.OpenKeys(s.cfg.Data)
	if err != nil {
		s.pushOff = err.Error()
		s.log.Error("devices that are away are not notified", "why", err)
		return
	}
	s.push = push.NewSender(push.Options{Keys: keys, Subject: subject, Hosts: s.cfg.PushHosts})
}

// pushKey signs the tokens by which notifications answer cards; nil: they may not.
func (s *Server) pushKey() []byte {
	if s.push == nil || !s.cfg.PushActions {
		return nil
	}
	return s.linkKey[:] // its other use signs another kind of text
}

// pushActionPath is where a notification's button is answered.
const pushActionPath = "/push/action"

const maxAction = 4 << 10

// actionAnswer is what the button is told.
type actionAnswer struct {
	Done     bool   `json:"done"` // by this request
	OptionID string `json:"option_id,omitempty"`
	Message  string `json:"message,omitempty"`
}

// pushAction decides a card by the token of a notification. The token is all that counts: there are no cookies, and pages
// of other origins are turned away.
func (s *Server) pushAction(w http.ResponseWriter, r *http.Request) {
	addr, _ := access.Client(r, s.proxies)
	if !access.OriginAllowed(r, s.origins) {
		s.turnAway(w, addr, http.StatusForbidden, "a page of an origin that is not listed", "Pages of this origin may not answer questions: the owner can list it in MOBILE_ALLOWED_ORIGINS.")
		return
	}
	if after, blocked := s.guard.Blocked(addr); blocked {
		w.Header().Set("Retry-After", strconv.Itoa(int(after.Seconds())+1))
		s.turnAway(w, addr, http.StatusTooManyRequests, "too many wrong tokens", "Too many wrong tokens came from this address: wait before the next try.")
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		answerAction(w, http.StatusUnsupportedMediaType, actionAnswer{Message: "Send JSON, as application/json."})
		return
	}
	var body struct {
		Token string `json:"token"`
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAction))
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil || body.Token == "" {
		answerAction(w, http.StatusBadRequest, actionAnswer{Message: `Send an object with the "token" of the button.`})
		return
	}
	outcome, err := s.hub.Act(r.Context(), body.Token)
	switch {
	case errors.Is(err, notify.ErrForged):
		s.guard.Wrong(addr)
		answerAction(w, http.StatusForbidden, actionAnswer{Message: spoken(err)})
	case errors.Is(err, notify.ErrRejected), errors.Is(err, notify.ErrCut), errors.Is(err, notify.ErrTooNew):
		answerAction(w, http.StatusForbidden, actionAnswer{Message: spoken(err)})
	case errors.Is(err, notify.ErrExpired):
		answerAction(w, http.StatusGone, actionAnswer{Message: spoken(err)})
	case err != nil:
		answerAction(w, http.StatusServiceUnavailable, actionAnswer{Message: "The server cannot use its store now, nothing was decided: try again."})
	case outcome.Expired:
		answerAction(w, http.StatusGone, actionAnswer{OptionID: outcome.OptionID, Message: "Nobody answered in time, so this was decided: " + outcome.OptionID + "."})
	case outcome.Before:
		answerAction(w, http.StatusConflict, actionAnswer{OptionID: outcome.OptionID, Message: "This was decided already: " + outcome.OptionID + "."})
	default:
		answerAction(w, http.StatusOK, actionAnswer{Done: true, OptionID: outcome.OptionID})
	}
}

// spoken makes an error a sentence.
func spoken(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func answerAction(w http.ResponseWriter, status int, a actionAnswer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}
