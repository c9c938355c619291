package device

import (
	"sync"

	"hermes-mobile/frame"
)

// login chooses the credentials of the next hello: the configured token, the pairing code, or the
// device's own token from the store.
type login struct {
	cfg *Config

	mu      sync.Mutex
	token   string // from the store
	pairing bool   // use the pairing code next
	paired  bool   // this process redeemed the pairing code
}

func newLogin(cfg *Config, token string) *login {
	return &login{cfg: cfg, token: token, pairing: token == ""}
}

// sign puts the credentials into a hello.
func (g *login) sign(h *frame.Hello) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.cfg.Token != "":
		h.Token = g.cfg.Token
	case g.pairing && g.cfg.PairCode != "" && !g.paired:
		h.Pair = g.cfg.PairCode
	default:
		h.Token = g.token
	}
}

// adopt takes the token that the server gave for a pairing code.
func (g *login) adopt(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.token, g.pairing, g.paired = token, false, true
}

// pairInstead reports whether the pairing code is worth a try after the server rejected the stored
// token.
func (g *login) pairInstead(e *NoAccessError) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cfg.Token != "" || g.cfg.PairCode == "" || g.pairing || g.paired || e.Code != frame.AuthFailed {
		return false
	}
	g.pairing = true
	return true
}
