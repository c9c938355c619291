package apiproxy

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"

	"hermes-mobile/internal/store"
)

// complete serves POST /v1/chat/completions.
func (f *Proxy) complete(w http.ResponseWriter, r *http.Request, c *call) {
	named := strings.TrimSpace(r.Header.Get(sessionIDHeader))
	var id string
	if named == "" {
		c.in.mark(c.caller)
	} else {
		var may bool
		if id, may = f.nameForTurn(w, r, c, named); !may {
			return
		}
	}
	p := c.passage(f.began(c.caller, store.APIRun))
	p.sessionID = id
	f.forward(w, r, p)
}

// mark adds the user's id to the conversation. Without a session Hermes derives its id from the
// first words, and two users who begin with the same words would share a session.
func (f fields) mark(c caller) {
	var list []json.RawMessage
	if json.Unmarshal(f["messages"], &list) != nil || len(list) == 0 {
		return // the API server will reject it
	}
	first, _ := json.Marshal(map[string]string{"role": "system", "content": "(user " + c.id + ")"})
	f["messages"], _ = json.Marshal(append([]json.RawMessage{first}, list...))
}

// respond serves POST /v1/responses.
func (f *Proxy) respond(w http.ResponseWriter, r *http.Request, c *call) {
	if !f.chained(w, r, c) {
		return
	}
	name, set, ok := c.in.text("conversation")
	if !ok {
		refuse(w, http.StatusBadRequest, badRequest, "", "'conversation' must be a string")
		return
	}
	if set {
		c.in.set("conversation", c.own(name))
	}
	f.forward(w, r, c.passage(f.began(c.caller, store.APIResponse)))
}

// chained reports whether the response that a request continues belongs to the user. If not, it
// answers the request.
func (f *Proxy) chained(w http.ResponseWriter, r *http.Request, c *call) bool {
	id, set, ok := c.in.text("previous_response_id")
	if !ok {
		refuse(w, http.StatusBadRequest, badRequest, "", "'previous_response_id' must be a string")
		return false
	}
	if !set {
		return true
	}
	owner, err := f.ownerOf(r.Context(), store.APIResponse, id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case owner != c.caller.id:
		refuse(w, http.StatusNotFound, badRequest, "", "Previous response not found: "+id)
	}
	return err == nil && owner == c.caller.id
}

// ownResponse passes on a request about one of the user's responses.
func (f *Proxy) ownResponse(w http.ResponseWriter, r *http.Request, c *call) {
	owner, err := f.ownerOf(r.Context(), store.APIResponse, c.id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
		return
	case owner != c.caller.id:
		noResponse(w, c.id)
		return
	}
	f.forward(w, r, c.passage(func(resp *http.Response) error {
		if c.route.method != http.MethodDelete || resp.StatusCode != http.StatusOK {
			return nil
		}
		return f.forget(store.APIResponse, c.id)
	}))
}

// began records that the session of a turn, and the id of its answer, belong to the user.
func (f *Proxy) began(c caller, kind string) func(*http.Response) error {
	return func(resp *http.Response) error {
		if id := resp.Header.Get(sessionIDHeader); sessionID(id) {
			if err := f.claim(store.APISession, id, c.id); err != nil {
				return err
			}
		}
		if resp.StatusCode/100 == 2 {
			resp.Body = &named{ReadCloser: resp.Body, found: func(id string) error { return f.claim(kind, id, c.id) }}
		}
		return nil
	}
}

// answerName matches the id of an answer, which is near its beginning. Quotes within a text are
// escaped, so no text looks like it.
var answerName = regexp.MustCompile(`"id": ?"((?:chatcmpl-|resp_)[A-Za-z0-9_-]{8,100})"`)

// maxHead is how much of an answer is searched for its id.
const maxHead = 64 << 10

// named reads an answer and reports its id before the client sees it.
type named struct {
	io.ReadCloser
	found func(id string) error
	head  []byte
	done  bool
}

// Read implements io.Reader.
func (n *named) Read(p []byte) (int, error) {
	got, err := n.ReadCloser.Read(p)
	if n.done || got == 0 {
		return got, err
	}
	n.head = append(n.head, p[:got]...)
	m := answerName.FindSubmatch(n.head)
	if m == nil && len(n.head) < maxHead {
		return got, err
	}
	n.done, n.head = true, nil
	if m != nil {
		if e := n.found(string(m[1])); e != nil {
			return 0, e
		}
	}
	return got, err
}
