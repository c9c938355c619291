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

// Banner prints the start message: addresses, agent, data folder, and how to pair a phone and connect
// Hermes. It shows no token. program is the start of the command lines that it prints. screen reports that
// w is a terminal, whose output nothing stores: only then does Banner show a link to the admin UI.
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
		fmt.Fprintf(w, "  token      created an access token for apps, in %s\n", s.tokenPath())
	}
	fmt.Fprintf(w, "\n  Pair a phone:      %s pair\n", program)
	fmt.Fprintf(w, "  Chat from here:    %s chat\n", program)
	s.adminBanner(w, program, screen)
	if s.cfg.Agent == "relay" {
		s.connectHermes(w, program)
	}
	if s.cfg.Agent == "direct" {
		s.callHermes(w, program)
	}
	fmt.Fprintln(w)
}

// adminBanner says how to open the admin UI. At a terminal it prints a link. The link is a secret for two
// minutes, so it must not end up in a file or a journal. If other machines can reach the listener, the
// terminal is probably that of a service, and adminBanner prints only the command.
func (s *Server) adminBanner(w io.Writer, program string, screen bool) {
	if s.cfg.Admin == adminOff {
		return
	}
	fmt.Fprintf(w, "  Admin UI:          %s admin\n", program)
	if !screen || !s.onLoopback() {
		return
	}
	if link, err := s.AdminLink(context.Background()); err == nil && link.Here != "" {
		fmt.Fprintf(w, "\n  Or open the admin UI with this link. It works once, within %d minutes:\n\n    %s\n", int(onetime.KeyLife.Minutes()), link.Here)
	}
}

// onLoopback reports whether only programs on this machine can reach the listener.
func (s *Server) onLoopback() bool {
	addr, err := netip.ParseAddrPort(s.listener.Addr().String())
	return err == nil && addr.Addr().Unmap().IsLoopback()
}

// connectHermes prints how to make a Hermes gateway dial in, if none is set up yet.
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
  Hermes is not connected yet. To connect it:  %s setup

  To connect it by hand, add its id and secret to .env in the Hermes home (%s):

    (umask 077; cat %s >> %s)

  Add to config.yaml there:

    gateway: {relay_url: "%s"}
    platforms: {relay: {enabled: true, extra: {relay_url: "%s"}}}
    streaming: {enabled: true}    # Hermes 0.22 and newer; omit this line on 0.19
    display: {busy_ack_enabled: false, busy_input_mode: steer, platforms: {relay: {tool_progress: "off"}}}

  Then start the gateway again:  hermes gateway run
`, program, s.cfg.HermesHome, shellquote.Word(s.gatewayPath()), shellquote.Word(filepath.Join(s.cfg.HermesHome, ".env")), url, url)
}

// callHermes prints the API that the agent direct uses, and how to set it up if there is no key.
func (s *Server) callHermes(w io.Writer, program string) {
	switch {
	case s.cfg.APIKind == "openai":
		fmt.Fprintf(w, "  Model server:      %s\n", s.cfg.APIURL)
	case s.cfg.APIKey == "":
		fmt.Fprintf(w, `
  No key for Hermes' API at %s.
  To enable the API, run on the machine of Hermes:  %s setup --api
  Then restart the gateway and this server. If Hermes runs elsewhere, set MOBILE_API_URL and MOBILE_API_KEY.
`, s.cfg.APIURL, program)
	default:
		fmt.Fprintf(w, "  Hermes' API:       %s (to enable it: %s setup --api, then hermes gateway restart)\n", s.cfg.APIURL, program)
	}
}
