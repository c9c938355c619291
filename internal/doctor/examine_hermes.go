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
	oldest = setup.Version{Major: 0, Minor: 19} // that has a relay
	// minAPIKey is the shortest key with which the API server starts (api-facts).
	minAPIKey = 16
)

// version is that of the Hermes here, or what its gateway has shown.
func (e *examination) version(mine *relay.GatewayState) setup.Version {
	v := e.Hermes.Version
	if !v.Known() && mine != nil {
		v, _ = setup.ParseVersion(string(mine.Version))
	}
	return v
}

// local looks at the Hermes of this machine, whoever speaks to it, and reports whether there is something to go on with.
func (e *examination) local(id string) bool {
	h := e.Hermes
	if h == nil {
		return false
	}
	if !h.Exists {
		e.find("hermes_missing", "", "Install Hermes, or name its home with HERMES_HOME", "There is no Hermes home at %s.", e.Config.HermesHome)
		return false
	}
	if h.Hidden {
		e.find("hermes_hidden", id, fmt.Sprintf("Look at them as root: HERMES_HOME=%s hermes-mobile setup --print --data %s", h.Home.Path, e.Config.Data),
			"The Hermes home %s belongs to another account, so its settings are not checked.", h.Home.Path)
		return false
	}
	if h.Version.Before(oldest) {
		e.find("hermes_too_old", id, "Update it (hermes update), then: "+hermesCommand(h.Home, "gateway restart"), "Hermes is %s, and a phone needs 0.19 or newer.", h.Version)
	}
	if h.Files == nil {
		e.find("hermes_unreadable", id, "Let the server read them, or give it an account of its own, which need not: hermes-mobile setup --service systemd, as root", "The settings of Hermes in %s cannot be read: %s", h.Home.Path, sentence(h.Unread.Error()))
		return false
	}
	if h.Files.Broken != nil {
		e.find("hermes_config_broken", id, "Repair that line, then: "+hermesCommand(h.Home, "gateway restart"), "Hermes cannot use its settings in %s: %s", h.Home.Path, sentence(h.Files.Broken.Error()))
		return false
	}
	if h.Files.Text("model") == "" && h.Files.Text("model.default") == "" && h.Files.Text("model.model") == "" {
		e.find("model_missing", id, "Choose one: "+hermesCommand(h.Home, "model")+"; then restart the gateway", "%s names no model (model.default), so nothing can answer.", h.Files.ConfigPath)
	}
	e.public(id)
	return true
}

// expectation says whether the Hermes of this machine may be a gateway that is away.
type expectation struct {
	here  bool // some gateway is away that could be it
	first bool // one of them has never been there
}

// hermes looks at the Hermes of this machine as a gateway that dials in.
func (e *examination) hermes(links []link, expected expectation) {
	h := e.Hermes
	if h.Hidden || h.Files == nil || h.Files.Broken != nil {
		if expected.here {
			e.local("")
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
		e.onDisk(*only, r)
	}
	if !r.complete() {
		// One that was there before was told of the server: on another machine, where this one knows nothing of it.
		if only := onlyLocal(links); expected.first || expected.here && (!r.blank() || only != nil && !only.online()) {
			e.local("")
			e.find("relay_not_configured", "", "Let hermes-mobile write it: hermes-mobile setup; then restart the gateway", "Hermes (%s) is not told of this server: %s", h.Home.Path, r.lacks(h.Files))
			e.otherMessengers(e.version(mine))
			e.running("")
		}
		return
	}
	if !expected.here && mine == nil {
		return // it belongs to another server
	}
	e.local(r.id)
	if !online {
		e.mayEnter(r)
		e.address(r)
		e.running(r.id)
	}
	e.behaviour(r, e.version(mine))
}

// onlyLocal is the one gateway there is, where it dials or last dialled from this machine.
func onlyLocal(links []link) *link {
	if len(links) != 1 || links[0].elsewhere || links[0].state == nil || !links[0].state.Local || !links[0].been() {
		return nil
	}
	return &links[0]
}

// onDisk compares a gateway that is connected with what it reads when it starts again.
func (e *examination) onDisk(l link, r relaySettings) {
	lacks := ""
	g, _ := e.gateway(l.id)
	switch {
	case !r.complete():
		lacks = r.lacks(e.Hermes.Files)
	case r.id != l.id:
		lacks = "GATEWAY_RELAY_ID is " + r.id + " there."
	case !sameSecret(g.Secret.Reveal(), r.secret):
		lacks = "GATEWAY_RELAY_SECRET there is not the one that the server has."
	default:
		return
	}
	e.find("gateway_not_on_disk", l.id, "Write them again: hermes-mobile setup", "The gateway %s is connected with settings that are no longer in %s, and will not come back after a restart: %s", l.name, e.Hermes.Home.Path, lacks)
}

// relaySettings is what a gateway reads before it dials.
type relaySettings struct {
	url, where string // the address, and which setting says it
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

// blank reports whether there is no word of a relay at all.
func (r relaySettings) blank() bool {
	return !r.fromEnv && !r.here && !r.also && r.id == "" && r.secret == ""
}

// lacks says what is missing.
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
		list = append(list, "platforms.relay.extra.relay_url is missing in config.yaml, and by gateway.relay_url alone it does not connect")
	}
	if r.id == "" {
		list = append(list, "GATEWAY_RELAY_ID is missing in .env")
	}
	if r.secret == "" {
		list = append(list, "GATEWAY_RELAY_SECRET is missing in .env")
	}
	return strings.Join(list, ", ") + "."
}

