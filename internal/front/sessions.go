package front

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"hermes-mobile/internal/store"
)

// pass sends a request on as it is.
func (f *Front) pass(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	f.forward(w, r, passage{path: r.URL.EscapedPath(), query: r.URL.RawQuery, body: body, caller: c})
}

// below is what stands in a path behind the id.
func below(r *http.Request, prefix string) string {
	path := r.URL.EscapedPath()[len(prefix):]
	for i := range path {
		if path[i] == '/' {
			return path[i:]
		}
	}
	return ""
}

// withSession calls next where the session that a path names is the user's.
func (f *Front) withSession(w http.ResponseWriter, r *http.Request, c caller, next func(path string)) {
	id := r.PathValue("id")
	is := others
	var err error
	if sessionID(id) {
		is, err = f.session(r.Context(), c, id)
	}
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case is != own:
		noSession(w, id)
	default:
		next(sessionPath(id) + below(r, "/api/sessions/"))
	}
}

// ownSession passes on what is about an own session.
func (f *Front) ownSession(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	f.withSession(w, r, c, func(path string) {
		f.forward(w, r, passage{path: path, query: r.URL.RawQuery, body: body, caller: c})
	})
}

func (f *Front) deleteSession(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	f.withSession(w, r, c, func(path string) {
		f.forward(w, r, passage{path: path, query: r.URL.RawQuery, body: body, caller: c, done: func(resp *http.Response) error {
			if resp.StatusCode != http.StatusOK {
				return nil
			}
			return f.forget(store.FrontSession, r.PathValue("id"))
		}})
	})
}

// make sends on what makes a session, and notes that the session is the user's. An id that the body gives is the user's before
// Hermes hears of it: nobody else can have it in between.
func (f *Front) make(w http.ResponseWriter, r *http.Request, c caller, path string, body []byte) {
	in, id, ok := newSessionID(w, body)
	if !ok {
		return
	}
	claimed := false
	if id != "" {
		is, err := f.session(r.Context(), c, id)
		if err == nil && is == free {
			claimed, err = f.first(r.Context(), c, id)
			if claimed {
				is = own
			}
		}
		switch {
		case err != nil:
			f.trouble(w, r, err)
			return
		case is != own:
			refuse(w, http.StatusConflict, badRequest, "session_exists", "Session already exists: "+id)
			return
		}
	}
	f.forward(w, r, passage{path: path, body: in.body(), caller: c, done: func(resp *http.Response) error {
		if resp.StatusCode/100 != 2 {
			if claimed {
				return f.forget(store.FrontSession, id)
			}
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
		return f.take(store.FrontSession, s.Session.ID, c.id)
	}})
}

// newSessionID returns the id that a body gives a new session, if it gives one; a wrong one it has answered.
func newSessionID(w http.ResponseWriter, body []byte) (in fields, id string, ok bool) {
	if in, ok = object(body); !ok {
		badJSON(w)
		return nil, "", false
	}
	for _, name := range []string{"session_id", "id"} { // of both the API server takes the second
		text, set, ok := in.text(name)
		if !ok || set && !sessionID(text) {
			badSessionID(w)
			return nil, "", false
		}
		if set {
			id = text
		}
	}
	return in, id, true
}

func (f *Front) createSession(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	f.make(w, r, c, "/api/sessions", body)
}

func (f *Front) forkSession(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	f.withSession(w, r, c, func(path string) { f.make(w, r, c, path, body) })
}

const (
	pageDefault = 50
	pageMax     = 200
	// maxPages bounds how far a list is read.
	maxPages = 500
)

// row is what has to be known of a row of the list of sessions.
type row struct {
	ID     string
	Parent string `json:"parent_session_id"`
}

// listSessions reads the API server's list as far as it must, and shows the user's own of it.
func (f *Front) listSessions(w http.ResponseWriter, r *http.Request, c caller, _ []byte) {
	query := r.URL.Query()
	number := func(name string, or, top int) int {
		n, err := strconv.Atoi(query.Get(name))
		if err != nil || n < 0 || name == "limit" && n == 0 {
			return or
		}
		return min(n, top)
	}
	limit, offset := number("limit", pageDefault, pageMax), number("offset", 0, 1_000_000)
	mine, err := f.o.Store.FrontOwned(r.Context(), c.id, store.FrontSession)
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
			refuse(w, status, badRequest, "", "The API server does not list sessions so.")
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
			list = append(list, raw)
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

// inherited reports whether a session that came out of an own one is the user's, too.
func (f *Front) inherited(r *http.Request, c caller, id string) bool {
	is, err := f.session(r.Context(), c, id)
	return err == nil && is == own
}

// fields are those of an object in JSON.
type fields map[string]json.RawMessage

func object(body []byte) (fields, bool) {
	var f fields
	return f, json.Unmarshal(body, &f) == nil && f != nil
}

// text returns a field that is a text. One that is null or empty is not set, as for the API server.
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

// body writes the fields, each once: of two with the same name the API server must not see another than was checked.
func (f fields) body() []byte {
	b, _ := json.Marshal(f) // of raw JSON that was read
	return b
}

func pathOf(kind, id string) string { return kind + url.PathEscape(id) }
