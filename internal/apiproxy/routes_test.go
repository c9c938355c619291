package apiproxy

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/internal/store"
)

// ownThings gives a user one of everything, with ids that have to be escaped in a path.
func (r *rig) ownThings(name string) map[string]string {
	r.t.Helper()
	user, err := r.store.FrontUser(r.t.Context(), name)
	ok(r.t, err)
	ids := map[string]string{"/api/sessions/": "20260101_120000_a;b%2f?c", "/v1/runs/": "run_a", "/v1/responses/": "resp_a", "/api/jobs/": "0123456789ab"}
	ok(r.t, r.store.Do(func(tx *store.Tx) error {
		for i, kind := range []string{store.FrontSession, store.FrontRun, store.FrontResponse, store.FrontJob} {
			id := ids[[]string{"/api/sessions/", "/v1/runs/", "/v1/responses/", "/api/jobs/"}[i]]
			if err := tx.ClaimFront(kind, id, user.ID, r.clock.now()); err != nil {
				return err
			}
		}
		return nil
	}))
	return ids
}

// odd writes a path otherwise: as it may be escaped without need, and with what some servers take
// off or read twice.
var oddPaths = map[string]func(path string) string{
	"as it is":        func(p string) string { return p },
	"an escaped word": func(p string) string { return strings.Replace(p, "s", "%73", 1) },
	"all words escaped": func(p string) string {
		return strings.NewReplacer("a", "%61", "v", "%76", "e", "%65", "r", "%72", "u", "%75").Replace(p)
	},
	"escaped twice":        func(p string) string { return strings.Replace(p, "s", "%2573", 1) },
	"an escaped slash":     func(p string) string { return strings.Replace(p, "/", "%2F", 2) },
	"two slashes":          func(p string) string { return strings.Replace(p, "/", "//", 2) },
	"a slash at the end":   func(p string) string { return p + "/" },
	"dots":                 func(p string) string { return "/." + p },
	"dots up":              func(p string) string { return p + "/../../api/cron/fire" },
	"escaped dots up":      func(p string) string { return p + "/%2e%2e/%2e%2e/api/cron/fire" },
	"escaped slashes up":   func(p string) string { return p + "%2f..%2f..%2fapi%2fcron%2ffire" },
	"dots at the end":      func(p string) string { return p + ".." },
	"a parameter":          func(p string) string { return p + ";a=b" },
	"a backslash":          func(p string) string { return p + `%5c..%5c..` },
	"a zero":               func(p string) string { return p + "%00" },
	"a question mark":      func(p string) string { return p + "%3Flimit=1" },
	"a line end":           func(p string) string { return p + "%0d%0aX: y" },
	"another word behind":  func(p string) string { return p + "/approval" },
	"a profile before":     func(p string) string { return "/p/default" + p },
	"no UTF-8":             func(p string) string { return p + "%ff" },
	"an escape that is no": func(p string) string { return p + "%zz" },
}

// wellFormed reports whether a path is one of a route, and names what was checked and nothing else.
func wellFormed(method, path string, ids map[string]string) bool {
	if path == "/v1/capabilities" {
		return true
	}
	for _, rt := range routes {
		want := rt.path
		for under, id := range ids {
			if strings.HasPrefix(want, under) {
				want = strings.Replace(want, "{id}", url.PathEscape(id), 1)
			}
		}
		if method == rt.method && path == want {
			return true
		}
		// It is asked whose something is, by its id.
		if under, _, has := strings.Cut(rt.path, "{id}"); has && method == http.MethodGet && strings.HasPrefix(path, under) && strings.Count(path, "/") == strings.Count(under, "/") {
			return true
		}
	}
	return false
}

// TestPaths: however a client writes a path, what reaches the API server is a path of the table,
// with the id that was found to be the user's.
func TestPaths(t *testing.T) {
	r := newRig(t, wide)
	ids := r.ownThings("anna")
	cookie := r.login("anna").line()
	r.up.any = true
	reached := map[string]bool{}
	for _, rt := range routes {
		path := rt.path
		for under, id := range ids {
			if strings.HasPrefix(path, under) {
				path = strings.Replace(path, "{id}", url.PathEscape(id), 1)
			}
		}
		for name, odd := range oddPaths {
			r.ownThings("anna") // what was deleted is there again
			before := len(r.up.heard())
			status := r.raw(rt.method, odd(path), cookie, "{}")
			for _, got := range r.up.heard()[before:] {
				if sent := got.URL.EscapedPath(); !wellFormed(got.Method, sent, ids) {
					t.Errorf("%s: %s %s is answered with %d and becomes %s %s", name, rt.method, odd(path), status, got.Method, sent)
				} else if got.Method == rt.method {
					reached[rt.method+" "+sent] = true
				}
			}
			if name == "as it is" || strings.HasSuffix(name, "escaped") && !strings.Contains(path, "%") {
				if got, _ := r.up.newest(); status == 404 || got.Method != rt.method || got.URL.EscapedPath() != path && rt.path != "/api/sessions" {
					t.Errorf("%s: %s %s is answered with %d, and the API server heard %s %s", name, rt.method, odd(path), status, got.Method, got.URL.EscapedPath())
				}
			}
		}
	}
	if len(reached) < len(routes)-1 { // an empty list asks nothing
		t.Errorf("%d of %d operations reached the API server: %v", len(reached), len(routes), slices.Sorted(maps.Keys(reached)))
	}
}

