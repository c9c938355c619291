package doctor

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/setup"
)

var (
	oldest = setup.Version{Major: 0, Minor: 19} // the first version with a relay
	// minAPIKey is the shortest key with which the API server starts (doc/hermes/api.md).
	minAPIKey = 16
)

// version returns the version of the Hermes on this machine, or the one that its gateway reported.
func (k *checker) version(mine *relay.GatewayState) setup.Version {
	v := k.Hermes.Version
	if !v.Known() && mine != nil {
		v, _ = setup.ParseVersion(string(mine.Version))
	}
	return v
}

// local checks the Hermes on this machine for every agent. It reports whether the settings are readable.
func (k *checker) local(id string) bool {
	h := k.Hermes
	if h == nil {
		return false
	}
	if !h.Exists {
		k.find("hermes_missing", "", "Install Hermes, or set HERMES_HOME", "There is no Hermes home at %s.", k.Config.HermesHome)
		return false
	}
	if h.Hidden {
		k.find("hermes_hidden", id, fmt.Sprintf("To check them, run as root: HERMES_HOME=%s hermes-mobile setup --print --data %s", h.Home.Path, k.Config.Data),
			"The Hermes home %s belongs to another account, so the doctor can't check its settings.", h.Home.Path)
		return false
	}
	if h.Version.Before(oldest) {
		k.find("hermes_too_old", id, "Update it with hermes update, then run: "+hermesCommand(h.Home, "gateway restart"), "Hermes has version %s, but phones need 0.19 or newer.", h.Version)
	}
	if h.Files == nil {
		k.find("hermes_unreadable", id, "Let the server read them, or run it under its own account, which does not need them: hermes-mobile setup --service systemd, as root", "The settings of Hermes in %s are unreadable: %s", h.Home.Path, sentence(h.Unread.Error()))
		return false
	}
	if h.Files.Broken != nil {
		k.find("hermes_config_broken", id, "Fix that line, then run: "+hermesCommand(h.Home, "gateway restart"), "Hermes can't use its settings in %s: %s", h.Home.Path, sentence(h.Files.Broken.Error()))
		return false
	}
	if h.Files.Text("model") == "" && h.Files.Text("model.default") == "" && h.Files.Text("model.model") == "" {
		k.find("model_missing", id, "Choose one with "+hermesCommand(h.Home, "model")+", then restart the gateway", "%s names no model (model.default), so Hermes can't answer.", h.Files.ConfigPath)
	}
	k.catalogPlugin(id)
	return true
}

// expectation says whether the Hermes on this machine may be one of the offline gateways.
type expectation struct {
	here  bool // an offline gateway could be it
	first bool // one of these was never connected
}

// hermes checks the Hermes on this machine as a gateway that dials in.
func (k *checker) hermes(links []link, expected expectation) {
	h := k.Hermes
	if h.Hidden || h.Files == nil || h.Files.Broken != nil {
		if expected.here {
			k.local("")
		}
		return
	}
	r := relayOf(h.Files)
	var mine *relay.GatewayState
	online := false
	for _, l := range links {
		if l.id == r.id {
			mine, online = l.state, l.online()
		}
	}
	if only := onlyLocal(links); only != nil && h.Process != nil && only.online() {
		k.onDisk(*only, r)
	}
	if !r.complete() {
		// A gateway that was connected before is set up. If this home is not, that gateway is on another machine.
		if only := onlyLocal(links); expected.first || expected.here && (!r.blank() || only != nil && !only.online()) {
			k.local("")
			k.find("relay_not_configured", "", "Run hermes-mobile setup, then restart the gateway", "Hermes (%s) is not set up for this server: %s", h.Home.Path, r.lacks(h.Files))
			k.otherMessengers(k.version(mine))
			k.running("")
		}
		return
	}
	if !expected.here && mine == nil {
		return // it belongs to another server
	}
	k.local(r.id)
	if !online {
		k.credentials(r)
		k.address(r)
		k.running(r.id)
	}
	k.behavior(r, k.version(mine))
}

// onlyLocal returns the only gateway, if it is or was connected from this machine.
func onlyLocal(links []link) *link {
	if len(links) != 1 || links[0].elsewhere || links[0].state == nil || !links[0].state.Local || !links[0].been() {
		return nil
	}
	return &links[0]
}

