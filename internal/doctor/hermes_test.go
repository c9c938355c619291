package doctor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/config"
)

func TestHermesIsRight(t *testing.T) {
	for version, text := range map[string]string{"0.22.2": right(t), "0.19.0": rightOld(t)} {
		list := newHome(t, text, rightEnv).runs().examine(version)
		if got := codes(list); len(got) != 1 || got[0] != "server_not_running" {
			t.Errorf("%s: %q", version, got)
		}
	}
}

func TestHermesMissing(t *testing.T) {
	h := newHome(t, "", "")
	ok(t, os.RemoveAll(h.path))
	list := h.examine("")
	mustFind(t, list, "hermes_missing", h.path, "setup --remote")
	mustNotFind(t, list, "relay_not_configured", "gateway_not_running")

	// A gateway that runs elsewhere, by its owner's word, is not looked for here.
	f := h.look("")
	elsewhere := false
	f.Gateways[0].Local = &elsewhere
	mustNotFind(t, Check(f), "hermes_missing")

	// The agent that speaks to the API server has to have one.
	f.Config.Agent = "direct"
	mustFind(t, Check(f), "hermes_missing", h.path)
}

func TestHermesTooOld(t *testing.T) {
	h := newHome(t, right(t), rightEnv)
	mustFind(t, h.examine("0.18.3"), "hermes_too_old", "0.18", "hermes update")
	for _, v := range []string{"0.19.0", "0.22.2", ""} {
		mustNotFind(t, h.examine(v), "hermes_too_old")
	}
	// The version is found where an installer puts it, without running anything.
	h.write("hermes-agent/venv/bin/hermes", "#!/bin/sh\nexit 1\n")
	ok(t, os.MkdirAll(filepath.Join(h.path, "hermes-agent/venv/lib/python3.11/site-packages/hermes_agent-0.17.4.dist-info"), 0o700))
	t.Setenv("PATH", t.TempDir())
	cfg := h.config()
	f := &Facts{Config: cfg, Gateways: cfg.Gateways, Hermes: ProbeHermes(t.Context(), cfg, AskVersion)}
	mustFind(t, Check(f), "hermes_too_old", "0.17")
}

func TestHermesBroken(t *testing.T) {
	for _, name := range []string{"broken-indent.yaml", "broken-list.yaml", "broken-tab.yaml", "broken-bytes.yaml"} {
		list := newHome(t, testdata(t, name), rightEnv).examine("0.22.2")
		mustFind(t, list, "hermes_config_broken", "line ")
		mustNotFind(t, list, "relay_not_configured", "model_missing", "busy_ack_on")
	}
}

func TestHermesUnreadable(t *testing.T) {
	h := newHome(t, right(t), rightEnv)
	ok(t, os.Remove(filepath.Join(h.path, ".env")))
	ok(t, os.Mkdir(filepath.Join(h.path, ".env"), 0o700))
	cfg := newHome(t, "", "").config() // which the server would read, too
	cfg.HermesHome = h.path
	f := &Facts{Config: cfg, Gateways: cfg.Gateways, Hermes: ProbeHermes(t.Context(), cfg, nil)}
	mustFind(t, Check(f), "hermes_unreadable", h.path, ".env")
}

// A gateway that was there before and runs elsewhere makes nobody look for it in a Hermes that knows nothing of the server.
func TestHermesOfSomebodyElse(t *testing.T) {
	h := newHome(t, model, "TELEGRAM_BOT_TOKEN=x\n")
	f := h.look("0.22.2")
	state := relay.GatewayState{ID: "gw-home", Name: "gw-home", Version: relay.Newer}
	f.Server = &Server{Started: time.Now(), Relay: &relay.State{Gateways: []relay.GatewayState{state}}}
	mustNotFind(t, Check(f), "relay_not_configured", "gateway_not_running", "hermes_missing")
	mustFind(t, Check(f), "gateway_not_dialled", "gw-home")
	f.Server.Relay.Gateways[0].Version = relay.Unknown
	mustFind(t, Check(f), "relay_not_configured")
}