// FuzzPath: no path leads anywhere but to the operations of the table, and none makes the server
// fail.
func FuzzPath(f *testing.F) {
	for _, odd := range oddPaths {
		for _, path := range []string{"/v1/runs/run_a/stop", "/api/sessions/20260101_120000_a/chat/stream", "/v1/models"} {
			f.Add(odd(path), "GET")
			f.Add(odd(path), "POST")
		}
	}
	fronts := &Proxy{o: Options{}, served: servedHere()}
	var heard []string
	mux := http.NewServeMux()
	for i := range routes {
		rt := &routes[i]
		mux.HandleFunc(rt.method+" "+rt.path, func(_ http.ResponseWriter, r *http.Request) {
			c := &call{route: rt, id: r.PathValue("id"), query: rt.only(r.URL.Query())}
			if strings.Contains(rt.path, "{id}") && !sessionID(c.id) {
				return
			}
			fronts.target = &url.URL{Scheme: "http", Host: "api", Path: "/base"}
			heard = append(heard, fronts.address(c.path(), c.query).String())
		})
	}
	f.Fuzz(func(t *testing.T, path, method string) {
		heard = nil
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.URL = method, u
		mux.ServeHTTP(httptest.NewRecorder(), r)
		for _, address := range heard {
			u, err := url.Parse(address)
			if err != nil || u.Host != "api" || u.Fragment != "" {
				t.Fatalf("%s %q becomes %q (%v)", method, path, address, err)
			}
			at := slices.IndexFunc(routes, func(rt route) bool {
				want, got := strings.Split("/base"+rt.path, "/"), strings.Split(u.EscapedPath(), "/")
				return len(want) == len(got) && !slices.ContainsFunc(got, func(s string) bool { return s == "." || s == ".." || s == "" && len(got) > 0 && got[0] != s }) &&
					!slices.ContainsFunc(indexes(want), func(i int) bool { return want[i] != "{id}" && want[i] != got[i] })
			})
			if at < 0 {
				t.Fatalf("%s %q becomes %q", method, path, address)
			}
		}
	})
}

func indexes[T any](list []T) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	return out
}

// TestFields: of a body and a query the API server sees what the table has, and nothing that would
// let a user speak for another, reach a chat of the owner, or change more than the user's own.
func TestFields(t *testing.T) {
	r := newRig(t, wide)
	ids := r.ownThings("anna")
	c := r.login("anna")
	r.up.any = true
	body, query := map[string]any{}, url.Values{}
	for _, rt := range routes {
		for _, name := range rt.fields {
			body[name] = "x"
		}
		for _, name := range rt.query {
			query.Set(name, "1")
		}
	}
	// What the API server of some version gives a meaning, or another program before it might.
	for _, name := range []string{"author", "user", "user_id", "source", "metadata", "hosted_room_dispatch", "_room_execution_policy", "hermes_notification_category", "cwd", "workdir",
		"toolsets", "enabled_toolsets", "tools_config", "profile", "origin", "paused_reason", "script", "no_agent", "model_config", "base_url", "api_key", "parent_session_id",
		"X-Hermes-Session-Id", "session_key", "Session_ID", "DELIVER", "__proto__"} {
		body[name] = "x"
	}
	for _, name := range []string{"profile", "include_hidden", "include_compacted", "user", "ticket", "token", "key"} {
		query.Set(name, "1")
	}
	for name, change := range map[string]any{"messages": []any{map[string]string{"role": "user", "content": "x"}}, "deliver": "local", "previous_response_id": "", "session_id": "", "id": ""} {
		body[name] = change
	}
	text, err := json.Marshal(body)
	ok(t, err)
	for _, rt := range routes {
		path := rt.path
		for under, id := range ids {
			if strings.HasPrefix(path, under) {
				path = strings.Replace(path, "{id}", url.PathEscape(id), 1)
			}
		}
		r.ownThings("anna") // what was deleted is there again
		sent := string(text)
		if rt.method == http.MethodGet || rt.method == http.MethodDelete {
			sent = ""
		}
		status, answer := c.do(rt.method, path+"?"+query.Encode(), sent)
		if rt.path == "/api/sessions" && rt.method == http.MethodGet {
			continue // asks by itself
		}
		got, passed := r.up.lastOf(rt.method, path)
		if got == nil {
			t.Errorf("%s %s: %d %s, and the API server heard nothing", rt.method, path, status, answer)
			continue
		}
		var in map[string]any
		if passed != "" {
			ok(t, json.Unmarshal([]byte(passed), &in))
		}
		for name := range in {
			if !slices.Contains(rt.fields, name) {
				t.Errorf("%s %s: the API server is told %s", rt.method, rt.path, name)
			}
		}
		for _, name := range rt.fields {
			if _, there := in[name]; !there && body[name] != "" {
				t.Errorf("%s %s: %s is lost", rt.method, rt.path, name)
			}
		}
		asked := got.URL.Query()
		for name := range asked {
			if !slices.Contains(rt.query, name) {
				t.Errorf("%s %s: the API server is asked for %s", rt.method, rt.path, name)
			}
		}
		if len(asked) != len(rt.query) {
			t.Errorf("%s %s: of the query %v arrived", rt.method, rt.path, asked)
		}
	}
}

