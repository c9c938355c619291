package front

import (
	"encoding/json"
	"net/http"

	"hermes-mobile/internal/store"
)

// startRun is POST /v1/runs.
func (f *Front) startRun(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	in, ok := turnFields(w, body)
	if !ok || !f.chained(w, r, c, in) {
		return
	}
	id, set, ok := in.text("session_id")
	if !ok {
		badSessionID(w)
		return
	}
	if set && !f.namedSession(w, r, c, id) {
		return
	}
	f.forward(w, r, passage{path: "/v1/runs", body: in.body(), caller: c, done: func(resp *http.Response) error {
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
		if err := f.claim(store.FrontRun, run.ID, c.id); err != nil {
			return err
		}
		// Without a session of its own it runs in one that is called like it, or in that of the key.
		session, err := f.sessionOf(r.Context(), run.ID)
		if err != nil || !sessionID(session) {
			return err
		}
		return f.claim(store.FrontSession, session, c.id)
	}})
}

// ownRun passes on what is about an own run.
func (f *Front) ownRun(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	id := r.PathValue("id")
	mine := false
	var err error
	if sessionID(id) {
		mine, err = f.run(r.Context(), c, id)
	}
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case !mine:
		noRun(w, id)
	default:
		f.forward(w, r, passage{path: pathOf("/v1/runs/", id) + below(r, "/v1/runs/"), query: r.URL.RawQuery, body: body, caller: c})
	}
}