func TestModelMissing(t *testing.T) {
	without := strings.Replace(right(t), model, "", 1)
	mustFind(t, newHome(t, without, rightEnv).examine("0.22.2"), "model_missing", "config.yaml", "hermes model")
	mustFind(t, newHome(t, without+"model: {default: \"\"}\n", rightEnv).examine("0.22.2"), "model_missing")
	for _, m := range []string{"model: gpt\n", "model: {model: gpt}\n", model} {
		mustNotFind(t, newHome(t, without+m, rightEnv).examine("0.22.2"), "model_missing")
	}
}

func TestRelayNotConfigured(t *testing.T) {
	for name, tc := range map[string]struct{ config, env, says string }{
		"nothing":      {"", "", "gateway.relay_url and platforms.relay.extra.relay_url are missing"},
		"other words":  {testdata(t, "comments.yaml"), rightEnv, "gateway.relay_url"},
		"off":          {testdata(t, "relay-partial.yaml"), rightEnv, "platforms.relay.enabled is false"},
		"one place":    {"gateway: {relay_url: http://127.0.0.1:8787}\n", rightEnv, "platforms.relay.extra.relay_url is missing"},
		"the other":    {"platforms: {relay: {enabled: true, extra: {relay_url: http://127.0.0.1:8787}}}\n", rightEnv, "gateway.relay_url is missing"},
		"no id":        {right(t), "GATEWAY_RELAY_SECRET=" + gatewaySecret + "\n", "GATEWAY_RELAY_ID is missing"},
		"no secret":    {right(t), "GATEWAY_RELAY_ID=gw-home\nGATEWAY_RELAY_SECRET=\n", "GATEWAY_RELAY_SECRET is missing"},
		"made by none": {"", "", "hermes-mobile setup"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, tc.config, tc.env)
			f := h.look("0.22.2")
			if name == "made by none" {
				f.Gateways = nil
			}
			list := Check(f)
			mustFind(t, list, "relay_not_configured", tc.says, h.path)
			mustNotFind(t, list, "busy_ack_on", "streaming_off")
			mustNotFind(t, Shorten(list), "gateway_not_running")
		})
	}
	// All in the environment's form, or all in config.yaml, is as good.
	mustNotFind(t, newHome(t, model, rightEnv+"GATEWAY_RELAY_URL=http://127.0.0.1:8787\n").examine("0.22.2"), "relay_not_configured")
	in := strings.Replace(right(t), "gateway: {", "gateway: {relay_id: gw-home, relay_secret: "+gatewaySecret+", ", 1)
	mustNotFind(t, newHome(t, in, "").examine("0.22.2"), "relay_not_configured", "gateway_wrong_secret")
}

// A gateway may have its variables from a service or a container.
func TestHermesIsToldByItsEnvironment(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what a process was started with")
	}
	sleep, err := exec.LookPath("sleep")
	ok(t, err)
	cmd := exec.Command(sleep, "60")
	cmd.Env = append(strings.Split(strings.TrimSpace(rightEnv), "\n"), "GATEWAY_RELAY_URL=http://127.0.0.1:8787")
	ok(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	h := newHome(t, model+"display: {busy_ack_enabled: false, busy_input_mode: queue}\n", "")
	h.write("gateway.pid", strconv.Itoa(cmd.Process.Pid))
	if got := codes(h.examine("0.19.0")); len(got) != 1 || got[0] != "server_not_running" {
		t.Errorf("%q", got)
	}
	h.write(".env", "GATEWAY_RELAY_ID=gw-other\n") // counts more
	mustFind(t, h.examine("0.19.0"), "gateway_unknown_id", "gw-other")
}

