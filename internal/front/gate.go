package front

import (
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxBody is what Hermes' API server takes.
	maxBody = 10_000_000
	// bodyPatience is how long a body may take to come.
	bodyPatience = 2 * time.Minute
)

// gate lets users in, each within the limits, and serves a route.
func (f *Front) gate(rt *route) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := &counted{ResponseWriter: plain}
		defer func() {
			f.o.Metrics.FrontCalls.WithLabelValues(w.class()).Inc()
		}()
		if rt.method != http.MethodGet && !f.sameSite(r) {
			refuse(w, http.StatusForbidden, badRequest, "cross_origin", "A page of another origin may not change something here.")
			return
		}
		who, ok := f.known(w, r)
		if !ok {
			return
		}
		end, wait := f.pace.begin(who.id, rt.turn)
		if wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many requests at once: try again shortly.")
			return
		}
		defer end()
		if rt.turn {
			f.o.Metrics.FrontTurns.Inc()
			defer f.o.Metrics.FrontTurns.Dec()
		}
		ctx, done := f.live.begin(r.Context(), who.id, who.login)
		defer done()
		r = r.WithContext(ctx)
		if rt.turn && !f.holds(ctx, who) {
			f.nobody(w, r) // the login ended before this request was among those that end with it
			return
		}
		body, release, ok := f.body(w, r)
		defer release()
		if !ok {
			return
		}
		c := &call{caller: who, route: rt, id: r.PathValue("id"), query: rt.only(r.URL.Query())}
		if rt.fields != nil {
			if c.in, ok = object(body); !ok {
				badJSON(w)
				return
			}
			c.in.keep(rt.fields)
		}
		rt.handle(f, w, r, c)
	})
}

// body reads what was sent, or answers the request. release gives back what it takes of memory.
func (f *Front) body(w http.ResponseWriter, r *http.Request) (body []byte, release func(), ok bool) {
	release = func() {}
	if r.ContentLength == 0 || r.Body == nil {
		return nil, release, true
	}
	size := r.ContentLength
	if size > maxBody {
		tooLarge(w)
		return nil, release, false
	}
	if size < 0 {
		size = maxBody
	}
	if f.held.Add(size) > f.o.Limits.Bodies {
		f.held.Add(-size)
		w.Header().Set("Retry-After", "1")
		refuse(w, http.StatusServiceUnavailable, "server_error", "busy", "Too much is being sent at once: try again shortly.")
		return nil, release, false
	}
	release = func() { f.held.Add(-size) }
	timer := http.NewResponseController(w)
	_ = timer.SetReadDeadline(time.Now().Add(bodyPatience))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	_ = timer.SetReadDeadline(time.Time{})
	if tooMuch := (*http.MaxBytesError)(nil); errors.As(err, &tooMuch) {
		tooLarge(w)
		return nil, release, false
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, badRequest, "", "The request did not arrive whole.")
		return nil, release, false
	}
	return body, release, true
}

func tooLarge(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	refuse(w, http.StatusRequestEntityTooLarge, badRequest, "body_too_large", "Request body too large.")
}

// counted remembers how a request was answered.
type counted struct {
	http.ResponseWriter
	status int
}

// WriteHeader passes the status on.
func (c *counted) WriteHeader(status int) {
	if c.status < 200 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write passes the answer on.
func (c *counted) Write(b []byte) (int, error) {
	if c.status < 200 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap lets an answer be flushed.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) class() string {
	if c.status == 0 {
		return "none"
	}
	return strconv.Itoa(c.status/100) + "xx"
}
