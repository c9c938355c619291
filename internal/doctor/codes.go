package doctor

import (
	"slices"
)

// Code describes one kind of issue.
type Code struct {
	Name     string
	Severity Severity
	Refuses  bool // the server rejects messages meanwhile: it is not ready
	Title    string
	Why      string
	Do       string
	// After lists the codes whose issue explains this one. The doctor then shows only the cause.
	After []string
}

// Area is a part of the table with its own heading.
type Area struct {
	Title string
	Codes []Code
}

// Areas returns the table of all issues, in the order of the output and the documentation.
func Areas() []Area {
	return []Area{serverArea, hermesArea, connectionArea, behaviorArea, deviceArea, publicArea}
}

var (
	table = map[string]Code{} // by name
	names []string            // in the order of the table
)

func init() {
	for _, a := range Areas() {
		for _, c := range a.Codes {
			table[c.Name] = c
			names = append(names, c.Name)
		}
	}
}

func order(code string) int { return slices.Index(names, code) }

// Names returns the codes of all issues, in the order of the table.
func Names() []string { return slices.Clone(names) }

var serverArea = Area{"The server", []Code{
	{Name: "settings_refused", Severity: Error, Title: "The settings are invalid",
		Why: "The server does not start with an invalid setting. The issue names the setting, its place, and the problem.",
		Do:  "Correct the setting. `hermes-mobile serve --help` describes every setting."},
	{Name: "settings_warning", Severity: Warning, Title: "A setting looks like a mistake",
		Why: "A name is unknown, a line is unreadable, or other users of this machine can read a file with secrets. The server starts anyway and ignores the setting.",
		Do:  "Correct the setting as the issue says, then restart the server."},
	{Name: "unencrypted", Severity: Note, Title: "Connections are not encrypted",
		Why: "Other machines can reach the server over plain HTTP. Anyone who can read the network traffic can read tokens and messages.",
		Do:  "Enable TLS with `MOBILE_TLS`, or put a TLS proxy in front and set `MOBILE_PUBLIC_URL` to its https address. You can ignore this in a network that you trust."},
	{Name: "public_plugin_port", Severity: Error, Title: "The Hermes plugin hermes-mobile uses the same port",
		Why: "The plugin `hermes-mobile` from Hermes' catalog serves phones from within the gateway, on this server's default port. Only one of the two can listen there.",
		Do:  "Use one of them: disable the plugin with `hermes plugins disable hermes-mobile` and restart the gateway, or stop this server. To use both, set another `MOBILE_PORT` for this server and run `hermes-mobile setup` again.", After: []string{"settings_refused"}},
	{Name: "port_in_use", Severity: Error, Title: "The port is already in use",
		Why: "The server cannot listen on its port. On Linux, the issue names the other program if you may see it.",
		Do:  "Stop that program. Or set another `MOBILE_PORT` and run `hermes-mobile setup` again, to update Hermes.", After: []string{"settings_refused", "public_plugin_port"}},
	{Name: "server_not_running", Severity: Error, Title: "The server is not running",
		Why: "No server answers on the data folder. Phones and the gateway can't connect.",
		Do:  "Start it with `hermes-mobile serve`, or start its service. If the server uses another data folder, pass `--data`.", After: []string{"settings_refused", "port_in_use", "public_plugin_port"}},
	{Name: "server_silent", Severity: Error, Title: "The server does not respond",
		Why: "The admin socket exists, but the command can't open it or gets no answer. Usually the command runs as another user than the server.",
		Do:  "Run the command as the server's user: `sudo -u USER hermes-mobile doctor`. If the server hangs, restart it.", After: []string{"settings_refused"}},
	{Name: "data_unwritable", Severity: Error, Refuses: true, Title: "The data folder is not writable",
		Why: "The server rejects messages, because it accepts only what it can store.",
		Do:  "As the issue says: give the folder to the server's user (`chown`, `chmod 700`), remount the disk writable, or free space."},
	{Name: "disk_low", Severity: Warning, Title: "The disk is almost full",
		Why: "Less than 200 MiB are free for the data folder, or less than 5 % and 5 GiB. Below 5 % and 1 GiB, the server rejects new files but still accepts messages. On a full disk it rejects messages, too.",
		Do:  "Free space, or move the data folder with `MOBILE_DATA`. Queued messages for offline devices expire after `MOBILE_OUTBOX_DAYS`."},
	{Name: "data_full", Severity: Error, Refuses: true, Title: "The storage limit is reached: the server rejects messages",
		Why: "Files and the database use all of `MOBILE_MAX_DATA`, including the part reserved for messages. Devices get an error and retry. The server still stores replies of the agent.",
		Do:  "Raise `MOBILE_MAX_DATA` and restart the server. `hermes-mobile devices list` shows devices with many queued messages: connect them, or revoke those that you no longer use."},
	{Name: "data_quota_full", Severity: Error, Title: "The storage limit is reached: the server rejects files",
		Why: "The data folder has no space for another file. The server rejects files from devices, senders, and the agent. It still accepts messages, because an eighth of the limit is reserved for them.",
		Do:  "Raise `MOBILE_MAX_DATA` and restart the server, or wait: while space is short, the server deletes files that nothing refers to when they are two hours old. If a device sends too much, revoke it or lower `MOBILE_MAX_DEVICE_DATA`.", After: []string{"data_full"}},
	{Name: "data_quota_near", Severity: Warning, Title: "The storage limit is near",
		Why: "More than 80 % of the space for files is in use. That space is `MOBILE_MAX_DATA` minus an eighth, which is reserved for messages. When it is full, the server rejects new files.",
		Do:  "Raise `MOBILE_MAX_DATA` and restart the server. `hermes-mobile devices list` shows devices that send much or have many queued messages."},
	{Name: "store_failed", Severity: Error, Refuses: true, Title: "The database failed",
		Why: "The server could not read or write the database within the last minute. It rejected messages, and apps retry them.",
		Do:  "Check the free space, the permissions of the data folder, and the server's log.", After: []string{"data_unwritable"}},
	{Name: "secret_readable", Severity: Warning, Title: "Other users can read a secret",
		Why: "Other users of this machine can read a file in the data folder with tokens or messages.",
		Do:  "Run `chmod 600` on the file. If someone may have read it, replace the tokens with `hermes-mobile token remove` and `hermes-mobile token add`."},
	{Name: "admin_token_in_clear", Severity: Note, Title: "The admin token is stored in clear",
		Why: "A settings file contains the admin token itself. Anyone who reads the file or a copy of it can log in to the admin UI. The agent can read the `.env` of the Hermes home, too.",
		Do:  "Run `hermes-mobile admin hash`, enter the token, and replace the token in the file with the hash. Then restart the server. You log in with the same token as before.", After: []string{"settings_refused"}},
	{Name: "push_off", Severity: Note, Title: "Offline phones get no notifications",
		Why: "Push notifications are on, but the server can't send them: it has no contact for push services, or it can't read its key pair in the data folder. The issue says which. Messages still wait for the phone.",
		Do:  "Set `MOBILE_PUSH_CONTACT` (`mailto:me@example.com`) or an https `MOBILE_PUBLIC_URL`, then restart the server. To turn notifications off, set `MOBILE_PUSH=off`."},
	{Name: "front_api_down", Severity: Error, Title: "The API proxy can't reach Hermes",
		Why: "`MOBILE_FRONT_API` is on, but Hermes' API server does not answer or rejects the key. All requests of users fail.",
		Do:  "Enable the API server with `hermes-mobile setup --api`, then restart the gateway. If Hermes runs elsewhere, set `MOBILE_API_URL` and `MOBILE_API_KEY`.", After: []string{"settings_refused", "api_server_off", "gateway_not_running"}},
	{Name: "front_no_users", Severity: Warning, Title: "The API proxy has no users",
		Why: "`MOBILE_FRONT_API` is on, but no user can log in.",
		Do:  "Add a user with `hermes-mobile users add NAME`, or set `MOBILE_FRONT_API=no`."},
	{Name: "pairing_unreadable", Severity: Warning, Title: "The pairing files are unreadable",
		Why: "No user counts as approved, and you can't approve users. If this machine has a Hermes home, these are Hermes' own files.",
		Do:  "Fix the file that the issue names, or its permissions. If it is damaged beyond repair, move it away and approve all users again."},
}}