// onDisk compares a connected gateway with the settings that it will read at its next start.
func (k *checker) onDisk(l link, r relaySettings) {
	lacks := ""
	g, _ := k.gateway(l.id)
	switch {
	case !r.complete():
		lacks = r.lacks(k.Hermes.Files)
	case r.id != l.id:
		lacks = "GATEWAY_RELAY_ID there is " + r.id + "."
	case !sameSecret(g.Secret.Reveal(), r.secret):
		lacks = "GATEWAY_RELAY_SECRET there differs from the server's."
	default:
		return
	}
	k.find("gateway_not_on_disk", l.id, "Write the settings again: hermes-mobile setup", "The gateway %s is connected with settings that are no longer in %s, and won't reconnect after a restart: %s", l.name, k.Hermes.Home.Path, lacks)
}

// relaySettings are the settings that a gateway reads before it dials.
type relaySettings struct {
	url, where string // the address, and the setting with it
	fromEnv    bool
	here, also bool // gateway.relay_url, platforms.relay.extra.relay_url
	off        bool // platforms.relay.enabled: false
	id, secret string
}

func relayOf(f *setup.Files) relaySettings {
	r := relaySettings{}
	r.id, _ = f.Env("GATEWAY_RELAY_ID")
	r.secret, _ = f.Env("GATEWAY_RELAY_SECRET")
	if r.id == "" {
		r.id = f.Text("gateway.relay_id")
	}
	if r.secret == "" {
		r.secret = f.Text("gateway.relay_secret")
	}
	top, below := f.Text("gateway.relay_url"), f.Text("platforms.relay.extra.relay_url")
	r.here, r.also = top != "", below != ""
	enabled, set := f.Value("platforms.relay.enabled")
	r.off = set && !truthy(enabled)
	if r.url, r.fromEnv = f.Env("GATEWAY_RELAY_URL"); r.fromEnv {
		r.where = "GATEWAY_RELAY_URL in " + f.EnvWhere("GATEWAY_RELAY_URL")
	} else if r.url = top; top != "" {
		r.where = "gateway.relay_url in " + f.ConfigPath
	}
	return r
}

func (r relaySettings) complete() bool {
	return !r.off && (r.fromEnv || r.here && r.also) && r.id != "" && r.secret != ""
}

// blank reports whether no relay setting exists.
func (r relaySettings) blank() bool {
	return !r.fromEnv && !r.here && !r.also && r.id == "" && r.secret == ""
}

// lacks lists the missing settings.
func (r relaySettings) lacks(f *setup.Files) string {
	var list []string
	switch {
	case r.off:
		list = append(list, "platforms.relay.enabled is false in config.yaml")
	case r.fromEnv || r.here && r.also:
	case !r.here && !r.also:
		list = append(list, "gateway.relay_url and platforms.relay.extra.relay_url are missing in config.yaml")
	case !r.here:
		list = append(list, "gateway.relay_url is missing in config.yaml")
	default:
		list = append(list, "platforms.relay.extra.relay_url is missing in config.yaml (gateway.relay_url alone is not enough)")
	}
	if r.id == "" {
		list = append(list, "GATEWAY_RELAY_ID is missing in .env")
	}
	if r.secret == "" {
		list = append(list, "GATEWAY_RELAY_SECRET is missing in .env")
	}
	return strings.Join(list, ", ") + "."
}

// credentials compares the id and secret of the Hermes on this machine with those that the server accepts.
func (k *checker) credentials(r relaySettings) {
	g, known := k.gateway(r.id)
	switch {
	case len(k.Gateways) == 0: // no server has created a secret yet
	case !known:
		k.find("gateway_unknown_id", "", "Use the same id on both sides: run hermes-mobile setup, then restart the gateway", "Hermes has GATEWAY_RELAY_ID=%s, but the server knows %s.", r.id, k.ids())
	case !sameSecret(g.Secret.Reveal(), r.secret):
		k.find("gateway_wrong_secret", r.id, "Use the same secret on both sides: run hermes-mobile setup, then restart the gateway", "GATEWAY_RELAY_SECRET of Hermes (%s) differs from the server's secret for the gateway %s.", k.Hermes.Home.Path, r.id)
	}
}

func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// running checks that the gateway is running.
func (k *checker) running(id string) {
	if h := k.Hermes; h.Process == nil {
		k.find("gateway_not_running", id, "Start it: "+hermesCommand(h.Home, "gateway run")+" (or as a service: "+hermesCommand(h.Home, "gateway start")+")", "The gateway of %s is not running.", h.Home.Path)
	}
}