// mayEnter compares id and secret of the Hermes here with what the server lets in.
func (e *examination) mayEnter(r relaySettings) {
	g, known := e.gateway(r.id)
	switch {
	case len(e.Gateways) == 0: // no server has made a secret yet
	case !known:
		e.find("gateway_unknown_id", "", "Make both sides the same: hermes-mobile setup; then restart the gateway", "Hermes says GATEWAY_RELAY_ID=%s, and the server knows %s.", r.id, e.ids())
	case !sameSecret(g.Secret.Reveal(), r.secret):
		e.find("gateway_wrong_secret", r.id, "Make both sides the same: hermes-mobile setup; then restart the gateway", "GATEWAY_RELAY_SECRET of Hermes (%s) is not the one that the server has for the gateway %s.", e.Hermes.Home.Path, r.id)
	}
}

func sameSecret(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// running looks for the process of the gateway.
func (e *examination) running(id string) {
	if h := e.Hermes; h.Process == nil {
		e.find("gateway_not_running", id, "Start it: "+hermesCommand(h.Home, "gateway run")+" (as a service: "+hermesCommand(h.Home, "gateway start")+")", "The gateway of %s is not running.", h.Home.Path)
	}
}

// behaviour looks at settings of Hermes that a phone suffers from.
func (e *examination) behaviour(r relaySettings, v setup.Version) {
	h := e.Hermes
	f, restart := h.Files, "; then: "+hermesCommand(h.Home, "gateway restart")
	if busyAck(f) {
		e.find("busy_ack_on", r.id, "hermes-mobile setup, or display.busy_ack_enabled: false in "+f.ConfigPath+restart, "display.busy_ack_enabled is on: a second message during a turn makes the gateway deaf for 30 seconds.")
	}
	if mode := busyMode(f); mode != "queue" && mode != "steer" {
		e.find("busy_input_mode", r.id, "hermes-mobile setup, or display.busy_input_mode: steer in "+f.ConfigPath+restart, "display.busy_input_mode is %q: a message during a turn changes that turn and gets no reply of its own.", mode)
	}
	plugin := f.Plugin()
	platform := "relay"
	if plugin.Named {
		platform = plugin.Platform
	}
	if v.Streams() {
		if why := streamingOff(f, platform); why != "" {
			e.find("streaming_off", r.id, "hermes-mobile setup, or streaming: {enabled: true} in "+f.ConfigPath+restart, "Replies are not streamed: %s.", why)
		}
		if mode, ok := f.Value("display.platforms." + platform + ".tool_progress"); !ok || strings.ToLower(fmt.Sprint(mode)) != "off" && mode != any(false) {
			e.find("tool_progress_on", r.id, "hermes-mobile setup, or display.platforms."+platform+".tool_progress: \"off\" in "+f.ConfigPath+restart, "display.platforms.%s.tool_progress is not off: every tool that is used is told in words.", platform)
		}
	} else if v.Known() && streamingOff(f, platform) == "" {
		e.find("streaming_unsupported", r.id, "streaming: {enabled: false} in "+f.ConfigPath+", or update Hermes"+restart, "streaming.enabled is on, and Hermes %s cannot stream over a relay: replies come in two pieces.", v)
	}
	e.otherMessengers(v)
	e.plugin(r.id, plugin, v)
	e.jobs(r.id, plugin)
	if mode := f.EnvMode; mode&0o077 != 0 {
		e.find("hermes_env_readable", r.id, "chmod 600 "+f.EnvPath, "%s has mode %03o: other accounts of this machine can read the secret of the gateway in it.", f.EnvPath, mode)
	}
}

// jobs names scheduled jobs whose results do not arrive.
func (e *examination) jobs(id string, p setup.Plugin) {
	for i, j := range e.Hermes.Jobs {
		if i == fewJobs {
			e.find("job_not_delivered", id, "See: "+hermesCommand(e.Hermes.Home, "cron list"), "And %s more.", plural(len(e.Hermes.Jobs)-i, "job", "jobs"))
			break
		}
		do := "Look at what it has as deliver: " + hermesCommand(e.Hermes.Home, "cron list") + "; or make it anew in the chat where it is to report"
		if strings.Contains(j.Why, "does not front platform") && !(p.Named && p.Old) {
			do = "Let Hermes serve both names: hermes-mobile setup --plugin; then: " + hermesCommand(e.Hermes.Home, "gateway restart")
		}
		e.find("job_not_delivered", id, do, "The last result of the scheduled job %q did not arrive: %s", j.Name, sentence(j.Why))
	}
}

// fewJobs are named one by one.
const fewJobs = 5

// streamingOff says why replies are not streamed, or nothing.
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
		return "the transport of streaming is off"
	}
	if on, set := f.Value("display.platforms." + platform + ".streaming"); set && !truthy(on) {
		return "display.platforms." + platform + ".streaming is false"
	}
	return ""
}

