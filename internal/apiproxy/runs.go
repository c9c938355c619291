package apiproxy

import (
	"encoding/json"
	"net/http"

	"hermes-mobile/internal/store"
)

// startRun serves POST /v1/runs.
func (f *Proxy) startRun(w http.ResponseWriter, r *http.Request, c *call) {
	if !f.chained(w, r, c) {
		return
	}
	named, set, ok := c.in.text("session_id")
	if !ok {
		badSessionID(w)
		return
	}
	if set {
		id, may := f.nameForTurn(w, r, c, named)
		if !may {
			return
		}
		c.in.set("session_id", id)
	}
	f.forward(w, r, c.passage(func(resp *http.Response) error {
		if resp.StatusCode/100 != 2 {
			return nil
		}
		body, err := whole(resp)
		if err != nil {
			return err
		}
		var run struct {
			ID string `json:"run_id"`
		}
		if err := json.Unmarshal(body, &run); err != nil {
			return err
		}
		if err := f.claim(store.FrontRun, run.ID, c.caller.id); err != nil {
			return err
		}
		// Without a session of its own, a run uses one with its own id, or that of the key.
		session, err := f.sessionOf(r.Context(), run.ID)
		if err != nil || !sessionID(session) {
			return err
		}
		return f.claim(store.FrontSession, session, c.caller.id)
	}))
}

// ownRun passes on a request about one of the user's runs.
func (f *Proxy) ownRun(w http.ResponseWriter, r *http.Request, c *call) {
	mine := false
	var err error
	if sessionID(c.id) {
		mine, err = f.run(r.Context(), c.caller, c.id)
	}
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case !mine:
		noRun(w, c.id)
	default:
		f.forward(w, r, c.passage(nil))
	}
}