// behavior checks settings of Hermes that cause trouble for phones.
func (k *checker) behavior(r relaySettings, v setup.Version) {
	h := k.Hermes
	f, restart := h.Files, ". Then run "+hermesCommand(h.Home, "gateway restart")
	if busyAck(f) {
		k.find("busy_ack_on", r.id, "Run hermes-mobile setup, or set display.busy_ack_enabled: false in "+f.ConfigPath+restart, "display.busy_ack_enabled is on: a second message during a turn stalls the gateway for 30 seconds.")
	}
	if mode := busyMode(f); mode != "queue" && mode != "steer" {
		k.find("busy_input_mode", r.id, "Run hermes-mobile setup, or set display.busy_input_mode: steer in "+f.ConfigPath+restart, "display.busy_input_mode is %q: a message during a turn changes that turn and gets no reply of its own.", mode)
	}
	plugin := f.Plugin()
	platform := "relay"
	if plugin.Named {
		platform = plugin.Platform
	}
	if v.Streams() {
		if why := streamingOff(f, platform); why != "" {
			k.find("streaming_off", r.id, "Run hermes-mobile setup, or set streaming: {enabled: true} in "+f.ConfigPath+restart, "Replies are not streamed: %s.", why)
		}
		if mode, ok := f.Value("display.platforms." + platform + ".tool_progress"); !ok || strings.ToLower(fmt.Sprint(mode)) != "off" && mode != any(false) {
			k.find("tool_progress_on", r.id, "Run hermes-mobile setup, or set display.platforms."+platform+".tool_progress: \"off\" in "+f.ConfigPath+restart, "display.platforms.%s.tool_progress is not off: Hermes posts a message for every tool call.", platform)
		}
	} else if v.Known() && streamingOff(f, platform) == "" {
		k.find("streaming_unsupported", r.id, "Update Hermes, or set streaming: {enabled: false} in "+f.ConfigPath+restart, "streaming.enabled is on, but Hermes %s can't stream over a relay: replies arrive in two pieces.", v)
	}
	k.otherMessengers(v)
	k.plugin(r.id, plugin, v)
	k.jobs(r.id, plugin)
	if mode := f.EnvMode; mode&0o077 != 0 {
		k.find("hermes_env_readable", r.id, "chmod 600 "+f.EnvPath, "%s has mode %03o: other users of this machine can read the gateway's secret.", f.EnvPath, mode)
	}
}

// jobs checks for scheduled jobs whose results were not delivered.
func (k *checker) jobs(id string, p setup.Plugin) {
	for i, j := range k.Hermes.Jobs {
		if i == fewJobs {
			k.find("job_not_delivered", id, "See: "+hermesCommand(k.Hermes.Home, "cron list"), "The results of %s more were not delivered.", plural(len(k.Hermes.Jobs)-i, "job", "jobs"))
			break
		}
		do := "Check where it reports with " + hermesCommand(k.Hermes.Home, "cron list") + ", or create it again in the chat where it must report"
		if strings.Contains(j.Why, "does not front platform") && !(p.Named && p.Old) {
			do = "Let Hermes serve both names: run hermes-mobile setup --plugin, then " + hermesCommand(k.Hermes.Home, "gateway restart")
		}
		k.find("job_not_delivered", id, do, "The last result of the scheduled job %q was not delivered: %s", j.Name, sentence(j.Why))
	}
}

// fewJobs is the number of jobs with an issue of their own.
const fewJobs = 5

// streamingOff returns why Hermes does not stream replies. It is empty if Hermes streams.
func streamingOff(f *setup.Files, platform string) string {
	transport := strings.ToLower(f.Text("streaming.transport"))
	mode, hasMode := f.Value("streaming.mode")
	off := func(v any) bool { return v == any(false) || strings.EqualFold(fmt.Sprint(v), "off") }
	if enabled, set := f.Value("streaming.enabled"); set && !truthy(enabled) {
		return "streaming.enabled is false"
	} else if !set && (!hasMode || off(mode)) {
		return "streaming.enabled is not set"
	}
	if transport == "off" || transport == "" && hasMode && off(mode) {
		return "streaming.transport is off"
	}
	if on, set := f.Value("display.platforms." + platform + ".streaming"); set && !truthy(on) {
		return "display.platforms." + platform + ".streaming is false"
	}
	return ""
}