// public looks at the public plugin, which is another way from a phone to the same Hermes.
func (e *examination) public(id string) {
	p, there := e.Hermes.Files.PublicPlugin()
	if !there {
		return
	}
	if names := e.labels(); len(names) > 0 && !e.Config.ExtraTokensBindSet {
		e.find("tokens_not_bound", "", "Set MOBILE_EXTRA_TOKENS_BIND=yes if these are ids of devices, or no if they are labels, and restart the server.",
			"The plugin in %s binds tokens of MOBILE_EXTRA_TOKENS to devices by their names, and this server does not: %s.", p.Folder, strings.Join(names, ", "))
	}
	if !p.Enabled {
		return
	}
	if own := e.Hermes.Files.Plugin(); own.Enabled && own.Code {
		e.find("public_plugin_name", id, "Disable one: "+hermesCommand(e.Hermes.Home, "plugins disable hermes-mobile")+"; then restart the gateway",
			"The plugin in %s and the plug-in %s both register the platform %s, and Hermes keeps one of them.", p.Folder, own.Name, own.Platform)
	}
	if p.Port != e.listens() {
		return
	}
	who := "Whichever starts first has it."
	switch {
	case e.Server != nil:
		who = "This server has it now, so the plugin cannot listen."
	case e.Port != nil && e.Port.Taken:
		who = "The plugin's gateway has it now, so this server cannot listen."
		if holder := e.Port.Holder; holder != "" && (e.Hermes.Process == nil || !strings.HasSuffix(holder, fmt.Sprintf("(process %d)", e.Hermes.Process.PID))) {
			who = holder + " has it now, so this server cannot listen."
		}
	}
	do := "To keep both, give this server another port with MOBILE_PORT"
	if e.Port != nil && e.Port.Free > 0 {
		do = fmt.Sprintf("To keep both, set MOBILE_PORT=%d for this server", e.Port.Free)
	}
	e.find("public_plugin_port", id, do+", and run: hermes-mobile setup. To stop the plugin: "+hermesCommand(e.Hermes.Home, "plugins disable hermes-mobile")+"; then restart the gateway",
		"The plugin in %s serves phones from within the gateway at port %d, which is this server's. %s", p.Folder, p.Port, who)
}

// listens is the port that the server listens on, or would.
func (e *examination) listens() int {
	if e.Server != nil {
		if _, text, err := net.SplitHostPort(e.Server.Address); err == nil {
			if n, err := strconv.Atoi(text); err == nil {
				return n
			}
		}
	}
	return e.Config.Port
}