func TestGatewayNotRunning(t *testing.T) {
	h := newHome(t, right(t), rightEnv)
	mustFind(t, h.examine("0.22.2"), "gateway_not_running", "hermes gateway run")

	// Files of one that was killed: its process is gone, or another has its number now.
	gone := exec.Command(os.Args[0], "-test.run=^$")
	ok(t, gone.Run())
	h.write("gateway.pid", strconv.Itoa(gone.Process.Pid))
	mustFind(t, h.examine("0.22.2"), "gateway_not_running")
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		h.write("gateway.pid", `{"pid": `+strconv.Itoa(os.Getpid())+`, "start_time": 1}`)
		mustFind(t, h.examine("0.22.2"), "gateway_not_running")
	}

	mustNotFind(t, h.runs().examine("0.22.2"), "gateway_not_running")

	// A profile may be served by the gateway of the main home; its own commands name it.
	p := newHome(t, "", "")
	p.write("profiles/work/config.yaml", right(t))
	p.write("profiles/work/.env", rightEnv)
	mustFind(t, p.examine("0.22.2"), "gateway_not_running", "hermes -p work gateway run", filepath.Join(p.path, "profiles", "work"))
	mustNotFind(t, p.runs().examine("0.22.2"), "gateway_not_running")
}

func TestWrongIDAndSecret(t *testing.T) {
	h := newHome(t, right(t), "GATEWAY_RELAY_ID=gw-other\nGATEWAY_RELAY_SECRET="+gatewaySecret+"\n").runs()
	list := h.examine("0.22.2")
	mustFind(t, list, "gateway_unknown_id", "gw-other", "gw-home")
	mustNotFind(t, list, "gateway_wrong_secret")

	h = newHome(t, right(t), "GATEWAY_RELAY_ID=gw-home\nGATEWAY_RELAY_SECRET=not-the-secret-of-the-server\n").runs()
	list = h.examine("0.22.2")
	f := mustFind(t, list, "gateway_wrong_secret", "gw-home")
	if f.About != "gw-home" || strings.Contains(f.Text, gatewaySecret) || strings.Contains(f.Text, "not-the-secret") {
		t.Errorf("%+v", f)
	}
	mustNotFind(t, list, "gateway_unknown_id")
}

func TestRelayURL(t *testing.T) {
	at := func(url string) string { return strings.ReplaceAll(right(t), "http://127.0.0.1:8787", url) }
	for _, tc := range []struct {
		url, code string
		environ   []string
		says      []string
	}{
		{url: "http://127.0.0.1:8787/"}, {url: "ws://localhost:8787/relay"}, {url: "http://127.0.0.1:8787/relay"},
		{url: "https://agent.example.com", environ: []string{"MOBILE_PUBLIC_URL=https://agent.example.com"}},
		{url: "wss://agent.example.com:443/relay", environ: []string{"MOBILE_PUBLIC_URL=https://agent.example.com/"}},
		{url: "http://[::1]:8787", environ: []string{"MOBILE_HOST=::"}},
		{url: "http://host.docker.internal:8787"},
		{url: "http://host.docker.internal:8788", code: "relay_url_address", says: []string{"another host"}},
		{url: "https://127.0.0.1:8787", code: "relay_url_scheme", says: []string{"https://127.0.0.1:8787", "Use http"}},
		{url: "wss://localhost:8787", code: "relay_url_scheme", says: []string{"Use http"}},
		{url: "http://agent.example.com", code: "relay_url_scheme", environ: []string{"MOBILE_PUBLIC_URL=https://agent.example.com"}, says: []string{"Use https"}},
		{url: "127.0.0.1:8787", code: "relay_url_scheme", says: []string{"not an address"}},
		{url: "tcp://127.0.0.1:8787", code: "relay_url_scheme"},
		{url: "http://127.0.0.1:8788", code: "relay_url_address", says: []string{"another port", "http://127.0.0.1:8787"}},
		{url: "http://10.255.255.1:8787", code: "relay_url_address", says: []string{"another host"}},
		{url: "https://other.example.com", code: "relay_url_address", environ: []string{"MOBILE_PUBLIC_URL=https://agent.example.com"}, says: []string{"https://agent.example.com"}},
		{url: "http://127.0.0.1:8787/ws", code: "relay_url_address", says: []string{"/ws"}},
		{url: "http://[::1]:8787", code: "relay_url_address", says: []string{"does not listen"}},
		{url: "http://me:pass-word@127.0.0.1:9", code: "relay_url_address"},
	} {
		list := newHome(t, at(tc.url), rightEnv).runs().examine("0.22.2", tc.environ...)
		other := map[string]string{"relay_url_scheme": "relay_url_address", "relay_url_address": "relay_url_scheme"}[tc.code]
		switch tc.code {
		case "":
			mustNotFind(t, list, "relay_url_scheme", "relay_url_address")
		case "relay_url_scheme":
			mustFind(t, list, "relay_url_scheme", tc.says...)
		case "relay_url_address":
			mustFind(t, list, "relay_url_address", tc.says...)
		}
		mustNotFind(t, list, other)
		if t.Failed() {
			t.Fatalf("with %s", tc.url)
		}
		for _, f := range list {
			if strings.Contains(f.Text+f.Do, "pass-word") {
				t.Errorf("a password is shown: %s", f.Text)
			}
		}
	}
}

