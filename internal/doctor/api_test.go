package doctor

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// What the agent direct says of the API.
func TestDirectAPI(t *testing.T) {
	const url = "http://127.0.0.1:8642"
	key := "API_SERVER_KEY=0123456789abcdef0123456789abcdef\n"
	with := func(api API, online, hermes bool) []Issue {
		t.Helper()
		h := newHome(t, model, key).runs()
		if !hermes {
			ok(t, os.RemoveAll(h.path))
		}
		f := h.look("0.22.2")
		f.Config.Agent = "direct"
		api.URL = url
		f.Server = &Server{Started: time.Now(), AgentOnline: online, AgentDetail: "detail", API: &api}
		return Shorten(Check(f))
	}
	down := errors.New("it refused")
	mustFind(t, with(API{KeyRefused: true, Down: down}, false, true), "api_key_refused", url, "rejects the server's key")
	mustFind(t, with(API{KeyRefused: true, NoKey: true, Down: down}, false, true), "api_key_refused", "requires a key")
	mustFind(t, with(API{KeyRefused: true, Down: down}, true, true), "api_key_refused", url, "not for a reply", "it refused")
	mustFind(t, with(API{Another: true, Down: down}, false, true), "api_other_gateway", url, "it refused")
	mustFind(t, with(API{Down: down}, false, true), "api_unreachable", url, "it refused")
	mustFind(t, with(API{Version: "0.19.0", Older: true}, true, true), "api_older", "0.19.0")
	mustFind(t, with(API{}, false, true), "agent_away") // not tried yet
	mustFind(t, with(API{Down: down}, false, false), "hermes_missing")
	for name, list := range map[string][]Issue{
		"well": with(API{}, true, true), "well, without a home": with(API{}, true, false),
		"elsewhere": with(API{Elsewhere: true, Down: down}, false, false),
	} {
		mustNotFind(t, list, "hermes_missing", "api_key_refused", "api_older", "agent_away", "api_server_off")
		if name != "elsewhere" && len(list) > 0 {
			t.Errorf("%s: %+v", name, list)
		}
	}
	for _, f := range with(API{Down: down}, false, true) {
		if f.Code == "agent_away" {
			t.Error("it is said twice that the agent is away")
		}
	}
	list := Checked(&Facts{Server: &Server{AgentOnline: true, AgentDetail: "version 9", API: &API{URL: url}}})
	if !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, url) && strings.Contains(s, "version 9") }) {
		t.Errorf("%q", list)
	}
}
