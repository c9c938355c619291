package doctor

import (
	"slices"
)

// Code is what there is to know of one kind of finding, whoever it is about.
type Code struct {
	Name     string
	Severity Severity
	Refuses  bool // messages are refused meanwhile: the server is not ready
	Title    string
	Why      string
	Do       string
	// After are the codes whose finding explains this one, too: then only they are shown.
	After []string
}

// Area is a part of the table under one heading.
type Area struct {
	Title string
	Codes []Code
}

// Areas is the table of all findings, in the order in which they are shown and documented.
func Areas() []Area {
	return []Area{serverArea, hermesArea, linkArea, behaviourArea, deviceArea, wayArea}
}

var (
	table = map[string]Code{} // by name
	names []string            // in order
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

// Names are the codes of all findings, in order.
func Names() []string { return slices.Clone(names) }

var serverArea = Area{"The server", []Code{
	{Name: "settings_refused", Severity: Error, Title: "The settings cannot be used",
		Why: "A setting has a value that the server does not start with. The finding names the setting, where it stands and what is wrong.",
		Do:  "Correct it there. `hermes-mobile serve --help` describes every setting."},
	{Name: "settings_warning", Severity: Warning, Title: "A setting looks like a mistake",
		Why: "An unknown name, a line that cannot be read, or a file with secrets that other users of the machine may read. The server starts all the same, and does without.",
		Do:  "Correct it as the finding says, and restart the server."},
	{Name: "unencrypted", Severity: Note, Title: "Words go over a network unencrypted",
		Why: "The server can be reached from other machines by plain HTTP. Whoever listens in that network reads tokens and messages.",
		Do:  "Switch TLS on with `MOBILE_TLS`, or put a TLS proxy in front and set `MOBILE_PUBLIC_URL` to its https address. In a network that you trust you may leave it."},
	{Name: "public_plugin_port", Severity: Error, Title: "The Hermes plugin hermes-mobile wants the same port",
		Why: "The plugin `hermes-mobile` of Hermes' catalog serves phones from within the gateway, at the port that this server has by default. Only one of the two can listen there.",
		Do:  "Keep one: stop the plugin with `hermes plugins disable hermes-mobile` and restart the gateway, or end this server. To run both, give this server another port with `MOBILE_PORT` and run `hermes-mobile setup` again.", After: []string{"settings_refused"}},
	{Name: "port_in_use", Severity: Error, Title: "Another program has the port",
		Why: "The server cannot listen on its port. On Linux the finding names the program that does, where you may see it.",
		Do:  "End that program, or choose another port with `MOBILE_PORT`; then run `hermes-mobile setup` again, so that Hermes knows it.", After: []string{"settings_refused", "public_plugin_port"}},
	{Name: "server_not_running", Severity: Error, Title: "No server is running",
		Why: "No server answers on the data folder. Phones and the gateway find nobody.",
		Do:  "Start it: `hermes-mobile serve`, or its service. If one runs on another folder, name that with `--data`.", After: []string{"settings_refused", "port_in_use", "public_plugin_port"}},
	{Name: "server_silent", Severity: Error, Title: "The server cannot be asked",
		Why: "Its admin socket is there, and opening it fails or brings no answer. Mostly the command is run by another user than the server.",
		Do:  "Run it as that user: `sudo -u USER hermes-mobile doctor`. If the server hangs, restart it.", After: []string{"settings_refused"}},
	{Name: "data_unwritable", Severity: Error, Refuses: true, Title: "The data folder cannot be written",
		Why: "Nothing is taken that could not be kept, so messages are refused.",
		Do:  "Give the folder to the user that runs the server (`chown`, `chmod 700`), remount its disk for writing, or free space: the finding says which."},
	{Name: "disk_low", Severity: Warning, Title: "The disk is nearly full",
		Why: "Less than 200 MiB are free for the data folder, or less than 5 % and 5 GiB. Below 5 % and 1 GiB the server refuses new files, and messages without files still go. On a full disk messages are refused, too.",
		Do:  "Free space, or move the data folder with `MOBILE_DATA`. What is kept for devices that are away goes after `MOBILE_OUTBOX_DAYS`."},
	{Name: "data_full", Severity: Error, Refuses: true, Title: "The storage limit is reached, and messages are refused",
		Why: "Files and database together take as much as `MOBILE_MAX_DATA` allows, also what is kept free for messages. Devices get an error and send again; replies of the agent are still stored.",
		Do:  "Raise `MOBILE_MAX_DATA` and restart the server. `hermes-mobile devices list` shows for which devices much waits: connect them, or revoke those that are gone."},
	{Name: "data_quota_full", Severity: Error, Title: "The storage limit is reached, and files are refused",
		Why: "What is stored below the data folder leaves hardly any room for another file. Files of devices, of senders and of the agent are refused; messages without files still go, since an eighth of the limit is kept for them.",
		Do:  "Raise `MOBILE_MAX_DATA` and restart the server, or wait: files that nothing refers to go when they are two hours old while room is short. A device that sends too much can be revoked, or held to less by `MOBILE_MAX_DEVICE_DATA`.", After: []string{"data_full"}},
	{Name: "data_quota_near", Severity: Warning, Title: "The storage limit is near",
		Why: "More than 80 % of the room for files is used (`MOBILE_MAX_DATA`, less an eighth that is kept for messages). When it is used up new files are refused.",
		Do:  "Raise `MOBILE_MAX_DATA` and restart the server, or look which devices send much, and for which ones files wait: `hermes-mobile devices list`."},
	{Name: "store_failed", Severity: Error, Refuses: true, Title: "The store failed",
		Why: "The database could not be read or written within the last minute. What was sent meanwhile was refused and not taken; apps send it again.",
		Do:  "Look at the free space and the mode of the data folder, and at the server's log.", After: []string{"data_unwritable"}},
	{Name: "secret_readable", Severity: Warning, Title: "Others can read a secret",
		Why: "A file of the data folder that holds tokens or messages may be read by other users of this machine.",
		Do:  "`chmod 600` the file. If somebody may have read it, replace the tokens: `hermes-mobile token remove` and `add`."},
	{Name: "admin_token_in_clear", Severity: Note, Title: "The admin token is stored in clear",
		Why: "A settings file holds the admin token itself. Whoever reads that file, or a copy of it, can log in to the admin UI. The `.env` of a Hermes home is read by the agent, too.",
		Do:  "`hermes-mobile admin hash` asks for the token and prints its hash: put that in its place, and restart the server. Logging in stays as it is.", After: []string{"settings_refused"}},
	{Name: "push_off", Severity: Note, Title: "Phones that are away are not notified",
		Why: "Notifications are not switched off, and cannot be sent. Push services want to know who runs the server, or the key pair in the data folder cannot be read: the finding says which. Messages wait for the phone as ever.",
		Do:  "Set `MOBILE_PUSH_CONTACT` (`mailto:me@example.com`) or an https `MOBILE_PUBLIC_URL`, and restart the server; or set `MOBILE_PUSH=off`."},
	{Name: "front_api_down", Severity: Error, Title: "The front door leads nowhere",
		Why: "`MOBILE_FRONT_API` is on, and Hermes' API server does not answer, or does not take the key. Who logs in gets an error with every request.",
		Do:  "`hermes-mobile setup --api` switches the API server on; then restart the gateway. For one elsewhere set `MOBILE_API_URL` and `MOBILE_API_KEY`.", After: []string{"settings_refused", "api_server_off", "gateway_not_running"}},
	{Name: "front_no_users", Severity: Warning, Title: "Nobody may come in at the front door",
		Why: "`MOBILE_FRONT_API` is on, and there is no user who could log in.",
		Do:  "`hermes-mobile users add NAME`, or set `MOBILE_FRONT_API=no`."},
	{Name: "pairing_unreadable", Severity: Warning, Title: "The pairing files cannot be read",
		Why: "Nobody counts as approved and nobody can be approved while that is so. They are Hermes' own files where this machine has a Hermes home.",
		Do:  "Repair the file that is named, or its mode. If it is damaged for good, move it away: everybody then has to be approved again."},
}}

var hermesArea = Area{"Hermes on this machine", []Code{
	{Name: "demo_agent", Severity: Note, Title: "The demo agent answers",
		Why: "Neither a Hermes home nor the secret of a gateway was found, so the built-in demo answers.",
		Do:  "Install Hermes, or name its home with `HERMES_HOME`; restart the server and run `hermes-mobile setup`. For a Hermes on another machine: `MOBILE_AGENT=relay` and `hermes-mobile setup --remote`."},
	{Name: "hermes_missing", Severity: Error, Title: "There is no Hermes",
		Why: "This machine has no Hermes home where the server looks, and no gateway has ever dialled in from elsewhere.",
		Do:  "Install Hermes and start it once, or name its home with `HERMES_HOME`. For one on another machine: `hermes-mobile setup --remote ADDRESS`."},
	{Name: "hermes_too_old", Severity: Error, Title: "Hermes is too old",
		Why: "The relay connection works from Hermes 0.19 on, with streaming, cards and files from 0.20 on.",
		Do:  "Update Hermes (`hermes update`), then restart its gateway.", After: []string{"hermes_missing"}},
	{Name: "hermes_config_broken", Severity: Error, Title: "Hermes' config.yaml cannot be read",
		Why: "It is not valid YAML. Hermes itself goes on without what stands in it.",
		Do:  "Repair the line that is named, then restart the gateway."},
	{Name: "hermes_unreadable", Severity: Warning, Title: "Hermes' settings cannot be read from here",
		Why: "A file of the Hermes home cannot be read: the server may not open it, or it is a folder, a pipe, or larger than 8 MiB. The connection may work all the same, but nothing can be said about it.",
		Do:  "Repair the file that is named. A server with an account of its own need not read them (doc/operate.md, As a service).", After: []string{"hermes_missing"}},
	{Name: "hermes_hidden", Severity: Note, Title: "Hermes' settings belong to another account",
		Why: "The server has an account of its own and cannot see the settings of Hermes, as it should be. So they are not checked.",
		Do:  "Nothing. To check them, run as root what the issue names: it shows what `setup` would change, and changes nothing.", After: []string{"hermes_missing"}},
	{Name: "model_missing", Severity: Error, Title: "Hermes has no model",
		Why: "config.yaml of Hermes names no model, so nothing can answer.",
		Do:  "`hermes setup` or `hermes model`, then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
	{Name: "relay_not_configured", Severity: Error, Title: "Hermes is not told of this server",
		Why: "The gateway dials out, so it needs the server's address, in both places of config.yaml, and an id with its secret. The finding names what is missing.",
		Do:  "`hermes-mobile setup` writes all of it. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
	{Name: "gateway_not_running", Severity: Error, Title: "The gateway is not running",
		Why: "No process holds the lock in the Hermes home that a running gateway holds.",
		Do:  "`hermes gateway run`, or `hermes gateway start` where it is a service.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "api_server_off", Severity: Error, Title: "Hermes' API server is off",
		Why: "The agent `direct` speaks to Hermes' API server, which needs a key of 16 characters or more.",
		Do:  "`hermes-mobile setup --api` puts `API_SERVER_ENABLED=true` and an `API_SERVER_KEY` into the `.env` of the Hermes home; then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
}}

// unreachable are the reasons for which a gateway cannot dial in at all.
var unreachable = []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured", "gateway_not_running", "server_not_running"}

// refusedAtDoor are the reasons for which one that dials is not let in, or arrives elsewhere.
var refusedAtDoor = []string{"relay_url_scheme", "relay_url_address", "gateway_unknown_id", "gateway_wrong_secret", "gateway_no_secret", "clock_skew", "same_gateway_id"}

var linkArea = Area{"The connection of the gateway", []Code{
	{Name: "relay_url_scheme", Severity: Error, Title: "The scheme of the relay address is wrong",
		Why: "Hermes dials the server by `https` where it speaks plain HTTP, or the other way round.",
		Do:  "Set `gateway.relay_url` and `platforms.relay.extra.relay_url` as the finding says, or run `hermes-mobile setup`; then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "relay_url_address", Severity: Error, Title: "Hermes dials another address",
		Why: "The relay address in Hermes' settings has another host, port or path than the server.",
		Do:  "`hermes-mobile setup` writes the right one; with a proxy between, give its address by `--url`. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "gateway_unknown_id", Severity: Error, Title: "The gateway's id is unknown",
		Why: "`GATEWAY_RELAY_ID` of Hermes is none of those that the server lets in.",
		Do:  "`hermes-mobile setup` makes both sides the same. By hand: the two lines of `relay.env`, or those of your settings, belong into the `.env` of Hermes.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "gateway_wrong_secret", Severity: Error, Title: "The gateway's secret is wrong",
		Why: "The id is right and `GATEWAY_RELAY_SECRET` is not.",
		Do:  "`hermes-mobile setup` makes both sides the same; then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}},
	{Name: "gateway_no_secret", Severity: Error, Title: "A gateway dials in without a secret",
		Why: "It sends no bearer, or one that is none. Either its `.env` lacks the two lines, or a proxy takes the `Authorization` header away.",
		Do:  "Run `hermes-mobile setup`, or put both lines into its `.env`; let a proxy pass `Authorization` on.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured", "gateway_unknown_id", "gateway_wrong_secret"}},
	{Name: "clock_skew", Severity: Error, Title: "A clock is wrong",
		Why: "A gateway signs with the time, which may differ by two minutes. The finding has the difference in seconds. Or this machine's own clock is obviously wrong, which also makes good certificates look bad.",
		Do:  "Set the clock by the network on both machines: `timedatectl set-ntp true`."},
	{Name: "gateway_not_on_disk", Severity: Warning, Title: "The gateway will not come back after a restart",
		Why: "It is connected with the settings that it was started with, and those on disk are others now: an id or a secret that the server does not know, or none.",
		Do:  "`hermes-mobile setup` writes them again."},
	{Name: "same_gateway_id", Severity: Warning, Title: "Two gateways have one id",
		Why: "Connections of one id replace one another over and over. A copied Hermes home brings that about.",
		Do:  "Give each gateway an id and a secret of its own, under `gateways` in `hermes-mobile.yaml`."},
	{Name: "gateway_not_dialled", Severity: Warning, Title: "The gateway has not dialled in yet",
		Why: "A gateway that finds no server at its start tries again after 30 seconds, then with pauses up to five minutes. It also goes on with the settings that it was started with.",
		Do:  "Wait as long as the finding says, or restart the gateway: `hermes gateway restart`.", After: slices.Concat(unreachable, refusedAtDoor)},
	{Name: "api_unreachable", Severity: Error, Title: "Hermes' API cannot be reached",
		Why: "The agent `direct` speaks to the API at `MOBILE_API_URL`, and nothing answers there, or something that is no Hermes. Messages are accepted and wait.",
		Do:  "Start the gateway there, with its API server on (`hermes-mobile setup --api` on its machine), or correct `MOBILE_API_URL`. For a server that is not Hermes: `MOBILE_API_KIND=openai`.", After: []string{"settings_refused", "server_not_running", "hermes_missing", "hermes_too_old", "hermes_config_broken", "gateway_not_running", "api_server_off"}},
	{Name: "api_key_refused", Severity: Error, Title: "Hermes' API does not take the key",
		Why: "It answers, and refuses the key of the agent `direct`, or wants one and the server has none. Messages are accepted and wait; a turn that runs goes on at the gateway.",
		Do:  "Set `MOBILE_API_KEY` to the `API_SERVER_KEY` in the `.env` of that Hermes, and restart the server.", After: []string{"settings_refused", "server_not_running"}},
	{Name: "api_other_gateway", Severity: Error, Title: "Another gateway answers",
		Why: "At `MOBILE_API_URL` answers a gateway with another name or model than the one that was there since the server started. Nothing is said to it.",
		Do:  "If you have exchanged the gateway, restart the server. Else correct `MOBILE_API_URL`.", After: []string{"settings_refused", "server_not_running"}},
	{Name: "api_older", Severity: Note, Title: "Hermes' API is of an older version",
		Why: "With Hermes 0.19 an approval waits a minute at most, turns with images cannot be stopped and do not ask, and a server that restarts in the middle of a turn hears only its end. doc/gateway.md has the whole table.",
		Do:  "Update Hermes (`hermes update`), then restart its gateway."},
	{Name: "gateway_not_woken", Severity: Warning, Title: "The gateway could not be woken",
		Why: "Messages wait for a gateway that is away, and the address that is to wake it (`MOBILE_RELAY_WAKE_URL`, or `wake_url` of the gateway) did not answer as it should. It is asked again, ever more rarely.",
		Do:  "Try the address with curl from the server's machine, and correct it. Or start the gateway by hand.", After: []string{"settings_refused", "server_not_running"}},
	{Name: "agent_away", Severity: Warning, Title: "The agent is away",
		Why: "The gateway was there and is not now. Messages are accepted and wait for it. A gateway that runs comes back by itself within 30 seconds of what kept it away.",
		Do:  "`hermes gateway status` on its machine; start it with `hermes gateway run` where it does not run.", After: slices.Concat(unreachable, refusedAtDoor, []string{"gateway_not_dialled", "api_server_off", "api_unreachable", "api_key_refused", "api_other_gateway"})},
}}

// asItIs are the reasons for which it is too early to look at how Hermes behaves.
var asItIs = []string{"hermes_missing", "hermes_too_old", "hermes_config_broken", "relay_not_configured"}

var behaviourArea = Area{"How Hermes behaves", []Code{
	{Name: "busy_ack_on", Severity: Warning, Title: "Hermes goes deaf for half a minute",
		Why: "With `display.busy_ack_enabled` on, which it is where nothing is said, a second message during a turn makes the gateway take nothing for 30 seconds, from nobody.",
		Do:  "`hermes-mobile setup`, or `display.busy_ack_enabled: false` in config.yaml; then restart the gateway.", After: asItIs},
	{Name: "busy_input_mode", Severity: Warning, Title: "A second message turns the first answer around",
		Why: "With another `display.busy_input_mode` than `steer` or `queue` a message that comes during a turn interrupts or redirects it, and gets no reply of its own. With `queue` all is well, too, but nothing can be added to a running turn.",
		Do:  "`hermes-mobile setup`, or `display.busy_input_mode: steer` in config.yaml; then restart the gateway.", After: asItIs},
	{Name: "streaming_off", Severity: Warning, Title: "Replies are not streamed",
		Why: "Hermes 0.20 and newer streams over a relay only where `streaming.enabled` is on.",
		Do:  "`hermes-mobile setup`, or `streaming: {enabled: true}` in config.yaml; then restart the gateway.", After: asItIs},
	{Name: "streaming_unsupported", Severity: Warning, Title: "Replies come in two pieces",
		Why: "Hermes before 0.20 cannot stream over a relay. With `streaming.enabled` on, a first fragment comes that ends in `▉`, and then the rest.",
		Do:  "`streaming: {enabled: false}` in config.yaml if no other messenger needs it, or update Hermes; then restart the gateway.", After: asItIs},
	{Name: "tool_progress_on", Severity: Note, Title: "Every tool that is used is told in words",
		Why: "Hermes posts a message for each step of a tool, which on a phone is mostly noise.",
		Do:  "`hermes-mobile setup`, or `display: {platforms: {relay: {tool_progress: \"off\"}}}` in config.yaml.", After: asItIs},
	{Name: "other_messengers_off", Severity: Warning, Title: "Telegram and others are switched off",
		Why: "The variable `GATEWAY_RELAY_URL` makes Hermes 0.22 switch off every other messenger, also those that are set up. The address in config.yaml does not.",
		Do:  "`hermes-mobile setup` moves it to config.yaml. Or set `GATEWAY_RELAY_ALLOW_DIRECT_PLATFORMS=true` in `.env`. Then restart the gateway.", After: []string{"hermes_missing", "hermes_too_old", "hermes_config_broken"}},
	{Name: "plugin_unsupported", Severity: Warning, Title: "The plug-in breaks this version of Hermes",
		Why: "Hermes before 0.22 looks up the chat by the plug-in's name and finds none: approvals, questions and scheduled jobs fail.",
		Do:  "`hermes-mobile setup --undo`, then `hermes-mobile setup`; or take `mobile-platform` out of `plugins.enabled`. Then restart the gateway.", After: asItIs},
	{Name: "public_plugin_name", Severity: Warning, Title: "Two plug-ins register the platform mobile",
		Why: "The plugin `hermes-mobile` of Hermes' catalog and the plug-in of `setup --plugin` both register the platform `mobile`. Hermes keeps the one that it loads last, so one of the two does not work.",
		Do:  "Disable one: `hermes plugins disable hermes-mobile`, or `hermes-mobile setup --undo` and then `hermes-mobile setup`. Then restart the gateway.", After: asItIs},
	{Name: "tokens_not_bound", Severity: Warning, Title: "Tokens that the plugin binds to a device are not bound here",
		Why: "The plugin `hermes-mobile` reads `NAME=TOKEN` in `MOBILE_EXTRA_TOKENS` as a token for the device of that id. For this server the name is a label, so any device may use the token.",
		Do:  "Where the names are ids of devices, set `MOBILE_EXTRA_TOKENS_BIND=yes`, or write `device:ID=TOKEN`. Where they are labels, write that out as `MOBILE_EXTRA_TOKENS_BIND=no`. Then restart the server.", After: []string{"settings_refused"}},
	{Name: "plugin_incomplete", Severity: Warning, Title: "The plug-in is half installed",
		Why: "It needs its two files, its name in `plugins.enabled`, and `GATEWAY_RELAY_PLATFORMS=mobile,relay`. With a part missing, scheduled jobs and `/sethome` fail; without `relay` in the list, jobs that were made before the plug-in.",
		Do:  "`hermes-mobile setup --plugin` completes it, `hermes-mobile setup --undo` takes it out. Then restart the gateway.", After: append([]string{"plugin_unsupported"}, asItIs...)},
	{Name: "job_not_delivered", Severity: Warning, Title: "The result of a scheduled job did not arrive",
		Why: "Hermes ran the job and could not deliver what came of it. Jobs that were made in a chat before the plug-in was added report by the name `relay`, which the gateway has to serve, too.",
		Do:  "`hermes-mobile setup --plugin` writes `GATEWAY_RELAY_PLATFORMS=mobile,relay`; then restart the gateway. For other reasons: `hermes cron list` shows where a job reports.", After: asItIs},
	{Name: "hermes_env_readable", Severity: Warning, Title: "Others can read the gateway's secret",
		Why: "`.env` of Hermes holds `GATEWAY_RELAY_SECRET`, and its mode lets other accounts of the machine read it. Whoever has the secret can pose as your agent.",
		Do:  "`chmod 600` that file.", After: asItIs},
	{Name: "gateway_wedged", Severity: Warning, Title: "The gateway took nothing for a while",
		Why: "Within the last hour an event was not confirmed in time: the gateway's reader was stuck, mostly for 30 seconds. An approval in words does that to Hermes 0.19, and a command during a turn to all.",
		Do:  "Once in a while it is nothing. If it goes on, restart the gateway and look into its logs.", After: []string{"busy_ack_on", "same_gateway_id"}},
}}

var deviceArea = Area{"Devices", []Code{
	{Name: "device_refused", Severity: Warning, Title: "A device is refused again and again",
		Why: "The same device was turned away at its hello three times or more within an hour. The finding has the device, its address and the reason.",
		Do:  "What the reason asks for: the right token, `hermes-mobile pair`, `hermes-mobile devices unbind ID`, or its id in `MOBILE_ALLOWED_DEVICES`. If it is a stranger, nothing."},
	{Name: "request_refused", Severity: Warning, Title: "Requests are refused before they are heard",
		Why: "Three times or more within an hour an address was refused by HTTP: 403 for a web page of another origin, 429 after too many wrong tokens, 400 for a token in the address.",
		Do:  "403: list the origin in `MOBILE_ALLOWED_ORIGINS`. 429: correct the token in the app; behind a proxy see `MOBILE_TRUSTED_PROXIES`. 400: the app has to send its token in `hello`."},
	{Name: "outbox_aging", Severity: Warning, Title: "Messages will soon be dropped",
		Why: "A device has been away for so long that what waits for it is dropped within a day.",
		Do:  "Connect the device, raise `MOBILE_OUTBOX_DAYS`, or revoke a device that is not used any more: `hermes-mobile devices revoke ID`."},
}}

var wayArea = Area{"The way in", []Code{
	{Name: "public_unreachable", Severity: Error, Title: "The public address does not answer",
		Why: "A connection to `MOBILE_PUBLIC_URL` fails, or the proxy there does not reach the server. It is tried from the server's own machine; some routers do not let a machine reach its own public address.",
		Do:  "Look at the name, the port, the firewall and the proxy; try the address from a phone without Wi-Fi.", After: []string{"server_not_running", "certificate_missing"}},
	{Name: "proxy_login", Severity: Error, Title: "A login page stands in front",
		Why: "The public address asks for a login of its own, or leads to another page, which an app cannot pass.",
		Do:  "Leave the paths of the server out of the proxy's login: it has tokens and pairing of its own.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "proxy_other_server", Severity: Error, Title: "Another server answers",
		Why: "What answers at `MOBILE_PUBLIC_URL` is not this server: the name, the port or the path leads elsewhere.",
		Do:  "Correct `MOBILE_PUBLIC_URL`, or the proxy's target; the proxy has to pass `MOBILE_PATH` on as it is.", After: []string{"server_not_running", "public_unreachable", "proxy_login"}},
	{Name: "proxy_drops_upgrades", Severity: Error, Title: "The proxy drops WebSocket upgrades",
		Why: "Requests arrive, and without their `Upgrade` header: no app can connect.",
		Do:  "Let it pass upgrades on, together with the headers that say who asks. nginx: `proxy_http_version 1.1` and the headers `Upgrade`, `Connection`, `Host`, `X-Forwarded-For` and `X-Forwarded-Proto`, as the recipe in doc/operate.md has them. The example of nginx's own documentation lacks the last three.", After: []string{"server_not_running", "public_unreachable", "proxy_login", "proxy_other_server"}},
	{Name: "proxy_buffers", Severity: Error, Title: "The proxy holds back what is sent",
		Why: "A WebSocket is opened, and what one side sends does not reach the other before more follows. Replies come late or never.",
		Do:  "Switch buffering off for these paths (nginx: `proxy_buffering off`), and inspection of WebSockets by a firewall or a content filter.", After: []string{"server_not_running", "public_unreachable", "proxy_login", "proxy_other_server", "proxy_drops_upgrades"}},
	{Name: "admin_open", Severity: Error, Title: "The admin UI is open to strangers",
		Why: "At the public address the admin UI, or the admin socket, answers a request that proves nothing. The server itself lets nobody in because of an address or a header, so the proxy adds a proof: a cookie of a login, or a way to `admin.sock`. Whoever finds it owns the server, and through it can approve what the agent asks for.",
		Do:  "Take that out of the proxy's settings, and restart the server, which ends every login. Then look at the audit log, and at `hermes-mobile devices list` for devices that are not yours.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "metrics_open", Severity: Error, Title: "Strangers read the metrics",
		Why: "At the public address `/metrics` answers without a token. The server itself asks for one, so the proxy adds it.",
		Do:  "Stop the proxy from sending `Authorization`, or let it answer `/metrics` with 404. Where a monitoring system needs them, give it `MOBILE_METRICS_TOKEN`.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "health_open", Severity: Error, Title: "Strangers read the details of /readyz",
		Why: "At the public address `/readyz` tells paths, devices and gateways without a token. Everybody may have its codes; the texts are for the owner. The proxy adds a proof of its own.",
		Do:  "Stop the proxy from sending `Authorization` or a cookie of its own.", After: []string{"server_not_running", "public_unreachable"}},
	{Name: "proxy_hides_client", Severity: Warning, Title: "The proxy hides who asks",
		Why: "Requests through the public address look like those of a program on the server's machine. So all phones count as one address, and one guesser locks out all of them; and each paired device may deliver messages to others, which is for this machine alone. That is what nginx does with the WebSocket example of its documentation, HAProxy with its defaults, and every TCP forward.",
		Do:  "Let the proxy pass `Host` on and send `X-Forwarded-For` and `X-Forwarded-Proto`; doc/operate.md has recipes. A TCP forward cannot do that: put an HTTP proxy in its place, or let phones reach the server itself with `MOBILE_TLS`.", After: []string{"server_not_running", "public_unreachable", "proxy_other_server"}},
	{Name: "proxy_untrusted", Severity: Warning, Title: "A proxy is not trusted",
		Why: "Requests come with forwarding headers from an address that is not in `MOBILE_TRUSTED_PROXIES`. All who come that way count as one address, so one guesser locks out all.",
		Do:  "If that is your proxy, add its address to `MOBILE_TRUSTED_PROXIES` and restart the server."},
	{Name: "strangers_dropped", Severity: Warning, Title: "Connections are closed before they log in",
		Why: "A hundred connections or more were closed within an hour because of a limit before they had sent a valid token: too many were open at once, or too many of one address, or they took too much memory. Either somebody floods the port, or many phones share one address, as behind a proxy that is not trusted.",
		Do:  "If the address in the finding is your proxy, add it to `MOBILE_TRUSTED_PROXIES` and restart the server. Otherwise block the address in your firewall. Connected phones are not affected, and others connect when they try again.", After: []string{"proxy_untrusted"}},
	{Name: "certificate_missing", Severity: Error, Title: "The server has no certificate",
		Why: "With `MOBILE_TLS=auto` an authority has to give one first, and it has not: apps get a TLS error. The finding has the authority's answer. It is asked again by itself, in growing steps.",
		Do:  "Mostly the name does not lead here, or port 443 or 80 of it does not reach the server (see doc/operate.md). When that is mended: `kill -HUP` the server, which then asks at once.", After: []string{"server_not_running"}},
	{Name: "certificate_not_renewed", Severity: Warning, Title: "The certificate cannot be renewed",
		Why: "The one in use is still good, and the last try to make, fetch or read another one failed. The finding says why.",
		Do:  "Mend what it names, and send the server SIGHUP. With `MOBILE_TLS=files` look whether certificate and key belong together and can be read."},
	{Name: "certificate_expired", Severity: Error, Title: "The certificate has expired",
		Why: "Apps refuse the connection.",
		Do:  "Renew it, and make sure that the proxy has loaded the new one."},
	{Name: "certificate_wrong_name", Severity: Error, Title: "The certificate is for another name",
		Why: "It does not name the host of `MOBILE_PUBLIC_URL`, so apps refuse the connection.",
		Do:  "Get one for that name, or correct `MOBILE_PUBLIC_URL`."},
	{Name: "certificate_expires_soon", Severity: Warning, Title: "The certificate soon expires",
		Why: "It is good for less than 14 days more. Automatic renewal comes earlier than that, so it probably fails.",
		Do:  "Renew it, and look why it was not renewed by itself.", After: []string{"certificate_expired"}},
	{Name: "certificate_chain", Severity: Warning, Title: "The certificate's chain is not whole",
		Why: "The server shows its own certificate without the intermediate one that signed it, or others that have expired, are there twice, stand in the wrong order or belong to something else. Browsers on computers fetch what is missing; phones do not, and refuse the server.",
		Do:  "Use the file that holds the whole chain, which most authorities call fullchain: the server's certificate first, then each that signed the one before. An authority of your own that signed the certificate directly has to be installed on the phones."},
	{Name: "certificate_untrusted", Severity: Note, Title: "The certificate is not signed by a public authority",
		Why: "This machine does not know who signed it. With an authority of your own that is as it should be, and phones have to know it.",
		Do:  "Install your authority's certificate on the phones, or use a public one.", After: []string{"certificate_chain"}},
}}
