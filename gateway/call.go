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

// ask calls an advertised operation on the route in use. Where a reading call fails in a way that speaks against the route,
// it is made once more on a newly chosen one; what changes something is never repeated here.
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

// instant is a time in float seconds, as the gateway sends it (api-facts §12.11). null is the zero time.
type jsonTime struct{ time.Time }

func (s *jsonTime) UnmarshalJSON(data []byte) error {
	var n json.Number
	if json.Unmarshal(data, &n) != nil { // a string: RFC 3339, as jobs have it
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
