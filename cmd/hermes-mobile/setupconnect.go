package main

import (
	"context"
	"errors"
	"io"
	"time"

	"hermes-mobile/internal/server"
	"hermes-mobile/internal/setup"
)

// What hermes-mobile setup does when all is written: it waits for the gateway, and pairs a phone.

func (w *wizard) end() error { return show(w.cmd, w.result, func(io.Writer) {}) }

// connect waits for the gateway, and shows the QR code.
func (w *wizard) connect(p *setup.Plan) error {
	ctx, client := w.cmd.Context(), server.NewClient(w.cfg.Data)
	var st server.Status
	err := client.Get(ctx, "/status", &st)
	switch {
	case errors.Is(err, server.ErrNotRunning):
		w.next("start the server", program(w.cmd)+" serve")
		w.next("restart the gateway", p.Restart())
		w.next("pair a phone", program(w.cmd)+" pair")
		return w.end()
	case err != nil:
		return err
	case !knows(st, p.ID):
		w.next("restart the server, which does not know this Hermes yet", "end it and start it again: "+program(w.cmd)+" serve")
		w.next("restart the gateway", p.Restart())
		w.next("pair a phone", program(w.cmd)+" pair")
		return w.end()
	}
	if w.result.Connected = online(st, p.ID); !w.result.Connected || w.result.Written {
		w.next("restart the gateway, so that it reads this", p.Restart())
	}
	if !w.result.Connected && w.f.wait > 0 {
		w.say("Waiting for the gateway, %v at most …", w.f.wait)
		w.result.Connected = w.await(ctx, client, p.ID)
		if !w.result.Connected && ctx.Err() == nil {
			w.say("It has not dialled in yet. It tries again by itself, in up to five minutes; see %s status", program(w.cmd))
		}
	}
	if w.result.Connected {
		w.say("The gateway is connected.")
	}
	if ctx.Err() != nil {
		return errors.New("stopped while waiting; what was written stays")
	}
	inv := server.Invitation{}
	if err := client.Post(ctx, "/pair", server.Command{}, &inv); err != nil {
		return err
	}
	w.result.Pair = &inv
	if !w.asJSON {
		showInvitation(w.out, inv)
	}
	return w.end()
}

// next names a step for the owner.
func (w *wizard) next(what, how string) {
	w.result.Steps = append(w.result.Steps, how)
	w.say("\nNext: %s:\n  %s", what, how)
}

func (w *wizard) await(ctx context.Context, client *server.Client, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, w.f.wait)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		var st server.Status
		if err := client.Get(ctx, "/status", &st); err == nil && online(st, id) {
			return true
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
}

// knows reports whether the running server lets a gateway in.
func knows(st server.Status, id string) bool {
	if st.Relay != nil {
		for _, g := range st.Relay.Gateways {
			if g.ID == id {
				return true
			}
		}
	}
	return false
}

func online(st server.Status, id string) bool {
	if st.Relay != nil {
		for _, g := range st.Relay.Gateways {
			if g.ID == id {
				return g.Online
			}
		}
	}
	return false
}