func TestBehaviour(t *testing.T) {
	change := func(old, new string) []Issue {
		text := right(t)
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not there", old)
		}
		return newHome(t, strings.Replace(text, old, new, 1), rightEnv).runs().examine("0.22.2")
	}
	mustFind(t, change("busy_ack_enabled: false, ", ""), "busy_ack_on", "30 seconds", "config.yaml")
	mustFind(t, change("busy_ack_enabled: false", "busy_ack_enabled: yes"), "busy_ack_on")
	mustNotFind(t, change("busy_ack_enabled: false", "busy_ack_enabled: off"), "busy_ack_on")
	mustFind(t, change(", busy_input_mode: queue", ""), "busy_input_mode", "interrupt")
	mustFind(t, change("busy_input_mode: queue", "busy_input_mode: redirect"), "busy_input_mode", "redirect")
	mustNotFind(t, change("busy_input_mode: queue", "busy_input_mode: Steer"), "busy_input_mode")
	for _, off := range []string{"", "streaming: {enabled: false}", "streaming: {enabled: true, transport: off}", "streaming: {mode: off}", "streaming: {transport: edit}"} {
		mustFind(t, change("streaming: {enabled: true}", off), "streaming_off", "stream")
	}
	for _, on := range []string{"streaming: {mode: auto}", "streaming: {enabled: yes, transport: edit}"} {
		mustNotFind(t, change("streaming: {enabled: true}", on), "streaming_off")
	}
	mustFind(t, change(`relay: {tool_progress: "off"}`, `relay: {tool_progress: "off", streaming: false}`), "streaming_off")
	mustFind(t, change(`relay: {tool_progress: "off"}, `, ""), "tool_progress_on", "display.platforms.relay.tool_progress")
	mustNotFind(t, change(`relay: {tool_progress: "off"}`, `relay: {tool_progress: false}`), "tool_progress_on")

	// A variable of .env wins over config.yaml, as with Hermes.
	list := newHome(t, right(t), rightEnv+"HERMES_GATEWAY_BUSY_INPUT_MODE=interrupt\nHERMES_GATEWAY_BUSY_ACK_ENABLED=true\n").runs().examine("0.22.2")
	mustFind(t, list, "busy_input_mode")
	mustFind(t, list, "busy_ack_on")

	old := newHome(t, right(t), rightEnv).runs().examine("0.19.0")
	mustFind(t, old, "streaming_unsupported", "0.19", "two pieces")
	mustNotFind(t, old, "streaming_off", "tool_progress_on")
	// Of a version that is not known nothing is said that depends on it.
	mustNotFind(t, newHome(t, rightOld(t), rightEnv).runs().examine(""), "streaming_off", "streaming_unsupported", "tool_progress_on")
}