// catalogPlugin checks the plugin hermes-mobile from Hermes' catalog, which also connects phones to the same
// Hermes.
func (k *checker) catalogPlugin(id string) {
	p, there := k.Hermes.Files.PublicPlugin()
	if !there {
		return
	}
	if names := k.labels(); len(names) > 0 && !k.Config.ExtraTokensBindSet {
		k.find("tokens_not_bound", "", "Set MOBILE_EXTRA_TOKENS_BIND=yes if the names are device ids, or no if they are labels. Then restart the server.",
			"The plugin in %s binds tokens in MOBILE_EXTRA_TOKENS to devices by their names, but this server does not: %s.", p.Folder, strings.Join(names, ", "))
	}
	if !p.Enabled {
		return
	}
	if own := k.Hermes.Files.Plugin(); own.Enabled && own.Code {
		k.find("public_plugin_name", id, "Disable one: run "+hermesCommand(k.Hermes.Home, "plugins disable hermes-mobile")+", then restart the gateway",
			"The plugin in %s and the plugin %s both register the platform %s, and Hermes uses only one of them.", p.Folder, own.Name, own.Platform)
	}
	if p.Port != k.listens() {
		return
	}
	who := "Whichever starts first gets it."
	switch {
	case k.Server != nil:
		who = "This server uses it now, so the plugin can't listen."
	case k.Port != nil && k.Port.Taken:
		who = "The plugin's gateway uses it now, so this server can't listen."
		if holder := k.Port.Holder; holder != "" && (k.Hermes.Process == nil || !strings.HasSuffix(holder, fmt.Sprintf("(process %d)", k.Hermes.Process.PID))) {
			who = holder + " has it now, so this server cannot listen."
		}
	}
	do := "To use both, set another MOBILE_PORT for this server"
	if k.Port != nil && k.Port.Free > 0 {
		do = fmt.Sprintf("To use both, set MOBILE_PORT=%d for this server", k.Port.Free)
	}
	k.find("public_plugin_port", id, do+", then run hermes-mobile setup. To disable the plugin, run "+hermesCommand(k.Hermes.Home, "plugins disable hermes-mobile")+", then restart the gateway",
		"The plugin in %s serves phones on port %d, which is this server's port. %s", p.Folder, p.Port, who)
}

// listens returns the port that the server listens on, or would listen on.
func (k *checker) listens() int {
	if k.Server != nil {
		if _, text, err := net.SplitHostPort(k.Server.Address); err == nil {
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
		}
	}
	return k.Config.Port
}

// labels returns the labels in MOBILE_EXTRA_TOKENS of tokens that any device may use.
func (k *checker) labels() (names []string) {
	if k.Config.ExtraTokensBind {
		return nil
	}
	for item := range strings.SplitSeq(k.Config.ExtraTokens.Reveal(), ",") {
		name, secret, found := strings.Cut(strings.TrimSpace(item), "=")
		if found && strings.Trim(secret, "=") != "" && access.ValidLabel(name) {
			names = append(names, name)
		}
	}
	return names
}

// plugin checks the plugin from setup --plugin.
func (k *checker) plugin(id string, p setup.Plugin, v setup.Version) {
	files := p.Manifest || p.Code
	switch {
	case v.Known() && !v.Plugins() && (p.Enabled && p.Code || p.Named):
		k.find("plugin_unsupported", id, "Run hermes-mobile setup --undo and hermes-mobile setup, then restart the gateway", "The plugin %s is enabled, but Hermes %s does not support it: approvals, questions, and jobs fail.", p.Name, v)
	case v.Known() && !v.Plugins(), !files && !p.Enabled && !p.Named, p.Manifest && p.Code && p.Enabled && p.Named && p.Old:
	case files && !p.Enabled && !p.Named: // installed but disabled
	default:
		var lacks []string
		for _, part := range []struct {
			there bool
			name  string
		}{{p.Manifest, "its plugin.yaml"}, {p.Code, "its __init__.py"}, {p.Enabled, "its name in plugins.enabled"}, {p.Named && p.Old, "GATEWAY_RELAY_PLATFORMS=" + p.Platform + ",relay in .env"}} {
			if !part.there {
				lacks = append(lacks, part.name)
			}
		}
		k.find("plugin_incomplete", id, "Complete it with hermes-mobile setup --plugin, or remove it with hermes-mobile setup --undo. Then restart the gateway", "The plugin %s is only partly installed: it lacks %s.", p.Name, strings.Join(lacks, " and "))
	}
}

