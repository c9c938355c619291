package apiproxy

import (
	"encoding/json"
	"net/http"

	"hermes-mobile/internal/store"
)

// listJobs lists the user's own jobs.
func (f *Proxy) listJobs(w http.ResponseWriter, r *http.Request, c *call) {
	mine, err := f.o.Store.FrontOwned(r.Context(), c.caller.id, store.FrontJob)
	if err != nil {
		f.trouble(w, r, err)
		return
	}
	f.forward(w, r, c.passage(func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return nil
		}
		body, err := whole(resp)
		if err != nil {
			return err
		}
		var all struct{ Jobs []json.RawMessage }
		if err := json.Unmarshal(body, &all); err != nil {
			return err
		}
		list := []json.RawMessage{}
		for _, raw := range all.Jobs {
			var job struct{ ID string }
			if json.Unmarshal(raw, &job) == nil && mine[job.ID] {
				list = append(list, raw)
			}
		}
		body, err = json.Marshal(map[string]any{"jobs": list})
		setBody(resp, body)
		return err
	}))
}

// deliveries are the allowed targets of a job's result: only the user's own session. Chats of
// Telegram and other channels belong to the owner.
var deliveries = []string{"local", "origin"}

// deliversHere reports whether the result of a job goes only to its user. If not, it answers the
// request.
func deliversHere(w http.ResponseWriter, c *call) bool {
	raw, there := c.in["deliver"]
	if !there {
		return true
	}
	var to string
	if json.Unmarshal(raw, &to) == nil {
		for _, allowed := range deliveries {
			if to == allowed {
				return true
			}
		}
	}
	jobFault(w, http.StatusBadRequest, "deliver must be local or origin: jobs of this server's users can't deliver anywhere else")
	return false
}

func (f *Proxy) createJob(w http.ResponseWriter, r *http.Request, c *call) {
	if !deliversHere(w, c) {
		return
	}
	f.forward(w, r, c.passage(func(resp *http.Response) error {
		if resp.StatusCode/100 != 2 {
			return nil
		}
		body, err := whole(resp)
		if err != nil {
			return err
		}
		var made struct{ Job struct{ ID string } }
		if err := json.Unmarshal(body, &made); err != nil {
			return err
		}
		return f.take(store.FrontJob, made.Job.ID, c.caller.id)
	}))
}

func (f *Proxy) updateJob(w http.ResponseWriter, r *http.Request, c *call) {
	if deliversHere(w, c) {
		f.ownJob(w, r, c)
	}
}

// ownJob passes on a request about one of the user's jobs.
func (f *Proxy) ownJob(w http.ResponseWriter, r *http.Request, c *call) {
	owner, err := f.ownerOf(r.Context(), store.FrontJob, c.id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
		return
	case owner != c.caller.id:
		noJob(w)
		return
	}
	f.forward(w, r, c.passage(func(resp *http.Response) error {
		if c.route.method != http.MethodDelete || resp.StatusCode != http.StatusOK {
			return nil
		}
		return f.forget(store.FrontJob, c.id)
	}))
}
