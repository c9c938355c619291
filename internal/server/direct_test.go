package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// TestDoctorDirect: what the doctor, the status and the banner say of the agent direct.
func TestDoctorDirect(t *testing.T) {
	var key, model atomic.Value
	key.Store(apiKey)
	model.Store("hermes-agent")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/health":
			_, _ = io.WriteString(w, `{"status":"ok","platform":"hermes-agent","version":"0.19.0"}`)
		case r.Header.Get("Authorization") != fmt.Sprint("Bearer ", key.Load()):
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/models":
			_, _ = io.WriteString(w, `{"object":"list","data":[]}`)
		default:
			_, _ = fmt.Fprintf(w, `{"platform":"hermes-agent","model":%q,"auth":{"type":"bearer"},"features":{"run_submission":true},"endpoints":{"runs":{"method":"POST","path":"/v1/runs"},"models":{"method":"GET","path":"/v1/models"}}}`, model.Load())
		}
	}))
	defer api.Close()
	codes := func(r *rig) []string { return codesOf(r.examined()) }
	has := func(r *rig, code string) func() bool { return func() bool { return slices.Contains(codes(r), code) } }

	r := start(t, "MOBILE_AGENT=direct", "MOBILE_API_URL="+api.URL, "MOBILE_API_KEY=another-key-than-it-has")
	until(t, "the refusal", has(r, "api_key_refused"))
	mustFind(t, r.examined(), "api_key_refused", "rejects the server's key")
	ok(t, r.stop())

	r = start(t, "MOBILE_AGENT=direct", "MOBILE_API_URL="+api.URL, "MOBILE_API_KEY="+apiKey)
	until(t, "the note", has(r, "api_older"))
	mustFind(t, r.examined(), "api_older", "0.19.0")
	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	if st.Agent != "direct" || !st.AgentOnline || !strings.Contains(st.AgentDetail, "version 0.19.0") {
		t.Errorf("the status says %+v", st)
	}
	banner := func() string {
		var b bytes.Buffer
		r.server.Banner(&b, "./hm", false)
		return b.String()
	}
	if b := banner(); !strings.Contains(b, api.URL) || !strings.Contains(b, "./hm setup --api") || strings.Contains(b, apiKey) {
		t.Errorf("the banner says\n%s", b)
	}
	ok(t, r.stop())

	r = start(t, "MOBILE_AGENT=direct", "MOBILE_API_URL=http://127.0.0.1:1")
	if b := banner(); !strings.Contains(b, "No key") || !strings.Contains(b, "setup --api") {
		t.Errorf("the banner says\n%s", b)
	}
	ok(t, r.stop())

	r = start(t, "MOBILE_AGENT=direct", "MOBILE_API_KIND=openai", "MOBILE_API_URL=http://127.0.0.1:1")
	if b := banner(); !strings.Contains(b, "Model server:      http://127.0.0.1:1") {
		t.Errorf("the banner says\n%s", b)
	}
	until(t, "the finding", has(r, "api_unreachable"))
	mustFind(t, r.examined(), "api_unreachable", "http://127.0.0.1:1")
	mustNotFind(t, r.examined(), "hermes_missing")
}
