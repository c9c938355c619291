package doctor

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/agent/relay"
)

// connected is a server with the gateway of a home.
func connected(f *Facts, online bool) *Facts {
	f.Server = &Server{Started: f.Now.Add(-time.Hour), AgentOnline: online, Relay: &relay.State{Gateways: []relay.GatewayState{
		{ID: "gw-home", Name: "gw-home", Online: online, Seen: true, Local: true, Since: f.Now.Add(-time.Minute), Version: relay.Newer}}}}
	return f
}

// A gateway that is connected is compared with what it would read after a restart.
func TestConnectedAndOnDisk(t *testing.T) {
	for _, tc := range map[string]struct{ config, env, says string }{
		"the same":       {right(t), rightEnv, ""},
		"another secret": {right(t), strings.Replace(rightEnv, gatewaySecret, strings.Repeat("ab", 32), 1), "GATEWAY_RELAY_SECRET there differs"},
		"another id":     {right(t), strings.Replace(rightEnv, "gw-home", "gw-other", 1), "GATEWAY_RELAY_ID there is gw-other"},
		"no secret":      {right(t), "GATEWAY_RELAY_ID=gw-home\n", "GATEWAY_RELAY_SECRET is missing"},
		"undone":         {model, "", "gateway.relay_url and platforms.relay.extra.relay_url are missing"},
	} {
		h := newHome(t, tc.config, tc.env).runs()
		list := Check(connected(h.look("0.22.2"), true))
		if tc.says == "" {
			mustNotFind(t, list, "gateway_not_on_disk", "relay_not_configured", "gateway_wrong_secret")
			continue
		}
		f := mustFind(t, list, "gateway_not_on_disk", tc.says, "hermes-mobile setup")
		if strings.Contains(f.Text, gatewaySecret) || strings.Contains(f.Text, "abab") {
			t.Error("a secret is shown")
		}
		// Of a gateway elsewhere this Hermes says nothing.
		remote := connected(h.look("0.22.2"), true)
		remote.Server.Relay.Gateways[0].Local = false
		mustNotFind(t, Check(remote), "gateway_not_on_disk")
		stopped := newHome(t, tc.config, tc.env)
		mustNotFind(t, Check(connected(stopped.look("0.22.2"), true)), "gateway_not_on_disk")
	}
}

// What cannot come back by itself is not said to: after an undo, and where the gateway does not run.
func TestAwayForGood(t *testing.T) {
	list := Check(connected(newHome(t, model, "").look("0.22.2"), false))
	mustFind(t, list, "relay_not_configured", "hermes-mobile setup")
	mustFind(t, list, "gateway_not_running", "hermes gateway run")
	list = Check(connected(newHome(t, right(t), rightEnv).look("0.22.2"), false))
	mustFind(t, list, "gateway_not_running", "hermes gateway run")
	for _, f := range Conclude(list, nil).Issues {
		if strings.Contains(f.Do, "comes back by itself") {
			t.Errorf("%s says %q", f.Code, f.Do)
		}
	}
	mustFind(t, Check(connected(newHome(t, right(t), rightEnv).runs().look("0.22.2"), false)), "agent_away", "hermes gateway status")
}

// Jobs whose results do not arrive are named, with what helps.
func TestJobsNotDelivered(t *testing.T) {
	const jobs = `{"jobs": [
		{"id": "1", "name": "morning\u001b[31m news", "deliver": "origin", "origin": {"platform": "relay", "chat_id": "tel-1"}, "last_status": "delivery_failed", "last_delivery_error": "relay does not front platform relay"},
		{"id": "2", "name": "fine", "deliver": "origin", "origin": {"platform": "relay"}, "last_delivery_error": null},
		{"id": "3", "name": "of telegram", "deliver": "telegram", "origin": {"platform": "telegram"}, "last_delivery_error": "chat not found"},
		{"id": "4", "name": "off", "enabled": false, "deliver": "mobile", "last_delivery_error": "x"},
		{"id": "5", "deliver": ["mobile:tel-9"], "last_delivery_error": "no such device"}]}`
	h := newHome(t, right(t), rightEnv).runs()
	h.write("cron/jobs.json", jobs)
	list := Check(connected(h.look("0.22.2"), true))
	f := mustFind(t, list, "job_not_delivered", "morning", "does not front platform relay", "setup --plugin")
	if strings.Contains(f.Text, "\x1b[") {
		t.Errorf("it says %q", f.Text)
	}
	n := 0
	for _, f := range list {
		if f.Code == "job_not_delivered" {
			n++
			if strings.Contains(f.Text, "telegram") || strings.Contains(f.Text, "off") {
				t.Error(f.Text)
			}
		}
	}
	if n != 2 {
		t.Errorf("%d jobs are named", n)
	}
	for _, text := range []string{"", "[]", "{", `{"jobs": 1}`, `{"jobs": [1, null, {}]}`} {
		h.write("cron/jobs.json", text)
		mustNotFind(t, Check(connected(h.look("0.22.2"), true)), "job_not_delivered")
	}
}

// Others must not read the gateway's secret.
func TestReadableEnv(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such rights")
	}
	h := newHome(t, right(t), rightEnv).runs()
	mustNotFind(t, h.examine("0.22.2"), "hermes_env_readable")
	ok(t, os.Chmod(filepath.Join(h.path, ".env"), 0o644))
	mustFind(t, h.examine("0.22.2"), "hermes_env_readable", "mode 644", "chmod 600")
	h = newHome(t, right(t), "OTHER=1\n")
	ok(t, os.Chmod(filepath.Join(h.path, ".env"), 0o644))
	mustNotFind(t, h.examine("0.22.2"), "hermes_env_readable") // it holds nothing of ours
}