// TestJobsReportHere: a user's job reports to nobody but its user, from the beginning and when it
// is changed.
func TestJobsReportHere(t *testing.T) {
	r := newRig(t, wide)
	c := r.login("anna")
	id := made(t, c.want(200, "POST", "/api/jobs", `{"name":"n","schedule":"every 2h","deliver":"local"}`))
	before := len(r.up.heard())
	for _, deliver := range []string{`"telegram:1"`, `"telegram:1,all"`, `"all"`, `"local,telegram"`, `"Local"`, `" local"`, `""`, `null`, `["local"]`, `{"to":"telegram"}`, `5`, `"local\u0000"`,
		`"local","deliver":"all"`} {
		for _, route := range [][2]string{{"POST", "/api/jobs"}, {"PATCH", "/api/jobs/" + id}} {
			c.want(400, route[0], route[1], `{"name":"n","schedule":"every 2h","deliver":`+deliver+`}`, "deliver must be local or origin")
		}
	}
	for _, got := range r.up.heard()[before:] {
		t.Errorf("the API server heard %s %s", got.Method, got.URL)
	}
	for _, body := range []string{`{"deliver":"origin"}`, `{"enabled":false}`, `{"Deliver":"all","name":"x"}`, `{"deliver":"all","deliver":"local"}`} {
		c.want(200, "PATCH", "/api/jobs/"+id, body)
		if _, sent := r.up.last("/api/jobs/" + id); strings.Contains(sent, "all") {
			t.Errorf("%s becomes %s", body, sent)
		}
	}
}

// TestSealed: no answer of the API is kept, read as something else, or used by a page of another
// origin, whoever gives it; of the API server's own connection nothing comes through.
func TestSealed(t *testing.T) {
	r := newRig(t, wide)
	c := r.login("anna")
	r.up.loud = true
	for _, path := range []string{"/health", "/v1/models", "/v1/capabilities", "/api/sessions", "/api/sessions/none", "/v1/nothing", "/api/auth/me", "/api/auth/providers", "//v1/models"} {
		resp := c.send(t.Context(), "GET", path, "")
		text, err := io.ReadAll(resp.Body)
		ok(t, err)
		_ = resp.Body.Close()
		want := http.Header{"X-Content-Type-Options": {"nosniff"}, "Cross-Origin-Resource-Policy": {"same-origin"}, "Cache-Control": {"no-store"}, "Content-Security-Policy": {"default-src 'none'; sandbox"}}
		for name, values := range want {
			if !slices.Equal(resp.Header.Values(name), values) {
				t.Errorf("%s: %s is %q", path, name, resp.Header.Values(name))
			}
		}
		for name := range resp.Header {
			if !slices.Contains([]string{"X-Content-Type-Options", "Cross-Origin-Resource-Policy", "Cache-Control", "Content-Security-Policy", "Content-Type", "Content-Length", "Date", "X-Hermes-Error", "Location", "Allow"}, name) {
				t.Errorf("%s: the answer has %s: %s", path, name, resp.Header.Get(name))
			}
		}
		if len(resp.Trailer) != 0 || strings.Contains(string(text), "theirs") {
			t.Errorf("%s: trailers %v", path, resp.Trailer)
		}
	}
	resp := r.client().send(t.Context(), "GET", "/v1/models", "")
	_ = resp.Body.Close()
	if resp.StatusCode != 401 || resp.Header.Get("Content-Security-Policy") == "" || resp.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("without a login: %d %v", resp.StatusCode, resp.Header)
	}
}
