package apiproxy

import (
	"math"
	"net/http"
	"strconv"
)

// gate serves a route to users who are logged in, within their limits.
func (f *Proxy) gate(rt *route) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := &counted{ResponseWriter: plain}
		defer func() {
			f.o.Metrics.FrontCalls.WithLabelValues(w.class()).Inc()
		}()
		if _, key := bearer(r); !key && rt.method != http.MethodGet && !f.logins.sameSite(r) {
			refuse(w, http.StatusForbidden, badRequest, "cross_origin", "Pages of another origin may not make changes here.")
			return
		}
		who, ok := f.logins.known(w, r)
		if !ok {
			return
		}
		end, wait := f.pace.begin(who.id, rt.turn)
		if wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			refuse(w, http.StatusTooManyRequests, "rate_limit_error", "rate_limit_exceeded", "Too many requests. Try again shortly.")
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
		if rt.turn && !f.logins.holds(ctx, who) {
			f.logins.nobody(w, r) // the login ended before this request was registered with it
			return
		}
		if rt.job && !f.hasJob(ctx, rt) {
			jobFault(w, http.StatusNotFound, "Scheduled jobs are off: Hermes doesn't advertise them, and the owner hasn't allowed them (MOBILE_API_JOBS)")
			return
		}
		b, ok := f.readBody(w, r, who.id)
		if !ok {
			return
		}
		defer b.release()
		c := &call{caller: who, route: rt, id: r.PathValue("id"), query: rt.only(r.URL.Query()), sent: b.release}
		if rt.fields == nil {
			b.release() // the route has no body
		} else {
			if c.in, ok = object(b.data); !ok {
				badJSON(w)
				return
			}
			b.data = nil // the fields have it now
			c.in.keep(rt.fields)
		}
		rt.handle(f, w, r, c)
	})
}

// counted records the status of an answer.
type counted struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (c *counted) WriteHeader(status int) {
	if c.status < 200 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *counted) Write(b []byte) (int, error) {
	if c.status < 200 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap implements the interface of http.ResponseController.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *counted) class() string {
	if c.status == 0 {
		return "none"
	}
	return strconv.Itoa(c.status/100) + "xx"
}
