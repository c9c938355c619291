package front

import (
	"encoding/json"
	"net/http"

	"hermes-mobile/internal/store"
)

// listJobs shows the user's own jobs.
func (f *Front) listJobs(w http.ResponseWriter, r *http.Request, c caller, _ []byte) {
	mine, err := f.o.Store.FrontOwned(r.Context(), c.id, store.FrontJob)
	if err != nil {
		f.trouble(w, r, err)
		return
	}
	f.forward(w, r, passage{path: "/api/jobs", query: r.URL.RawQuery, caller: c, done: func(resp *http.Response) error {
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
	}})
}

func (f *Front) createJob(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	f.forward(w, r, passage{path: "/api/jobs", body: body, caller: c, done: func(resp *http.Response) error {
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
		return f.take(store.FrontJob, made.Job.ID, c.id)
	}})
}

// ownJob passes on what is about an own job.
func (f *Front) ownJob(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	id := r.PathValue("id")
	owner, err := f.ownerOf(r.Context(), store.FrontJob, id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
		return
	case owner != c.id:
		noJob(w)
		return
	}
	f.forward(w, r, passage{path: pathOf("/api/jobs/", id) + below(r, "/api/jobs/"), query: r.URL.RawQuery, body: body, caller: c, done: func(resp *http.Response) error {
		if r.Method != http.MethodDelete || resp.StatusCode != http.StatusOK {
			return nil
		}
		return f.forget(store.FrontJob, id)
	}})
}
