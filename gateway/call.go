package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// do calls an advertised operation on the route in use. A GET that fails in a way that puts the
// route in doubt is repeated once on a newly selected route. Calls that change something are never
// repeated.
func (c *Client) do(ctx context.Context, operation string, vars []string, query url.Values, body, out any) error {
	for again := false; ; again = true {
		cn, err := c.connected(ctx)
		if err != nil {
			return err
		}
		req, err := cn.request(ctx, operation, vars, query, body)
		if err != nil {
			return err
		}
		err = cn.call(req, out)
		if !blamesRoute(err) {
			return err
		}
		c.dropRoute(cn, err)
		if again || req.Method != http.MethodGet || ctx.Err() != nil || errors.Is(err, ErrSignIn) {
			return err
		}
	}
}

// jsonTime is a time as the gateway sends it: seconds as a float (doc/hermes/api.md §12.11), or an
// RFC 3339 string. null is the zero time.
type jsonTime struct{ time.Time }

func (s *jsonTime) UnmarshalJSON(data []byte) error {
	var n json.Number
	if json.Unmarshal(data, &n) != nil { // a string, as jobs have it
		at, err := time.Parse(time.RFC3339Nano, text(data))
		if err != nil {
			at, err = time.Parse("2006-01-02T15:04:05.999999999", text(data))
		}
		s.Time = time.Time{}
		if err == nil {
			s.Time = at
		}
		return nil
	}
	if n == "" {
		s.Time = time.Time{}
		return nil
	}
	whole, fraction, _ := strings.Cut(n.String(), ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	f, ferr := strconv.ParseFloat("0."+fraction+"0", 64)
	if err != nil || ferr != nil || strings.ContainsAny(n.String(), "eE") {
		f, err := n.Float64()
		if err != nil || math.Abs(f) > 1e12 {
			return nil
		}
		s.Time = time.UnixMicro(int64(f * 1e6)).UTC()
		return nil
	}
	s.Time = time.Unix(sec, int64(f*1e9)).UTC()
	return nil
}
