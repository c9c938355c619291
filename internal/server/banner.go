package server

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/shellquote"
)

// banner is the text that the server prints when it starts.
type banner struct {
	cfg       *config.Config
	version   string
	addresses *addresses
	sources   *tokenSources
	logins    *logins
}

// print writes the banner: where the server listens, the agent, how to pair a phone, how to connect
// Hermes, and where the data is. It shows no token.
func (b *banner) print(w io.Writer, program string, screen bool) {
	fmt.Fprintf(w, "hermes-mobile %s\n\n", b.version)
	fmt.Fprintf(w, "  listening  %s\n", b.addresses.endpoint())
	if b.cfg.PublicURL != "" {
		fmt.Fprintf(w, "  public     %s\n", b.cfg.PublicURL)
	}
	if b.addresses.certs != nil {
		fmt.Fprintf(w, "  tls        %s\n", b.addresses.certificate())
	}
	fmt.Fprintf(w, "  agent      %s\n", b.cfg.AgentWhy)
	fmt.Fprintf(w, "  data       %s\n", b.cfg.Data)
	if b.sources.made {
		fmt.Fprintf(w, "  token      created an access token for apps, in %s\n", b.sources.path())
	}
	fmt.Fprintf(w, "\n  Pair a phone:      %s pair\n", program)
	fmt.Fprintf(w, "  Chat from here:    %s chat\n", program)
	b.admin(w, program, screen)
	switch b.cfg.Agent {
	case "relay":
		b.relay(w, program)
	case "direct":
		b.direct(w, program)
	}
	fmt.Fprintln(w)
}

// admin says how to open the admin UI. A newcomer at a terminal gets a link to click on. The link
// is a secret for two minutes, so it never goes to a file or a journal. If other machines reach the
// listener, the terminal is more likely a service's than a person's, so the banner names the
// command only.
func (b *banner) admin(w io.Writer, program string, screen bool) {
	if b.cfg.Admin == adminOff {
		return
	}
	fmt.Fprintf(w, "  Admin UI:          %s admin\n", program)
	if !screen || !b.addresses.onLoopback() {
		return
	}
	if link, err := b.logins.link(context.Background()); err == nil && link.Here != "" {
		fmt.Fprintf(w, "\n  Or open the admin UI with this link. It works once, within %d minutes:\n\n    %s\n", int(onetime.KeyLife.Minutes()), link.Here)
	}
}

// relay prints how to make a Hermes gateway dial in, if the settings have no gateway yet.
func (b *banner) relay(w io.Writer, program string) {
	if len(b.cfg.Gateways) > 0 {
		fmt.Fprintf(w, "  Hermes:            waiting for the gateway to dial in (start it with: hermes gateway run)\n")
		return
	}
	url := b.addresses.local()
	if url == "" {
		url, _ = b.addresses.public()
	}
	fmt.Fprintf(w, `
  Hermes is not connected yet. To connect it:  %s setup

  To connect it by hand, add its id and secret to .env in the Hermes home (%s):

    (umask 077; cat %s >> %s)

  Add to config.yaml there:

    gateway: {relay_url: "%s"}
    platforms: {relay: {enabled: true, extra: {relay_url: "%s"}}}
    streaming: {enabled: true}    # Hermes 0.20 and newer; omit this line on 0.19
    display: {busy_ack_enabled: false, busy_input_mode: steer, platforms: {relay: {tool_progress: "off"}}}

  Then start the gateway again:  hermes gateway run
`, program, b.cfg.HermesHome, shellquote.Word(gatewayPath(b.cfg)), shellquote.Word(filepath.Join(b.cfg.HermesHome, ".env")), url, url)
}

// direct prints which API the agent uses, and what to do if there is no key for it.
func (b *banner) direct(w io.Writer, program string) {
	switch {
	case b.cfg.APIKind == "openai":
		fmt.Fprintf(w, "  Model server:      %s\n", b.cfg.APIURL)
	case b.cfg.APIKey == "":
		fmt.Fprintf(w, `
  No key for Hermes' API at %s.
  To enable the API, run on the machine of Hermes:  %s setup --api
  Then restart the gateway and this server. If Hermes runs elsewhere, set MOBILE_API_URL and MOBILE_API_KEY.
`, b.cfg.APIURL, program)
	default:
		fmt.Fprintf(w, "  Hermes' API:       %s (to enable it: %s setup --api, then hermes gateway restart)\n", b.cfg.APIURL, program)
	}
}
