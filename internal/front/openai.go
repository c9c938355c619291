package front

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"

	"hermes-mobile/internal/store"
)

// Fields by which a body would do more than a turn. They are of parts of Hermes that are not offered here.
var notOffered = []string{"hosted_room_dispatch", "_room_execution_policy", "hermes_notification_category"}

func turnFields(w http.ResponseWriter, body []byte) (fields, bool) {
	in, ok := object(body)
	if !ok {
		badJSON(w)
		return nil, false
	}
	for _, name := range notOffered {
		delete(in, name)
	}
	return in, true
}

// namedSession returns the session that a header names, and reports whether the user may use it; if not it has answered.
func (f *Front) namedSession(w http.ResponseWriter, r *http.Request, c caller, id string) bool {
	if !sessionID(id) {
		badSessionID(w)
		return false
	}
	may, err := f.mayUse(r.Context(), c, id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case !may:
		noSession(w, id)
	}
	return may && err == nil
}

// complete is POST /v1/chat/completions.
func (f *Front) complete(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	in, ok := turnFields(w, body)
	if !ok {
		return
	}
	p := passage{path: "/v1/chat/completions", caller: c, sessionID: strings.TrimSpace(r.Header.Get(sessionIDHeader)), done: f.began(c, store.FrontRun)}
	switch {
	case p.sessionID != "":
		if !f.namedSession(w, r, c, p.sessionID) {
			return
		}
	default:
		in.mark(c)
	}
	p.body = in.body()
	f.forward(w, r, p)
}

// mark puts the user's id before the conversation. Without a session Hermes makes its id out of the first words, and two
// users who begin with the same would share one.
func (f fields) mark(c caller) {
	var list []json.RawMessage
	if json.Unmarshal(f["messages"], &list) != nil || len(list) == 0 {
		return // it will be refused
	}
	first, _ := json.Marshal(map[string]string{"role": "system", "content": "(user " + c.id + ")"})
	f["messages"], _ = json.Marshal(append([]json.RawMessage{first}, list...))
}

// respond is POST /v1/responses.
func (f *Front) respond(w http.ResponseWriter, r *http.Request, c caller, body []byte) {
	in, ok := turnFields(w, body)
	if !ok || !f.chained(w, r, c, in) {
		return
	}
	name, set, ok := in.text("conversation")
	if !ok {
		refuse(w, http.StatusBadRequest, badRequest, "", "'conversation' must be a string")
		return
	}
	if set {
		in["conversation"], _ = json.Marshal(c.own(name))
	}
	f.forward(w, r, passage{path: "/v1/responses", body: in.body(), caller: c, done: f.began(c, store.FrontResponse)})
}

// chained reports whether the response that a body goes on from is the user's; if not it has answered.
func (f *Front) chained(w http.ResponseWriter, r *http.Request, c caller, in fields) bool {
	id, set, ok := in.text("previous_response_id")
	if !ok {
		refuse(w, http.StatusBadRequest, badRequest, "", "'previous_response_id' must be a string")
		return false
	}
	if !set {
		return true
	}
	owner, err := f.ownerOf(r.Context(), store.FrontResponse, id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case owner != c.id:
		refuse(w, http.StatusNotFound, badRequest, "", "Previous response not found: "+id)
	}
	return err == nil && owner == c.id
}

// ownResponse passes on what is about an own response.
func (f *Front) ownResponse(w http.ResponseWriter, r *http.Request, c caller, _ []byte) {
	id := r.PathValue("id")
	owner, err := f.ownerOf(r.Context(), store.FrontResponse, id)
	switch {
	case err != nil:
		f.trouble(w, r, err)
		return
	case owner != c.id:
		noResponse(w, id)
		return
	}
	f.forward(w, r, passage{path: pathOf("/v1/responses/", id), query: r.URL.RawQuery, caller: c, done: func(resp *http.Response) error {
		if r.Method != http.MethodDelete || resp.StatusCode != http.StatusOK {
			return nil
		}
		return f.forget(store.FrontResponse, id)
	}})
}

// began notes that the session of a turn, and what its answer is called by, are the user's.
func (f *Front) began(c caller, kind string) func(*http.Response) error {
	return func(resp *http.Response) error {
		if id := resp.Header.Get(sessionIDHeader); sessionID(id) {
			if err := f.claim(store.FrontSession, id, c.id); err != nil {
				return err
			}
		}
		if resp.StatusCode/100 == 2 {
			resp.Body = &named{ReadCloser: resp.Body, found: func(id string) error { return f.claim(kind, id, c.id) }}
		}
		return nil
	}
}

// answerName is what an answer is called by: it stands near its beginning. Quotes within a text are escaped, so that no text
// looks like it.
var answerName = regexp.MustCompile(`"id": ?"((?:chatcmpl-|resp_)[A-Za-z0-9_-]{8,100})"`)

// maxHead is how much of an answer is searched for its name.
const maxHead = 64 << 10

// named reads an answer and says what it is called by, before anybody else sees that.
type named struct {
	io.ReadCloser
	found func(id string) error
	head  []byte
	done  bool
}

// Read returns what comes next.
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