func TestOtherMessengers(t *testing.T) {
	env := rightEnv + "GATEWAY_RELAY_URL=http://127.0.0.1:8787\n"
	mustFind(t, newHome(t, right(t), env+"TELEGRAM_BOT_TOKEN=12345:abc\n").runs().examine("0.22.2"), "other_messengers_off", "telegram", "GATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS")
	mustFind(t, newHome(t, strings.Replace(right(t), "platforms: {relay:", "platforms: {mattermost: {enabled: true}, api_server: {enabled: true}, relay:", 1), env).runs().examine("0.22.2"),
		"other_messengers_off", "mattermost.")
	for _, tc := range []struct{ env, version string }{
		{env, "0.22.2"}, {env + "TELEGRAM_BOT_TOKEN=12345:abc\n", "0.19.0"}, {rightEnv + "TELEGRAM_BOT_TOKEN=12345:abc\n", "0.22.2"},
		{env + "TELEGRAM_BOT_TOKEN=12345:abc\nGATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS=true\n", "0.22.2"},
	} {
		mustNotFind(t, newHome(t, right(t), tc.env).runs().examine(tc.version), "other_messengers_off")
	}
}

func TestPlugin(t *testing.T) {
	on := right(t) + "plugins: {enabled: [mobile-platform]}\n"
	named := rightEnv + "GATEWAY_RELAY_PLATFORMS=mobile,relay\n"
	full := func(config, env string) *hermesHome {
		h := newHome(t, config, env).runs()
		h.write("plugins/mobile-platform/plugin.yaml", "name: mobile-platform\n")
		h.write("plugins/mobile-platform/__init__.py", "def register(ctx): pass\n")
		return h
	}
	mustNotFind(t, full(on, named).examine("0.22.2"), "plugin_incomplete", "plugin_unsupported")
	mustNotFind(t, full(right(t), rightEnv).examine("0.22.2"), "plugin_incomplete") // there, and off
	mustNotFind(t, newHome(t, right(t), rightEnv).runs().examine("0.22.2"), "plugin_incomplete")
	mustFind(t, full(on, named).examine("0.19.0"), "plugin_unsupported", "0.19", "setup --undo")

	mustFind(t, full(on, rightEnv).examine("0.22.2"), "plugin_incomplete", "GATEWAY_RELAY_PLATFORMS=mobile,relay")
	mustFind(t, full(on, rightEnv+"GATEWAY_RELAY_PLATFORMS=mobile\n").examine("0.22.2"), "plugin_incomplete", "GATEWAY_RELAY_PLATFORMS=mobile,relay")
	mustFind(t, full(right(t), named).examine("0.22.2"), "plugin_incomplete", "plugins.enabled")
	mustFind(t, newHome(t, on, named).runs().examine("0.22.2"), "plugin_incomplete", "plugin.yaml and its __init__.py")
	half := full(on, named)
	ok(t, os.Remove(filepath.Join(half.path, "plugins", "mobile-platform", "__init__.py")))
	mustFind(t, half.examine("0.22.2"), "plugin_incomplete", "lacks its __init__.py.")
}

func TestAPIServer(t *testing.T) {
	key := "API_SERVER_KEY=0123456789abcdef0123456789abcdef\n"
	for name, tc := range map[string]struct {
		config, env string
		says        string
	}{
		"no key":       {model, "API_SERVER_ENABLED=true\n", "no key"},
		"short":        {model, "API_SERVER_KEY=short\n", "5 characters"},
		"off":          {model + "platforms: {api_server: {enabled: no}}\n", key, "platforms.api_server.enabled is false"},
		"on":           {model, key, ""},
		"in the yaml":  {model + "platforms: {api_server: {enabled: true, extra: {key: 0123456789abcdef-key}}}\n", "", ""},
		"short, there": {model + "platforms: {api_server: {enabled: true, extra: {key: abc}}}\n", "", "platforms.api_server.extra.key"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHome(t, tc.config, tc.env).runs().look("0.22.2")
			f.Config.Agent = "direct" // which the settings refuse still
			list := Check(f)
			if tc.says == "" {
				mustNotFind(t, list, "api_server_off")
				return
			}
			mustFind(t, list, "api_server_off", tc.says, "API_SERVER_KEY")
			mustNotFind(t, list, "relay_not_configured")
			for _, f := range list {
				if strings.Contains(f.Text, "0123456789abcdef") {
					t.Error("the key is shown")
				}
			}
		})
	}
	mustNotFind(t, newHome(t, right(t), rightEnv).examine("0.22.2"), "api_server_off")
}

