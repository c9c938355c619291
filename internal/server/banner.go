package server

import (
	"fmt"
	"io"
)

// Banner says, when the server starts: where it listens, which agent and how it is, how to pair a phone, how to connect
// Hermes where it is not, and where the data is. It shows no token.
func (s *Server) Banner(w io.Writer) {
	fmt.Fprintf(w, "hermes-mobile %s\n\n", s.version)
	fmt.Fprintf(w, "  listening  ws://%s%s\n", s.listener.Addr(), s.cfg.Path)
	if s.cfg.PublicURL != "" {
		fmt.Fprintf(w, "  public     %s\n", s.cfg.PublicURL)
	}
	fmt.Fprintf(w, "  agent      %s\n", s.cfg.AgentWhy)
	fmt.Fprintf(w, "  data       %s\n", s.cfg.Data)
	if s.madeTok {
		fmt.Fprintf(w, "  token      made for apps without pairing: it stands in %s\n", s.tokenPath())
	}
	fmt.Fprintf(w, "\n  Pair a phone:      hermes-mobile pair\n")
	fmt.Fprintf(w, "  Talk from here:    hermes-mobile chat\n")
	if s.cfg.Agent == "relay" {
		s.connectHermes(w)
	}
	fmt.Fprintln(w)
}

// connectHermes prints the lines that make a Hermes gateway dial in, where none has been told to yet.
func (s *Server) connectHermes(w io.Writer) {
	if len(s.cfg.Gateways) > 0 {
		fmt.Fprintf(w, "  Hermes:            waiting for the gateway to dial in (start it with: hermes gateway run)\n")
		return
	}
	url, _ := s.publicBase()
	fmt.Fprintf(w, `
  Hermes is not connected yet. Put its id and secret into the .env of the Hermes home (%s):

    cat %s >> %s/.env

  add to config.yaml there

    gateway: {relay_url: "%s"}
    platforms: {relay: {enabled: true, extra: {relay_url: "%s"}}}
    streaming: {enabled: true}
    display: {busy_ack_enabled: false, busy_input_mode: queue, platforms: {relay: {tool_progress: "off"}}}

  and restart the gateway: hermes gateway run
`, s.cfg.HermesHome, s.gatewayPath(), s.cfg.HermesHome, url, url)
}
