package main

import (
	"context"
	"errors"
	"io"
	"time"

	"hermes-mobile/internal/server"
	"hermes-mobile/internal/setup"
)

// After it has written the files, hermes-mobile setup waits for the gateway and pairs a phone.

func (w *setupRun) end() error { return show(w.cmd, w.result, func(io.Writer) {}) }

// connect waits for the gateway, then shows the QR code.
func (w *setupRun) connect(p *setup.Plan) error {
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
		w.next("restart the server, which does not know this gateway yet", "stop it, then run: "+program(w.cmd)+" serve")
		w.next("restart the gateway", p.Restart())
		w.next("pair a phone", program(w.cmd)+" pair")
		return w.end()
	}
	// A gateway that connected before setup wrote the files still uses its old settings.
	before, old := since(st, p.ID)
	w.result.Connected = old && !w.result.Written
	_, runs := setup.Running(w.result.Home)
	if !w.result.Connected {
		why := "restart the gateway to load the new settings"
		switch {
		case old:
			why = "restart the gateway, which is connected with its old settings"
		case !runs:
			why = "start the gateway"
		}
		w.next(why, p.Restart())
	}
	missing := ""
	switch {
	case w.result.Connected || w.f.wait <= 0:
	case !runs && !old && !w.asking() && !w.cmd.Flags().Changed("wait"): // nobody would start it meanwhile
		missing = "the Hermes gateway is not running"
	default:
		w.say("Waiting up to %v for the gateway…", w.f.wait)
		if w.result.Connected = w.await(ctx, client, p.ID, before); w.result.Connected || ctx.Err() != nil {
			break
		}
		missing = "the gateway has not connected yet; it retries within five minutes"
		if old {
			missing = "the gateway was not restarted, so it still uses its old settings"
		} else if _, runs := setup.Running(w.result.Home); !runs {
			missing = "the Hermes gateway is not running"
		}
	}
	if w.result.Connected {
		w.say("The gateway is connected.")
	}
	if ctx.Err() != nil {
		return errors.New("stopped while waiting: the changes are in place")
	}
	if err := w.invite(ctx, client); err != nil {
		return err
	}
	if err := w.end(); err != nil || missing == "" {
		return err
	}
	return &hinted{errors.New(missing), "the changes are in place; restart the gateway, then check with: " + program(w.cmd) + " status"}
}

// invite shows the QR code that pairs a phone.
func (w *setupRun) invite(ctx context.Context, client *server.Client) error {
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

// next adds a step for the owner.
func (w *setupRun) next(what, how string) {
	w.result.Steps = append(w.result.Steps, how)
	w.say("\nNext: %s:\n  %s", what, how)
}

// await waits for a connection of the gateway that is newer than before.
func (w *setupRun) await(ctx context.Context, client *server.Client, id string, before time.Time) bool {
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

// knows reports whether the running server accepts a gateway.
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

// since returns when a gateway connected. ok is false if it is offline.
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
