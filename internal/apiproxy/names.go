package apiproxy

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"

	"hermes-mobile/internal/store"
)

// A session that a client names itself is called u<user>_<name> at the API server. So two users who
// choose the same name have two sessions, and no user can claim the session of a chat that the
// owner of the key, a channel or Hermes itself hasn't begun yet. The user sees only the name, also
// in answers.
//
// The proxy rejects names in the forms that Hermes generates. Otherwise a generated name and a
// user's own name could look the same to the user.

// hermesMade matches the ids that Hermes generates or derives: of days, of the API, of runs and
// answers, of jobs, of background tasks, of rooms, of channels, and UUIDs.
var hermesMade = regexp.MustCompile(`(?is)^(?:\d{8}_\d{6}_|(?:api|chatcmpl|front|sa)[-_]|(?:cron|run|bg|room|resp|preview|task)_|(?:cron_output|agent):|` +
	`[0-9a-f]{32}$|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$)`)

// space returns the prefix of the API server's ids for sessions that a user has named.
func (c caller) space() string { return c.id + "_" }

// resolve returns the API server's id of a session that a client names, and the user's standing:
// own, free (a new session may get the id), or others (it belongs to somebody else, or clients may
// not choose it).
func (f *Proxy) resolve(ctx context.Context, c caller, named string) (id string, is standing, err error) {
	if !sessionID(named) {
		return "", others, nil
	}
	inner := c.space() + named
	for _, id := range []string{named, inner} {
		if owner, err := f.ownerOf(ctx, store.FrontSession, id); err != nil || owner == c.id {
			return id, own, err
		}
	}
	if is, err := f.session(ctx, c, named); err != nil || is == own {
		return named, is, err
	}
	if hermesMade.MatchString(named) || !sessionID(inner) {
		return "", others, nil
	}
	return inner, free, nil
}

// nameForTurn returns the API server's id of a session that a turn names: the user's own, or a new
// one, which becomes the user's. It answers requests with any other name.
func (f *Proxy) nameForTurn(w http.ResponseWriter, r *http.Request, c *call, named string) (id string, may bool) {
	if !sessionID(named) {
		badSessionID(w)
		return "", false
	}
	id, is, err := f.resolve(r.Context(), c.caller, named)
	switch {
	case err != nil:
		f.trouble(w, r, err)
	case is == others:
		refuse(w, http.StatusNotFound, badRequest, "session_not_found", "Session not found: "+named+". "+chooseAnother(named))
	}
	return id, err == nil && is != others
}

// chooseAnother says why a new session can't have a name.
func chooseAnother(named string) string {
	if hermesMade.MatchString(named) {
		return "Hermes generates ids of this form: choose another id for a new session, such as chat-1, or let Hermes generate one."
	}
	return "This id is too long for a new session: choose a shorter one, or let Hermes generate one."
}

// shown replaces the API server's ids of a user's sessions with the names that the user knows.
func (c caller) shown(data []byte) []byte {
	out, rest := unspace(data, []byte(c.space()), 0, true)
	return append(out, rest...)
}

// unspace removes space at the start of texts and words. before is the byte before data. It holds
// back a possible start of space at the end of data, unless that is the last data.
func unspace(data, space []byte, before byte, last bool) (out, rest []byte) {
	for len(space) > 0 {
		at := bytes.Index(data, space)
		if at < 0 {
			break
		}
		if at > 0 {
			before = data[at-1]
		}
		if out == nil {
			out = make([]byte, 0, len(data))
		}
		out = append(out, data[:at]...)
		if before != '"' && before != ' ' { // such as the rest of an escape, \u…
			out = append(out, space...)
		}
		data = data[at+len(space):]
		before = space[len(space)-1]
	}
	if !last {
		for n := min(len(space)-1, len(data)); n > 0; n-- {
			if bytes.HasSuffix(data, space[:n]) {
				data, rest = data[:len(data)-n], data[len(data)-n:]
				break
			}
		}
	}
	if out == nil {
		return data, rest
	}
	return append(out, data...), rest
}

// shownBody rewrites an answer for its user as it arrives.
type shownBody struct {
	io.ReadCloser
	space  []byte
	end    func() // called at the end of the answer
	buf    []byte
	ready  []byte // to be read
	rest   []byte // read but not yet examined
	before byte
	err    error
}

// Read implements io.Reader.
func (b *shownBody) Read(p []byte) (int, error) {
	for len(b.ready) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.buf == nil {
			b.buf = make([]byte, 32<<10)
		}
		kept := copy(b.buf, b.rest)
		var n int
		n, b.err = b.ReadCloser.Read(b.buf[kept:])
		b.ready, b.rest = unspace(b.buf[:kept+n], b.space, b.before, b.err != nil)
		if used := kept + n - len(b.rest); used > 0 {
			b.before = b.buf[used-1]
		}
		if b.err != nil && b.end != nil {
			b.end()
		}
	}
	n := copy(p, b.ready)
	b.ready = b.ready[n:]
	return n, nil
}