var hermesArea = Area{"Hermes on this machine", []Code{
	{Name: "demo_agent", Severity: Note, Title: "The demo agent answers",
		Why: "The server found no Hermes home and no secret of a gateway, so the built-in demo agent answers.",
		Do:  "Install Hermes or set `HERMES_HOME`, then restart the server and run `hermes-mobile setup`. If Hermes runs on another machine, set `MOBILE_AGENT=relay` and run `hermes-mobile setup --remote ADDRESS`."},
	{Name: "hermes_missing", Severity: Error, Title: "Hermes was not found",
		Why: "The server found no Hermes home on this machine, and no gateway has ever connected from elsewhere.",
		Do:  "Install Hermes and start it once, or set `HERMES_HOME`. If Hermes runs on another machine, run `hermes-mobile setup --remote ADDRESS`."},
	{Name: "hermes_too_old", Severity: Error, Title: "Hermes is too old",
		Why: "The relay connection requires Hermes 0.19. Streaming, cards, and files require 0.20.",
		Do:  "Update Hermes with `hermes update`, then restart its gateway.", After: []string{"hermes_missing"}},
	{Name: "hermes_config_broken", Severity: Error, Title: "Hermes' config.yaml is invalid",
		Why: "The file is not valid YAML. Hermes ignores it and keeps running.",
		Do:  "Fix the line that the issue names, then restart the gateway."},
	{Name: "hermes_unreadable", Severity: Warning, Title: "Hermes' settings are unreadable",
		Why: "The server can't read a file in the Hermes home: it lacks permission, or the path is a folder, a pipe, or a file larger than 8 MiB. The connection may still work, but the doctor can't check it.",
		Do:  "Fix the file that the issue names. A server with its own account does not need to read these files (doc/operate.md, As a service).", After: []string{"hermes_missing"}},
	{Name: "hermes_hidden", Severity: Note, Title: "Hermes' settings belong to another account",
		Why: "The server has its own account and can't read the settings of Hermes. That is intended, but the doctor can't check them.",
		Do:  "Nothing. To check the settings, run the command that the issue names as root. It shows what `setup` would change, and changes nothing.", After: []string{"hermes_missing"}},
	{Name: "model_missing", Severity: Error, Title: "Hermes has no model",
		Why: "Hermes' config.yaml names no model, so Hermes can't answer.",
		Do:  "Run `hermes setup` or `hermes model`, then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
	{Name: "relay_not_configured", Severity: Error, Title: "Hermes is not set up for this server",
		Why: "The gateway dials in to the server. It needs the server's address in two places of config.yaml, and an id with a secret. The issue names what is missing.",
		Do:  "Run `hermes-mobile setup`, which writes all of it. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
	{Name: "gateway_not_running", Severity: Error, Title: "The gateway is not running",
		Why: "No process holds the lock that a running gateway holds in the Hermes home.",
		Do:  "Run `hermes gateway run`, or `hermes gateway start` if it is a service.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "api_server_off", Severity: Error, Title: "Hermes' API server is off",
		Why: "The agent `direct` uses Hermes' API server, which requires a key of at least 16 characters.",
		Do:  "Run `hermes-mobile setup --api`, which writes `API_SERVER_ENABLED=true` and an `API_SERVER_KEY` to `.env` in the Hermes home. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
}}

// unreachable lists the reasons why a gateway can't dial in at all.
var unreachable = []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured", "gateway_not_running", "server_not_running"}

// rejected lists the reasons why the server rejects a gateway, or why the gateway dials another server.
var rejected = []string{"relay_url_scheme", "relay_url_address", "gateway_unknown_id", "gateway_wrong_secret", "gateway_no_secret", "clock_skew", "same_gateway_id"}

var connectionArea = Area{"Connection of the gateway", []Code{
	{Name: "relay_url_scheme", Severity: Error, Title: "The relay address has the wrong scheme",
		Why: "Hermes dials `https` but the server speaks plain HTTP, or the other way round.",
		Do:  "Set `gateway.relay_url` and `platforms.relay.extra.relay_url` as the issue says, or run `hermes-mobile setup`. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "relay_url_address", Severity: Error, Title: "Hermes dials another address",
		Why: "The relay address in Hermes' settings has another host, port, or path than the server.",
		Do:  "Run `hermes-mobile setup`, which writes the right address. Behind a proxy, pass the proxy's address with `--url`. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "gateway_unknown_id", Severity: Error, Title: "The server does not know the gateway's id",
		Why: "The server has no gateway with this `GATEWAY_RELAY_ID`.",
		Do:  "Run `hermes-mobile setup` to use the same id on both sides. To do it by hand, copy the two lines of `relay.env`, or of your settings, to `.env` of Hermes.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "gateway_wrong_secret", Severity: Error, Title: "The gateway's secret is wrong",
		Why: "The id is known, but `GATEWAY_RELAY_SECRET` does not match.",
		Do:  "Run `hermes-mobile setup` to use the same secret on both sides, then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "gateway_no_secret", Severity: Error, Title: "A gateway dials in without a secret",
		Why: "The bearer token is missing or malformed. The gateway's `.env` lacks the id and the secret, or a proxy removes the `Authorization` header.",
		Do:  "Run `hermes-mobile setup`, or add both lines to `.env`. A proxy must forward `Authorization`.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured", "gateway_unknown_id", "gateway_wrong_secret"}},
	{Name: "clock_skew", Severity: Error, Title: "A clock is wrong",
		Why: "A gateway signs with its time, which may differ by at most two minutes. The issue has the difference in seconds. Or the clock of this machine is clearly wrong, which also makes valid certificates look invalid.",
		Do:  "Synchronize the clocks of both machines: `timedatectl set-ntp true`."},
	{Name: "gateway_not_on_disk", Severity: Warning, Title: "The gateway won't reconnect after a restart",
		Why: "The gateway is connected with the settings from its start. The settings on disk have changed since: the id or the secret is missing, or unknown to the server.",
		Do:  "Run `hermes-mobile setup`, which writes the settings again."},
	{Name: "same_gateway_id", Severity: Warning, Title: "Two gateways use the same id",
		Why: "Connections with the same id replace each other over and over. The usual cause is a copied Hermes home.",
		Do:  "Give each gateway its own id and secret, under `gateways` in `hermes-mobile.yaml`."},
	{Name: "gateway_not_dialled", Severity: Warning, Title: "The gateway has not connected yet",
		Why: "If a gateway finds no server at its start, it retries after 30 seconds, then with pauses of up to five minutes. It keeps the settings from its start.",
		Do:  "Wait as long as the issue says, or restart the gateway: `hermes gateway restart`.", After: slices.Concat(unreachable, rejected)},
	{Name: "api_unreachable", Severity: Error, Title: "Hermes' API is unreachable",
		Why: "The agent `direct` uses the API at `MOBILE_API_URL`, but nothing answers there, or something other than Hermes. The server accepts messages and queues them.",
		Do:  "Start the gateway with its API server (run `hermes-mobile setup --api` on its machine), or correct `MOBILE_API_URL`. For a server that is not Hermes, set `MOBILE_API_KIND=openai`.", After: []string{"settings_refused", "server_not_running", "hermes_missing", "hermes_too_old", "hermes_config_broken", "gateway_not_running", "api_server_off"}},
	{Name: "api_key_refused", Severity: Error, Title: "Hermes' API rejects the key",
		Why: "The API rejects the key of the agent `direct`, or requires a key and the server has none. The server accepts messages and queues them. A running turn continues at the gateway.",
		Do:  "Set `MOBILE_API_KEY` to the `API_SERVER_KEY` in `.env` of that Hermes, then restart the server.", After: []string{"settings_refused", "server_not_running"}},
	{Name: "api_other_gateway", Severity: Error, Title: "A different gateway answers",
		Why: "The gateway at `MOBILE_API_URL` has another name or model than when the server started. The server sends it nothing.",
		Do:  "If you replaced the gateway, restart the server. Otherwise correct `MOBILE_API_URL`.", After: []string{"settings_refused", "server_not_running"}},
	{Name: "api_older", Severity: Note, Title: "Hermes' API is an older version",
		Why: "With Hermes 0.19, an approval expires after a minute, turns with images can't be stopped and can't ask, and a server that restarts during a turn gets only its end. doc/gateway.md lists all differences.",
		Do:  "Update Hermes with `hermes update`, then restart its gateway."},
	{Name: "gateway_not_woken", Severity: Warning, Title: "The server could not wake the gateway",
		Why: "Messages wait for an offline gateway, and the wake address (`MOBILE_RELAY_WAKE_URL`, or `wake_url` of the gateway) failed. The server retries at growing intervals.",
		Do:  "Test the address with curl on the server's machine, and correct it. Or start the gateway by hand.", After: []string{"settings_refused", "server_not_running"}},
	{Name: "agent_away", Severity: Warning, Title: "The agent is offline",
		Why: "The gateway was connected and no longer is. The server accepts messages and queues them. A running gateway reconnects within 30 seconds once it can reach the server.",
		Do:  "Run `hermes gateway status` on its machine. If the gateway is not running, start it with `hermes gateway run`.", After: slices.Concat(unreachable, rejected, []string{"gateway_not_dialled", "api_server_off", "api_unreachable", "api_key_refused", "api_other_gateway"})},
}}

// notReady lists the issues to fix before the behavior of Hermes matters.
var notReady = []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}

var behaviorArea = Area{"Hermes' behavior", []Code{
	{Name: "busy_ack_on", Severity: Warning, Title: "Hermes stalls for half a minute",
		Why: "With `display.busy_ack_enabled` on, which is the default, a second message during a turn makes the gateway accept no events for 30 seconds, from any device.",
		Do:  "Run `hermes-mobile setup`, or set `display.busy_ack_enabled: false` in config.yaml. Then restart the gateway.", After: notReady},
	{Name: "busy_input_mode", Severity: Warning, Title: "A second message changes the first answer",
		Why: "Unless `display.busy_input_mode` is `steer` or `queue`, a message during a turn interrupts or redirects the turn, and gets no reply of its own. `queue` works, but then you can't add messages to a running turn.",
		Do:  "Run `hermes-mobile setup`, or set `display.busy_input_mode: steer` in config.yaml. Then restart the gateway.", After: notReady},
	{Name: "streaming_off", Severity: Warning, Title: "Replies are not streamed",
		Why: "Hermes 0.20 and newer streams over a relay only if `streaming.enabled` is on.",
		Do:  "Run `hermes-mobile setup`, or set `streaming: {enabled: true}` in config.yaml. Then restart the gateway.", After: notReady},
	{Name: "streaming_unsupported", Severity: Warning, Title: "Replies arrive in two pieces",
		Why: "Hermes before 0.20 can't stream over a relay. With `streaming.enabled` on, it sends a first fragment that ends in `▉`, and then the rest.",
		Do:  "Update Hermes. Or set `streaming: {enabled: false}` in config.yaml, if no other messenger needs it. Then restart the gateway.", After: notReady},
	{Name: "tool_progress_on", Severity: Note, Title: "Hermes posts every tool call",
		Why: "Hermes posts a message for each step of a tool, which is mostly noise on a phone.",
		Do:  "Run `hermes-mobile setup`, or set `display: {platforms: {relay: {tool_progress: \"off\"}}}` in config.yaml.", After: notReady},
	{Name: "other_messengers_off", Severity: Warning, Title: "Telegram and other messengers are off",
		Why: "The variable `GATEWAY_RELAY_URL` makes Hermes 0.22 disable every other messenger, including those that are set up. The address in config.yaml does not.",
		Do:  "Run `hermes-mobile setup`, which moves the address to config.yaml. Or set `GATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS=true` in `.env`. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
	{Name: "plugin_unsupported", Severity: Warning, Title: "The plugin breaks this version of Hermes",
		Why: "Hermes before 0.22 looks up the chat by the plugin's name and finds none. Approvals, questions, and scheduled jobs fail.",
		Do:  "Run `hermes-mobile setup --undo`, then `hermes-mobile setup`. Or remove `mobile-platform` from `plugins.enabled`. Then restart the gateway.", After: notReady},
	{Name: "public_plugin_name", Severity: Warning, Title: "Two plugins register the platform mobile",
		Why: "The plugin `hermes-mobile` from Hermes' catalog and the plugin from `setup --plugin` both register the platform `mobile`. Hermes uses only the one that it loads last.",
		Do:  "Disable one: run `hermes plugins disable hermes-mobile`, or run `hermes-mobile setup --undo` and then `hermes-mobile setup`. Then restart the gateway.", After: notReady},
	{Name: "tokens_not_bound", Severity: Warning, Title: "Tokens are not bound to devices",
		Why: "The plugin `hermes-mobile` reads `NAME=TOKEN` in `MOBILE_EXTRA_TOKENS` as a token for the device with that id. This server reads the name as a label, so any device can use the token.",
		Do:  "If the names are device ids, set `MOBILE_EXTRA_TOKENS_BIND=yes` or write `device:ID=TOKEN`. If they are labels, set `MOBILE_EXTRA_TOKENS_BIND=no`. Then restart the server.", After: []string{"settings_refused"}},
	{Name: "plugin_incomplete", Severity: Warning, Title: "The plugin is only partly installed",
		Why: "The plugin needs its two files, its name in `plugins.enabled`, and `GATEWAY_RELAY_PLATFORMS=mobile,relay`. If a part is missing, scheduled jobs and `/sethome` fail. If `relay` is missing from the list, jobs from before the plugin fail.",
		Do:  "Run `hermes-mobile setup --plugin` to complete it, or `hermes-mobile setup --undo` to remove it. Then restart the gateway.", After: append([]string{"plugin_unsupported"}, notReady...)},
	{Name: "job_not_delivered", Severity: Warning, Title: "The result of a scheduled job was not delivered",
		Why: "Hermes ran the job but could not deliver its result. Jobs from before the plugin report under the name `relay`, which the gateway must serve, too.",
		Do:  "Run `hermes-mobile setup --plugin`, which writes `GATEWAY_RELAY_PLATFORMS=mobile,relay`, then restart the gateway. For other causes, `hermes cron list` shows where a job reports.", After: notReady},
	{Name: "hermes_env_readable", Severity: Warning, Title: "Other users can read the gateway's secret",
		Why: "`.env` of Hermes contains `GATEWAY_RELAY_SECRET`, and other accounts of this machine can read the file. Anyone with the secret can pose as your agent.",
		Do:  "Run `chmod 600` on that file.", After: notReady},
	{Name: "gateway_wedged", Severity: Warning, Title: "The gateway stalled",
		Why: "Within the last hour, the gateway did not acknowledge an event in time. Such a stall usually lasts 30 seconds. An approval in words causes it on Hermes 0.19, and a command during a turn on all versions.",
		Do:  "An occasional stall is harmless. If it keeps happening, restart the gateway and check its logs.", After: []string{"busy_ack_on", "same_gateway_id"}},
}}

var deviceArea = Area{"Devices", []Code{
	{Name: "device_refused", Severity: Warning, Title: "The server keeps rejecting a device",
		Why: "The server rejected the same device at its hello at least three times within an hour. The issue has the device, its address, and the reason.",
		Do:  "Fix what the reason names: use the right token, pair again with `hermes-mobile pair`, run `hermes-mobile devices unbind ID`, or add the id to `MOBILE_ALLOWED_DEVICES`. If the device isn't yours, ignore this."},
	{Name: "request_refused", Severity: Warning, Title: "The server rejects requests",
		Why: "The server rejected HTTP requests from an address at least three times within an hour: 403 for a web page from another origin, 429 after too many wrong tokens, 400 for a token in the URL.",
		Do:  "403: add the origin to `MOBILE_ALLOWED_ORIGINS`. 429: correct the token in the app; behind a proxy, check `MOBILE_TRUSTED_PROXIES`. 400: the app must send its token in `hello`."},
	{Name: "outbox_aging", Severity: Warning, Title: "Queued messages will expire soon",
		Why: "A device has been offline for so long that its queued messages expire within a day.",
		Do:  "Connect the device, raise `MOBILE_OUTBOX_DAYS`, or revoke a device that you no longer use: `hermes-mobile devices revoke ID`."},
}}

var publicArea = Area{"Public access", []Code{
	{Name: "public_unreachable", Severity: Error, Title: "The public address does not answer",
		Why: "A connection to `MOBILE_PUBLIC_URL` fails, or the proxy there can't reach the server. The doctor tests from the server's own machine, and some routers don't let a machine reach its own public address.",
		Do:  "Check the name, the port, the firewall, and the proxy. Test the address from a phone without Wi-Fi.", After: []string{"server_not_running", "certificate_missing"}},
	{Name: "proxy_login", Severity: Error, Title: "A login page is in front of the server",
		Why: "The public address requires a login of its own or redirects to another page. Apps can't get past it.",
		Do:  "Exclude the server's paths from the proxy's login: the server has its own tokens and pairing.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "proxy_other_server", Severity: Error, Title: "A different server answers",
		Why: "The server at `MOBILE_PUBLIC_URL` is not this one: the name, the port, or the path leads elsewhere.",
		Do:  "Correct `MOBILE_PUBLIC_URL` or the proxy's target. The proxy must forward `MOBILE_PATH` unchanged.", After: []string{"server_not_running", "public_unreachable", "proxy_login"}},
	{Name: "proxy_drops_upgrades", Severity: Error, Title: "The proxy drops WebSocket upgrades",
		Why: "Requests arrive without their `Upgrade` header, so no app can connect.",
		Do:  "Let the proxy forward upgrades and the headers that identify the client. For nginx, use `proxy_http_version 1.1` and the headers `Upgrade`, `Connection`, `Host`, `X-Forwarded-For`, and `X-Forwarded-Proto`, as in doc/operate.md. The example in nginx's own documentation lacks the last three.", After: []string{"server_not_running", "public_unreachable", "proxy_login", "proxy_other_server"}},
	{Name: "proxy_buffers", Severity: Error, Title: "The proxy buffers WebSocket messages",
		Why: "The WebSocket opens, but messages reach the other side only when more follow. Replies arrive late or never.",
		Do:  "Turn off buffering for these paths (nginx: `proxy_buffering off`). Turn off WebSocket inspection in firewalls and content filters.", After: []string{"server_not_running", "public_unreachable", "proxy_login", "proxy_other_server", "proxy_drops_upgrades"}},
	{Name: "admin_open", Severity: Error, Title: "The admin UI is open to strangers",
		Why: "At the public address, the admin UI or the admin socket answers a request without credentials. The server itself admits nobody by address or header, so the proxy adds credentials: a login cookie, or access to `admin.sock`. Anyone who finds it controls the server and can approve what the agent asks for.",
		Do:  "Remove that from the proxy's settings and restart the server, which ends every login. Then check the audit log, and check `hermes-mobile devices list` for devices that aren't yours.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "metrics_open", Severity: Error, Title: "Strangers can read the metrics",
		Why: "At the public address, `/metrics` answers without a token. The server itself requires one, so the proxy adds it.",
		Do:  "Stop the proxy from sending `Authorization`, or let it answer `/metrics` with 404. A monitoring system can use `MOBILE_METRICS_TOKEN`.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "health_open", Severity: Error, Title: "Strangers can read the details of /readyz",
		Why: "At the public address, `/readyz` shows paths, devices, and gateways without a token. Its codes are public, but its texts are for the owner. The proxy adds credentials.",
		Do:  "Stop the proxy from sending `Authorization` or its own cookie.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "proxy_hides_client", Severity: Warning, Title: "The proxy hides the client",
		Why: "Requests through the public address look like requests from the server's own machine. All phones count as one address, so one attacker who guesses tokens locks out all of them. Each paired device can also deliver messages to others, which only this machine may do. nginx with the WebSocket example of its documentation, HAProxy with its defaults, and every TCP forward behave this way.",
		Do:  "Let the proxy forward `Host` and send `X-Forwarded-For` and `X-Forwarded-Proto`, as in doc/operate.md. A TCP forward can't do this: replace it with an HTTP proxy, or let phones connect to the server directly with `MOBILE_TLS`.", After: []string{"server_not_running", "public_unreachable", "proxy_other_server"}},
	{Name: "proxy_untrusted", Severity: Warning, Title: "A proxy is not trusted",
		Why: "Requests with forwarding headers come from an address that is not in `MOBILE_TRUSTED_PROXIES`. All clients behind it count as one address, so one attacker who guesses tokens locks out all of them.",
		Do:  "If it is your proxy, add its address to `MOBILE_TRUSTED_PROXIES` and restart the server."},
	{Name: "strangers_dropped", Severity: Warning, Title: "The server closes connections before they log in",
		Why: "The server closed at least 100 connections within an hour before they sent a valid token, because of a limit on their number, their number per address, or their memory. Either someone floods the port, or many phones share one address, as behind an untrusted proxy.",
		Do:  "If the address in the issue is your proxy, add it to `MOBILE_TRUSTED_PROXIES` and restart the server. Otherwise block the address in your firewall. Connected phones are not affected, and others connect when they retry.", After: []string{"proxy_untrusted"}},
	{Name: "certificate_missing", Severity: Error, Title: "The server has no certificate",
		Why: "With `MOBILE_TLS=auto`, a CA must issue a certificate first, and it has not. Apps get a TLS error. The issue has the CA's answer. The server retries at growing intervals.",
		Do:  "Usually the name does not resolve to this server, or port 443 or 80 is not reachable (see doc/operate.md). Once fixed, send the server SIGHUP with `kill -HUP`, and it retries at once.", After: []string{"server_not_running"}},
	{Name: "certificate_not_renewed", Severity: Warning, Title: "The certificate can't be renewed",
		Why: "The current certificate is still valid, but the server failed to create, fetch, or read a new one. The issue says why.",
		Do:  "Fix what the issue names, then send the server SIGHUP. With `MOBILE_TLS=files`, check that the certificate and the key match and are readable."},
	{Name: "certificate_expired", Severity: Error, Title: "The certificate has expired",
		Why: "Apps reject the connection.",
		Do:  "Renew the certificate, and make sure that the proxy has loaded the new one."},
	{Name: "certificate_wrong_name", Severity: Error, Title: "The certificate is for another name",
		Why: "The certificate does not name the host of `MOBILE_PUBLIC_URL`, so apps reject the connection.",
		Do:  "Get a certificate for that name, or correct `MOBILE_PUBLIC_URL`."},
	{Name: "certificate_expires_soon", Severity: Warning, Title: "The certificate expires soon",
		Why: "The certificate expires in less than 14 days. Automatic renewal happens earlier, so it probably fails.",
		Do:  "Renew the certificate, and find out why the automatic renewal failed.", After: []string{"certificate_expired"}},
	{Name: "certificate_chain", Severity: Warning, Title: "The certificate chain is incomplete",
		Why: "The server sends its certificate without the intermediate certificate that signed it. Or it sends certificates that have expired, are duplicates, are in the wrong order, or are unrelated. Browsers on computers fetch what is missing. Phones don't, and reject the server.",
		Do:  "Use the file with the whole chain, which most CAs call fullchain: the server's certificate first, then each one that signed the previous one. If your own CA signed the certificate, install the CA on the phones."},
	{Name: "certificate_untrusted", Severity: Note, Title: "The certificate is not from a public CA",
		Why: "This machine does not know the CA that signed the certificate. With your own CA this is expected, but phones must trust it.",
		Do:  "Install your CA's certificate on the phones, or use a public CA.", After: []string{"certificate_chain"}},
}}
