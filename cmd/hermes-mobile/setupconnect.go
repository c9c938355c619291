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
		if w.f.service == "" {
			w.next("start the server", w.serve())
		}
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
	// A connection from before the files were written goes on with what was in them then.
	before, old := since(st, p.ID)
	w.result.Connected = old && !w.result.Written
	_, runs := setup.Running(w.result.Home)
	if !w.result.Connected {
		why := "restart the gateway, so that it reads this"
		switch {
		case old:
			why = "restart the gateway: it is connected with the settings it had before"
		case !runs:
			why = "start the gateway, which is not running"
		}
		w.next(why, p.Restart())
	}
	missing := ""
	switch {
	case w.result.Connected || w.f.wait <= 0:
	case !runs && !old && !w.asking() && !w.cmd.Flags().Changed("wait"): // nobody is there who would start it meanwhile
		missing = "the gateway of Hermes is not running"
	default:
		w.say("Waiting for the gateway, %v at most …", w.f.wait)
		if w.result.Connected = w.await(ctx, client, p.ID, before); w.result.Connected || ctx.Err() != nil {
			break
		}
		missing = "the gateway has not dialled in yet; it tries again by itself, in up to five minutes"
		if old {
			missing = "the gateway was not restarted: it goes on with the settings it had before"
		} else if _, runs := setup.Running(w.result.Home); !runs {
			missing = "the gateway of Hermes is not running"
		}
	}
	if w.result.Connected {
		w.say("The gateway is connected.")
	}
	if ctx.Err() != nil {
		return errors.New("stopped while waiting; what was written stays")
	}
	if err := w.invite(ctx, client); err != nil {
		return err
	}
	if err := w.end(); err != nil || missing == "" {
		return err
	}
	return &hinted{errors.New(missing), "what was written stays; restart the gateway, then see: " + program(w.cmd) + " status"}
}

// invite shows the QR code that pairs a phone.
func (w *wizard) invite(ctx context.Context, client *server.Client) error {
	inv := server.Invitation{}
	if err := client.Post(ctx, "/pair", server.Command{}, &inv); err != nil {
		return err
	}
	w.result.Pair = &inv
	if !w.asJSON {
		showInvitation(w.out, inv)
	}
	return nil
}

// next names a step for the owner.
func (w *wizard) next(what, how string) {
	w.result.Steps = append(w.result.Steps, how)
	w.say("\nNext: %s:\n  %s", what, how)
}

// await waits for a connection that is newer than one that was there before.
func (w *wizard) await(ctx context.Context, client *server.Client, id string, before time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, w.f.wait)
	defer cancel()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		var st server.Status
		if err := client.Get(ctx, "/status", &st); err == nil {
			if now, ok := since(st, id); ok && now.After(before) {
				return true
			}
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

// since is when a gateway connected; ok is false where it is not connected.
func since(st server.Status, id string) (at time.Time, ok bool) {
	if st.Relay != nil {
		for _, g := range st.Relay.Gateways {
			if g.ID == id && g.Online {
				return g.Since, true
			}
		}
	}
	return time.Time{}, false
}