func TestDemoAgent(t *testing.T) {
	dir := t.TempDir()
	load := func(environ ...string) *config.Config {
		cfg, _, err := config.Load(config.Sources{Environ: append([]string{"MOBILE_DATA=" + dir}, environ...), HomeDir: dir})
		ok(t, err)
		return cfg
	}
	mustFind(t, Check(&Facts{Config: load()}), "demo_agent", "Hermes home at ~/.hermes")
	mustNotFind(t, Check(&Facts{Config: load("MOBILE_AGENT=demo")}), "demo_agent")
}

func TestGatewayNotWoken(t *testing.T) {
	f := newHome(t, right(t), rightEnv).look("0.22.2")
	state := relay.GatewayState{ID: "gw-home", Name: "gw-home", Seen: true, Version: relay.Newer, WakeErr: "it answers with status 403"}
	f.Server = &Server{Started: time.Now(), Relay: &relay.State{Gateways: []relay.GatewayState{state}}}
	mustFind(t, Check(f), "gateway_not_woken", "gw-home", "status 403", "MOBILE_RELAY_WAKE_URL")
	f.Server.Relay.Gateways[0].Online = true
	mustNotFind(t, Check(f), "gateway_not_woken")
	f.Server.Relay.Gateways[0].Online, f.Server.Relay.Gateways[0].WakeErr = false, ""
	mustNotFind(t, Check(f), "gateway_not_woken")
}

// TestRelaySwitchedOff: an explicit platforms.relay.enabled: false is why a gateway does not connect, whatever address is set.
func TestRelaySwitchedOff(t *testing.T) {
	off := strings.Replace(right(t), "relay: {enabled: true", "relay: {enabled: false", 1)
	if off == right(t) {
		t.Fatal("the settings have no relay to switch off")
	}
	for _, env := range []string{rightEnv, rightEnv + "GATEWAY_RELAY_URL=http://127.0.0.1:8787\n"} {
		for _, version := range []string{"0.21.5", "0.22.2"} {
			list := newHome(t, off, env).runs().examine(version)
			mustFind(t, list, "relay_not_configured", "platforms.relay.enabled is false")
			mustFind(t, Shorten(list), "relay_not_configured") // nothing else hides it
		}
	}
}

