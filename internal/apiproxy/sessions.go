package apiproxy

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"hermes-mobile/internal/store"
)

// pass passes on a request as it is.
func (f *Proxy) pass(w http.ResponseWriter, r *http.Request, c *call) {
	f.forward(w, r, c.passage(nil))
}

// findSession reports whether the session in a path belongs to the user. If so, the call gets the
// API server's id of it. If not, it answers the request.
func (f *Proxy) findSession(w http.ResponseWriter, r *http.Request, c *call) bool {
	named := c.id
	id, is, err := f.resolve(r.Context(), c.caller, named)
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case is != own:
		noSession(w, named)
	default:
		c.id = id
		return true
	}
	return false
}

// ownSession passes on a request about one of the user's sessions.
func (f *Proxy) ownSession(w http.ResponseWriter, r *http.Request, c *call) {
	if f.findSession(w, r, c) {
		f.forward(w, r, c.passage(nil))
	}
}

func (f *Proxy) deleteSession(w http.ResponseWriter, r *http.Request, c *call) {
	if !f.findSession(w, r, c) {
		return
	}
	f.forward(w, r, c.passage(func(resp *http.Response) error {
		if resp.StatusCode != http.StatusOK {
			return nil
		}
		return f.forget(store.FrontSession, c.id)
	}))
}

func (f *Proxy) createSession(w http.ResponseWriter, r *http.Request, c *call) { f.make(w, r, c) }

func (f *Proxy) forkSession(w http.ResponseWriter, r *http.Request, c *call) {
	if f.findSession(w, r, c) {
		f.make(w, r, c)
	}
}

// make passes on a request that creates a session, and records its owner.
func (f *Proxy) make(w http.ResponseWriter, r *http.Request, c *call) {
	if !f.nameNew(w, r, c) {
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
		var s struct{ Session struct{ ID string } }
		if err := json.Unmarshal(body, &s); err != nil {
			return err
		}
		return f.take(store.FrontSession, s.Session.ID, c.caller.id)
	}))
}

// nameNew replaces the id that a request gives a new session by one that only this user can have.
// It answers requests with an invalid id.
func (f *Proxy) nameNew(w http.ResponseWriter, r *http.Request, c *call) bool {
	named := ""
	for _, field := range []string{"session_id", "id"} { // the API server prefers the second
		text, set, ok := c.in.text(field)
		if !ok || set && !sessionID(text) {
			badSessionID(w)
			return false
		}
		if set {
			named = text
		}
		delete(c.in, field)
	}
	if named == "" {
		return true
	}
	id, is, err := f.resolve(r.Context(), c.caller, named)
	switch {
	case err != nil:
		f.trouble(w, r, err)
		return false
	case is == others:
		refuse(w, http.StatusBadRequest, badRequest, "invalid_session_id", chooseAnother(named))
		return false
	}
	c.in.set("id", id) // the API server reports one that exists
	return true
}

const (
	pageDefault = 50
	pageMax     = 200
	// maxPages bounds how far a list is read.
	maxPages = 500
)

// row has the fields of a listed session that decide its owner.
type row struct {
	ID     string
	Parent string `json:"parent_session_id"`
}

// listSessions reads the API server's list as far as it must, and returns the user's own sessions.
func (f *Proxy) listSessions(w http.ResponseWriter, r *http.Request, c *call) {
	query, _ := url.ParseQuery(c.query)
	number := func(name string, or, top int) int {
		n, err := strconv.Atoi(query.Get(name))
		if err != nil || n < 0 || name == "limit" && n == 0 {
			return or
		}
		return min(n, top)
	}
	limit, offset := number("limit", pageDefault, pageMax), number("offset", 0, 1_000_000)
	mine, err := f.o.Store.FrontOwned(r.Context(), c.caller.id, store.FrontSession)
	if err != nil {
		f.trouble(w, r, err)
		return
	}
	list := []json.RawMessage{}
	seen := map[string]bool{}
	query.Set("limit", strconv.Itoa(pageMax))
	for page := 0; page < maxPages && len(list) <= offset+limit && len(mine) > 0; page++ {
		query.Set("offset", strconv.Itoa(page*pageMax))
		var got struct {
			Data []json.RawMessage
			More bool `json:"has_more"`
		}
		status, err := f.ask(r.Context(), "/api/sessions", query.Encode(), &got)
		if err != nil {
			f.trouble(w, r, err)
			return
		}
		if status != http.StatusOK {
			refuse(w, status, badRequest, "", "The API server rejects this list request.")
			return
		}
		for _, raw := range got.Data {
			var s row
			if json.Unmarshal(raw, &s) != nil || seen[s.ID] {
				continue
			}
			seen[s.ID] = true
			if !mine[s.ID] && !(mine[s.Parent] && f.inherited(r, c, s.ID)) {
				continue
			}
			mine[s.ID] = true
			list = append(list, c.shown(raw))
		}
		if !got.More {
			break
		}
	}
	more := len(list) > offset+limit
	if more {
		list = list[:offset+limit]
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list[min(offset, len(list)):], "limit": limit, "offset": offset, "has_more": more})
}

// inherited reports whether a session derived from the user's own also belongs to the user.
func (f *Proxy) inherited(r *http.Request, c *call, id string) bool {
	is, err := f.session(r.Context(), c.caller, id)
	return err == nil && is == own
}

// fields are the fields of a JSON object.
type fields map[string]json.RawMessage

func object(body []byte) (fields, bool) {
	var f fields
	return f, json.Unmarshal(body, &f) == nil && f != nil
}

// keep drops all fields but the named ones.
func (f fields) keep(names []string) {
	for name := range f {
		if !slices.Contains(names, name) {
			delete(f, name)
		}
	}
}

// set sets a field to a text.
func (f fields) set(name, value string) { f[name], _ = json.Marshal(value) }

// text returns a text field. A field that is null or empty isn't set, as for the API server.
func (f fields) text(name string) (value string, set, ok bool) {
	raw, there := f[name]
	if !there || string(raw) == "null" {
		return "", false, true
	}
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &value) != nil {
		return "", true, false
	}
	return value, value != "", true
}

// body encodes the fields, each once: of two fields with the same name, the API server must not see
// another than we checked.
func (f fields) body() []byte {
	b, _ := json.Marshal(f) // never fails: the values are valid JSON
	return b
}
