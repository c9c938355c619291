package server

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
)

// tokenFile holds the tokens that `token add` and the first start made.
const tokenFile = "tokens"

// firstLabel is the label of the token that the first start makes.
const firstLabel = "app"

// TokenInfo is a token as its owner sees it: never its secret.
type TokenInfo struct {
	Label  string `json:"label"`
	Kind   string `json:"kind"`
	Source string `json:"source"`
	// Device is the id of the only device that it is good for.
	Device string `json:"device,omitempty"`

	Expires *time.Time `json:"expires_at,omitempty"`   // when it ends, or ended
	Used    *time.Time `json:"last_used_at,omitempty"` // by a connection, to the minute
}

// listTokens lists all tokens, and when each was last used.
func (s *Server) listTokens(ctx context.Context) ([]TokenInfo, error) {
	_, list, err := s.readTokens(s.latest.Load())
	uses, failed := s.store.TokenUses(ctx)
	for i := range list {
		list[i].Used = hub.TimeOrNil(uses[list[i].Label])
	}
	return list, errors.Join(err, failed)
}

// loadTokens reads all tokens anew. made: there was none for apps, and one was made.
func (s *Server) loadTokens() (made bool, err error) {
	list, _, err := s.readTokens(s.cfg)
	if err != nil {
		return false, err
	}
	apps := 0
	for _, t := range list {
		if t.Kind == access.App {
			apps++
		}
	}
	if apps == 0 {
		if _, err := access.AddToFile(s.tokenPath(), firstLabel, time.Time{}); err != nil {
			return false, fmt.Errorf("make the first token: %w", err)
		}
		if list, _, err = s.readTokens(s.cfg); err != nil {
			return false, err
		}
	}
	s.tokens.Replace(list)
	return apps == 0, nil
}

func (s *Server) tokenPath() string { return filepath.Join(s.cfg.Data, tokenFile) }

func (s *Server) readTokens(cfg *config.Config) (list []access.Token, info []TokenInfo, err error) {
	names := access.Labels
	add := func(source string, kind access.Kind, text config.Secret, label string) {
		if text == "" {
			return
		}
		tokens, e := access.ParseTokens(text.Reveal(), kind, label, names)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", source, e))
		}
		for _, t := range tokens {
			list = append(list, t)
			info = append(info, TokenInfo{Label: t.Label, Kind: t.Kind.String(), Source: source, Device: t.Device})
		}
	}
	add("MOBILE_TOKEN", access.App, cfg.Token, access.MainLabel)
	if cfg.ExtraTokensBind {
		names = access.Devices
	}
	add("MOBILE_EXTRA_TOKENS", access.App, cfg.ExtraTokens, "")
	names = access.Labels
	add("MOBILE_DELIVER_TOKENS", access.Deliver, cfg.DeliverTokens, "")
	file, e := access.LoadFile(filepath.Join(cfg.Data, tokenFile))
	if e != nil {
		err = errors.Join(err, e)
	}
	for _, t := range file {
		list = append(list, t)
		info = append(info, TokenInfo{Label: t.Label, Kind: t.Kind.String(), Source: tokenFile, Expires: hub.TimeOrNil(t.Expires)})
	}
	if err == nil {
		err = access.CheckTokens(list)
	}
	return list, info, err
}

// Reload takes the token lists of newly read settings into use and ends the connections whose token is gone, and looks for
// another certificate. With nil the settings stay and only the token file is read again.
func (s *Server) Reload(cfg *config.Config) error {
	if cfg == nil {
		return s.reloadTokens(nil)
	}
	var err error
	if s.certs != nil {
		err = s.certs.Reload()
	}
	err = errors.Join(err, s.reloadTokens(cfg))
	outcome := ""
	if err != nil {
		outcome = "failed"
	}
	s.recordAnyway(context.Background(), "settings.reloaded", "", outcome)
	return err
}

func (s *Server) reloadTokens(cfg *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	if cfg == nil {
		cfg = s.latest.Load()
	}
	next := *s.cfg
	next.Token, next.ExtraTokens, next.ExtraTokensBind, next.DeliverTokens = cfg.Token, cfg.ExtraTokens, cfg.ExtraTokensBind, cfg.DeliverTokens
	list, _, err := s.readTokens(&next)
	if err != nil {
		return fmt.Errorf("the tokens stay as they were: %w", err)
	}
	s.latest.Store(&next)
	s.tokens.Replace(list)
	accepted := map[uint64]access.Token{}
	for _, t := range list {
		accepted[hub.TokenSum(t.Secret)] = t
	}
	s.hub.Owner().TokensChanged(accepted)
	s.log.Info("tokens were read again", "tokens", len(list))
	return nil
}

func (s *Server) addToken(label string, expires time.Time) (string, error) {
	s.reload.Lock()
	defer s.reload.Unlock()
	_, info, err := s.readTokens(s.latest.Load())
	if err != nil {
		return "", err
	}
	for _, t := range info {
		if t.Label == label {
			where := t.Source
			if where == tokenFile {
				where = "made with token add; hermes-mobile token remove takes it away"
			}
			return "", fmt.Errorf("there is a token with the label %q already (%s): choose another label", label, where)
		}
	}
	return access.AddToFile(s.tokenPath(), label, expires)
}