// TestPublicPlugin: the plugin hermes-mobile of Hermes' catalog is told apart by its manifest, its folder or both, and is a conflict
// where it is on: by its port, by the name that it registers, and by how it reads tokens.
func TestPublicPlugin(t *testing.T) {
	enabled := right(t) + "plugins: {enabled: [hermes-mobile]}\n"
	with := func(folder, manifest, config, env string) *hermesHome {
		h := newHome(t, config, env).runs()
		h.write("plugins/"+folder+"/__init__.py", "def register(ctx): pass\n")
		if manifest != "" {
			h.write("plugins/"+folder+"/plugin.yaml", manifest)
		}
		return h
	}
	const manifest = "name: hermes-mobile\nversion: 1.1.1\n"
	for name, h := range map[string]*hermesHome{
		"by both":             with("hermes-mobile", manifest, enabled, rightEnv),
		"by its manifest":     with("phones", manifest, enabled, rightEnv),
		"by its folder":       with("hermes-mobile", "", enabled, rightEnv),
		"a broken manifest":   with("hermes-mobile", "a: [\n", enabled, rightEnv),
		"with an underscore":  with("x", "name: hermes_mobile\n", right(t)+"plugins: {enabled: [hermes_mobile]}\n", rightEnv),
		"enabled by a folder": with("phones", manifest, right(t)+"plugins: {enabled: [phones]}\n", rightEnv),
	} {
		t.Run(name, func(t *testing.T) {
			f := h.look("0.22.2")
			f.Port = &Port{Address: "127.0.0.1:8787", Free: 8790}
			list := Check(f)
			mustFind(t, list, "public_plugin_port", "8787", h.path, "MOBILE_PORT=8790", "plugins disable hermes-mobile", "starts first")
			f.Port.Taken, f.Port.Holder = true, fmt.Sprintf("python3.11 (process %d)", os.Getpid())
			mustFind(t, Check(f), "public_plugin_port", "The plugin's gateway uses it now")
			mustNotFind(t, Shorten(Check(f)), "port_in_use", "server_not_running")
			f.Port.Holder = "nc (process 1)"
			mustFind(t, Check(f), "public_plugin_port", "nc (process 1) has it now")
			f.Server = &Server{Address: "127.0.0.1:8787", Started: time.Now()}
			mustFind(t, Check(f), "public_plugin_port", "This server uses it now")
			f.Server.Address = "127.0.0.1:8788"
			mustNotFind(t, Check(f), "public_plugin_port")
		})
	}
	for name, h := range map[string]*hermesHome{
		"off":              with("hermes-mobile", manifest, right(t), rightEnv),
		"another plugin":   with("mobile", "name: mobile\n", enabled, rightEnv),
		"named, not there": newHome(t, enabled, rightEnv).runs(),
		"at another port":  with("hermes-mobile", manifest, enabled, rightEnv),
	} {
		t.Run(name, func(t *testing.T) {
			var more []string
			if name == "at another port" {
				more = []string{"MOBILE_PORT=8799"}
			}
			mustNotFind(t, h.examine("0.22.2", more...), "public_plugin_port", "public_plugin_name")
		})
	}
	h := with("hermes-mobile", manifest, enabled, rightEnv+"MOBILE_PORT=8799\n") // which the server reads, too
	mustFind(t, h.examine("0.22.2"), "public_plugin_port", "8799")

	both := with("hermes-mobile", manifest, right(t)+"plugins: {enabled: [hermes-mobile, mobile-platform]}\n", rightEnv+"GATEWAY_RELAY_PLATFORMS=mobile,relay\n")
	both.write("plugins/mobile-platform/plugin.yaml", "name: mobile-platform\n")
	both.write("plugins/mobile-platform/__init__.py", "def register(ctx): pass\n")
	mustFind(t, both.examine("0.22.2"), "public_plugin_name", "mobile-platform", "plugins disable hermes-mobile")

	tokens := "MOBILE_EXTRA_TOKENS=tel-1=0123456789abcdef,device:tel-2=0123456789abcdeF,0123456789abcdefg=="
	list := with("hermes-mobile", manifest, right(t), rightEnv).examine("0.22.2", tokens)
	mustFind(t, list, "tokens_not_bound", "tel-1.", "MOBILE_EXTRA_TOKENS_BIND")
	for _, f := range list {
		if strings.Contains(f.Text, "tel-2") || strings.Contains(f.Text, "0123456789") {
			t.Errorf("it says %q", f.Text)
		}
	}
	for _, said := range []string{"yes", "no"} {
		mustNotFind(t, with("hermes-mobile", manifest, right(t), rightEnv).examine("0.22.2", tokens, "MOBILE_EXTRA_TOKENS_BIND="+said), "tokens_not_bound")
	}
	mustNotFind(t, newHome(t, right(t), rightEnv).runs().examine("0.22.2", tokens), "tokens_not_bound")
}