// labels are those that MOBILE_EXTRA_TOKENS gives to tokens that any device may use.
func (e *examination) labels() (names []string) {
	if e.Config.ExtraTokensBind {
		return nil
	}
	for item := range strings.SplitSeq(e.Config.ExtraTokens.Reveal(), ",") {
		name, secret, found := strings.Cut(strings.TrimSpace(item), "=")
		if found && strings.Trim(secret, "=") != "" && access.ValidLabel(name) {
			names = append(names, name)
		}
	}
	return names
}

func (e *examination) plugin(id string, p setup.Plugin, v setup.Version) {
	files := p.Manifest || p.Code
	switch {
	case v.Known() && !v.Plugins() && (p.Enabled && p.Code || p.Named):
		e.find("plugin_unsupported", id, "hermes-mobile setup --undo, then hermes-mobile setup; then restart the gateway", "The plug-in %s is on, and Hermes %s cannot deal with it: approvals, questions and jobs fail.", p.Name, v)
	case v.Known() && !v.Plugins(), !files && !p.Enabled && !p.Named, p.Manifest && p.Code && p.Enabled && p.Named && p.Old:
	case files && !p.Enabled && !p.Named: // there and switched off
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
		e.find("plugin_incomplete", id, "Complete it: hermes-mobile setup --plugin, or take it out: hermes-mobile setup --undo; then restart the gateway", "The plug-in %s is half installed: it lacks %s.", p.Name, strings.Join(lacks, " and "))
	}
}

// Messengers that Hermes connects by itself, by the variables that set them up.
var messengers = []struct{ env, name string }{
	{"TELEGRAM_BOT_TOKEN", "telegram"}, {"DISCORD_BOT_TOKEN", "discord"}, {"SLACK_BOT_TOKEN", "slack"}, {"SIGNAL_HTTP_URL", "signal"}, {"MATTERMOST_TOKEN", "mattermost"},
	{"MATRIX_ACCESS_TOKEN", "matrix"}, {"MATRIX_PASSWORD", "matrix"}, {"EMAIL_ADDRESS", "email"}, {"TWILIO_ACCOUNT_SID", "sms"}, {"WHATSAPP_ENABLED", "whatsapp"},
	{"WHATSAPP_CLOUD_ACCESS_TOKEN", "whatsapp_cloud"}, {"DINGTALK_CLIENT_ID", "dingtalk"}, {"FEISHU_APP_ID", "feishu"}, {"WECOM_BOT_ID", "wecom"},
	{"WECOM_CALLBACK_CORP_ID", "wecom_callback"}, {"WEIXIN_TOKEN", "weixin"}, {"BLUEBUBBLES_SERVER_URL", "bluebubbles"}, {"QQ_APP_ID", "qqbot"}, {"YUANBAO_APP_ID", "yuanbao"},
}

// otherMessengers finds those that a variable switches off.
func (e *examination) otherMessengers(v setup.Version) {
	f := e.Hermes.Files
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
		e.find("other_messengers_off", "", "hermes-mobile setup moves it to config.yaml; or GATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS=true in .env; then restart the gateway",
			"GATEWAY_RELAY_URL in %s switches off what else Hermes has: %s.", f.EnvWhere("GATEWAY_RELAY_URL"), strings.Join(off, ", "))
	}
}

// apiServer looks at what the agent direct needs.
func (e *examination) apiServer() {
	h := e.Hermes
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
	do := "API_SERVER_ENABLED=true and API_SERVER_KEY=<output of openssl rand -hex 32> in " + h.Files.EnvPath + "; then: " + hermesCommand(h.Home, "gateway restart")
	switch {
	case set && !truthy(on):
		e.find("api_server_off", "", do+"; and take platforms.api_server.enabled: false out of "+h.Files.ConfigPath, "platforms.api_server.enabled is false in %s.", h.Files.ConfigPath)
	case key == "":
		e.find("api_server_off", "", do, "The API server of Hermes has no key, so it does not start.")
	case len(key) < minAPIKey:
		e.find("api_server_off", "", do, "%s has %d characters, and the API server needs %d or more.", where, len(key), minAPIKey)
	}
	e.running("")
}

// truthy is what Hermes takes for yes.
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