// messengers lists the messengers that Hermes connects directly, by the variables that set them up.
var messengers = []struct{ env, name string }{
	{"TELEGRAM_BOT_TOKEN", "telegram"}, {"DISCORD_BOT_TOKEN", "discord"}, {"SLACK_BOT_TOKEN", "slack"}, {"SIGNAL_HTTP_URL", "signal"}, {"MATTERMOST_TOKEN", "mattermost"},
	{"MATRIX_ACCESS_TOKEN", "matrix"}, {"MATRIX_PASSWORD", "matrix"}, {"EMAIL_ADDRESS", "email"}, {"TWILIO_ACCOUNT_SID", "sms"}, {"WHATSAPP_ENABLED", "whatsapp"},
	{"WHATSAPP_CLOUD_ACCESS_TOKEN", "whatsapp_cloud"}, {"DINGTALK_CLIENT_ID", "dingtalk"}, {"FEISHU_APP_ID", "feishu"}, {"WECOM_BOT_ID", "wecom"},
	{"WECOM_CALLBACK_CORP_ID", "wecom_callback"}, {"WEIXIN_TOKEN", "weixin"}, {"BLUEBUBBLES_SERVER_URL", "bluebubbles"}, {"QQ_APP_ID", "qqbot"}, {"YUANBAO_APP_ID", "yuanbao"},
}

// otherMessengers checks for messengers that GATEWAY_RELAY_URL disables.
func (k *checker) otherMessengers(v setup.Version) {
	f := k.Hermes.Files
	if _, byEnv := f.Env("GATEWAY_RELAY_URL"); !byEnv || !v.Plugins() {
		return
	}
	if allow, _ := f.Env("GATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS"); truthy(allow) {
		return
	}
	var off []string
	for _, m := range messengers {
		if _, set := f.Env(m.env); set {
			off = append(off, m.name)
		}
	}
	for _, at := range []string{"platforms", "gateway.platforms"} {
		for _, name := range f.Keys(at) {
			on, _ := f.Value(at + "." + name + ".enabled")
			if truthy(on) && !slices.Contains([]string{"relay", "local", "api_server", "webhook"}, name) {
				off = append(off, name)
			}
		}
	}
	slices.Sort(off)
	if off = slices.Compact(off); len(off) > 0 {
		k.find("other_messengers_off", "", "Run hermes-mobile setup, which moves it to config.yaml, or set GATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS=true in .env. Then restart the gateway",
			"GATEWAY_RELAY_URL in %s disables other messengers of Hermes: %s.", f.EnvWhere("GATEWAY_RELAY_URL"), strings.Join(off, ", "))
	}
}

// apiServer checks the settings of Hermes' API server, which the agent direct needs.
func (k *checker) apiServer() {
	h := k.Hermes
	if h == nil || !h.Exists || h.Files == nil || h.Files.Broken != nil {
		return
	}
	key, where := "", "API_SERVER_KEY in "+h.Files.EnvWhere("API_SERVER_KEY")
	if v, ok := h.Files.Env("API_SERVER_KEY"); ok {
		key = v
	} else if key = h.Files.Text("platforms.api_server.extra.key"); key != "" {
		where = "platforms.api_server.extra.key in " + h.Files.ConfigPath
	}
	on, set := h.Files.Value("platforms.api_server.enabled")
	do := "Set API_SERVER_ENABLED=true and API_SERVER_KEY=<output of openssl rand -hex 32> in " + h.Files.EnvPath + ". Then run " + hermesCommand(h.Home, "gateway restart")
	switch {
	case set && !truthy(on):
		k.find("api_server_off", "", "Remove platforms.api_server.enabled: false from "+h.Files.ConfigPath+". "+do, "platforms.api_server.enabled is false in %s.", h.Files.ConfigPath)
	case key == "":
		k.find("api_server_off", "", do, "Hermes' API server has no key, so it does not start.")
	case len(key) < minAPIKey:
		k.find("api_server_off", "", do, "%s has %d characters, but the API server requires at least %d.", where, len(key), minAPIKey)
	}
	k.running("")
}

// truthy reports whether Hermes reads a value as yes.
func truthy(v any) bool {
	switch x := v.(type) {
	case bool:
		return x
	case string:
		return slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(x)))
	case uint64:
		return x != 0
	case int64:
		return x != 0
	case int:
		return x != 0
	}
	return false
}
