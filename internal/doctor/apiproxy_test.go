package doctor

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestFrontDoor(t *testing.T) {
	with := func(front *APIProxy) []Issue {
		t.Helper()
		f := newHome(t, right(t), rightEnv).runs().look("0.22.2")
		f.Server, f.APIProxy = &Server{Started: time.Now()}, front
		return Check(f)
	}
	const url = "http://127.0.0.1:8642"
	mustFind(t, with(&APIProxy{URL: url, NoKey: true, Users: 1}), "front_api_down", url, "no key", "setup --api")
	mustFind(t, with(&APIProxy{URL: url, Down: errors.New("connection refused"), Users: 1}), "front_api_down", url, "connection refused", "MOBILE_API_URL")
	mustFind(t, with(&APIProxy{URL: url}), "front_no_users", "users add")
	for _, front := range []*APIProxy{nil, {URL: url, Users: 1}, {URL: url, Users: -1}} {
		mustNotFind(t, with(front), "front_api_down", "front_no_users")
	}
	if list := Checked(&Facts{APIProxy: &APIProxy{URL: url, Users: 2}}); !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, url+", 2 users") }) {
		t.Errorf("%q", list)
	}
}
