package server

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"

	"hermes-mobile/internal/onetime"
	"hermes-mobile/internal/shellquote"
)

// Banner says, when the server starts: where it listens, which agent and how it is, how to pair a phone, how to connect
// Hermes where it is not, and where the data is. It shows no token. program is how the person called this program, for
// the commands that it names. screen says that w is a terminal, which a person reads now and nothing keeps: only there is a link
// shown that opens the admin UI.
func (s *Server) Banner(w io.Writer, program string, screen bool) {
	fmt.Fprintf(w, "hermes-mobile %s\n\n", s.version)
	fmt.Fprintf(w, "  listening  %s\n", s.address())
	if s.cfg.PublicURL != "" {
		fmt.Fprintf(w, "  public     %s\n", s.cfg.PublicURL)
	}
	if s.certs != nil {
		fmt.Fprintf(w, "  tls        %s\n", s.Certificate())
	}
	fmt.Fprintf(w, "  agent      %s\n", s.cfg.AgentWhy)
	fmt.Fprintf(w, "  data       %s\n", s.cfg.Data)
	if s.madeTok {
		fmt.Fprintf(w, "  token      made for apps without pairing: it stands in %s\n", s.tokenPath())
	}
	fmt.Fprintf(w, "\n  Pair a phone:      %s pair\n", program)
	fmt.Fprintf(w, "  Talk from here:    %s chat\n", program)
	s.adminBanner(w, program, screen)
	if s.cfg.Agent == "relay" {
		s.connectHermes(w, program)
	}
	if s.cfg.Agent == "direct" {
		s.callHermes(w, program)
	}
	fmt.Fprintln(w)
}

// adminBanner says how to open the admin UI. A newcomer at a terminal gets a link to click on; it is a secret for two minutes, so it
// never goes to a file or a journal. With a listener that other machines reach, the terminal is a service's more often than a
// person's, and the command makes a link when it is wanted.
func (s *Server) adminBanner(w io.Writer, program string, screen bool) {
	if s.cfg.Admin == adminOff {
		return
	}
	fmt.Fprintf(w, "  Admin UI:          %s admin\n", program)
	if !screen || !s.onLoopback() {
		return
	}
	if link, err := s.AdminLink(context.Background()); err == nil && link.Here != "" {
		fmt.Fprintf(w, "\n  Or open the admin UI with this link. It works once, for %d minutes:\n\n    %s\n", int(onetime.KeyLife.Minutes()), link.Here)
	}
}

// onLoopback reports whether only programs on this machine reach the listener.
func (s *Server) onLoopback() bool {
	addr, err := netip.ParseAddrPort(s.listener.Addr().String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// connectHermes prints the lines that make a Hermes gateway dial in, where none has been told to yet.
func (s *Server) connectHermes(w io.Writer, program string) {
	if len(s.cfg.Gateways) > 0 {
		fmt.Fprintf(w, "  Hermes:            waiting for the gateway to dial in (start it with: hermes gateway run)\n")
		return
	}
	url := s.localBase()
	if url == "" {
		url, _ = s.publicBase()
	}
	fmt.Fprintf(w, `
  Hermes is not connected yet. Connect it:  %s setup

  Or by hand: put its id and secret into the .env of the Hermes home (%s):

    (umask 077; cat %s >> %s)

  add to config.yaml there

    gateway: {relay_url: "%s"}
    platforms: {relay: {enabled: true, extra: {relay_url: "%s"}}}
    streaming: {enabled: true}    # Hermes 0.22 and newer; leave this line out on 0.19
    display: {busy_ack_enabled: false, busy_input_mode: steer, platforms: {relay: {tool_progress: "off"}}}

  and restart the gateway: hermes gateway run
`, program, s.cfg.HermesHome, shellquote.Word(s.gatewayPath()), shellquote.Word(filepath.Join(s.cfg.HermesHome, ".env")), url, url)
}

// callHermes says which API the agent speaks to, and what to do where there is no key for it.
func (s *Server) callHermes(w io.Writer, program string) {
	switch {
	case s.cfg.APIKind == "openai":
		fmt.Fprintf(w, "  Model server:      %s\n", s.cfg.APIURL)
	case s.cfg.APIKey == "":
		fmt.Fprintf(w, `
  There is no key for Hermes' API at %s.
  Switch that on, on the machine of Hermes:  %s setup --api
  Then restart its gateway and this server. For a Hermes elsewhere set MOBILE_API_URL and MOBILE_API_KEY.
`, s.cfg.APIURL, program)
	default:
		fmt.Fprintf(w, "  Hermes' API:       %s (if it is off: %s setup --api, then: hermes gateway restart)\n", s.cfg.APIURL, program)
	}
}
