package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/cert"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
)

// tokenFile has the tokens that `token add` and the first start created.
const tokenFile = "tokens"

// firstLabel is the label of the token that the first start creates.
const firstLabel = "app"

// tokenSources reads the tokens of the settings and of the token file.
type tokenSources struct {
	cfg    *config.Config                // of the start
	latest atomic.Pointer[config.Config] // with the token lists that were read last
	made   bool                          // there was no token for apps, so load created one
}

func newTokenSources(cfg *config.Config) *tokenSources {
	s := &tokenSources{cfg: cfg}
	s.latest.Store(cfg)
	return s
}

// path returns the token file.
func (s *tokenSources) path() string { return filepath.Join(s.cfg.Data, tokenFile) }

// load reads all tokens. It creates one for apps if they have none.
func (s *tokenSources) load() ([]access.Token, error) {
	list, _, err := s.read(s.cfg)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.Kind == access.App {
			return list, nil
		}
	}
	if _, err := access.AddToFile(s.path(), firstLabel, time.Time{}); err != nil {
		return nil, fmt.Errorf("create the first token: %w", err)
	}
	s.made = true
	list, _, err = s.read(s.cfg)
	return list, err
}

// read reads the tokens of given settings and of the token file.
func (s *tokenSources) read(cfg *config.Config) (list []access.Token, info []TokenInfo, err error) {
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
	file, e := access.LoadFile(s.path())
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

// reloader reads the tokens and the certificate again while the server runs.
type reloader struct {
	sources *tokenSources
	tokens  *access.Tokens
	certs   *cert.Certificates // nil: without TLS
	hub     *hub.Hub
	audit   *auditLog
	log     *slog.Logger

	mu sync.Mutex
}

// settings applies the token lists of newly read settings, ends the connections whose token is
// gone, and looks for another certificate. The other settings stay. With nil it reads only the
// token file.
func (r *reloader) settings(cfg *config.Config) error {
	if cfg == nil {
		return r.reload(nil)
	}
	var err error
	if r.certs != nil {
		err = r.certs.Reload()
	}
	err = errors.Join(err, r.reload(cfg))
	outcome := ""
	if err != nil {
		outcome = "failed"
	}
	r.audit.recordAnyway(context.Background(), "settings.reloaded", "", outcome)
	return err
}

func (r *reloader) reload(cfg *config.Config) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cfg == nil {
		cfg = r.sources.latest.Load()
	}
	next := *r.sources.cfg
	next.Token, next.ExtraTokens, next.ExtraTokensBind, next.DeliverTokens = cfg.Token, cfg.ExtraTokens, cfg.ExtraTokensBind, cfg.DeliverTokens
	list, _, err := r.sources.read(&next)
	if err != nil {
		return fmt.Errorf("tokens not reloaded: %w", err)
	}
	r.sources.latest.Store(&next)
	r.tokens.Replace(list)
	accepted := map[uint64]access.Token{}
	for _, t := range list {
		accepted[hub.TokenSum(t.Secret)] = t
	}
	r.hub.Owner().TokensChanged(accepted)
	r.log.Info("tokens reloaded", "tokens", len(list))
	return nil
}

// addToken adds a token to the token file and returns its secret.
func (r *reloader) addToken(label string, expires time.Time) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, info, err := r.sources.read(r.sources.latest.Load())
	if err != nil {
		return "", err
	}
	for _, t := range info {
		if t.Label == label {
			where := t.Source
			if where == tokenFile {
				where = "created with token add; hermes-mobile token remove removes it"
			}
			return "", fmt.Errorf("a token with the label %q exists (%s): choose another label", label, where)
		}
	}
	return access.AddToFile(r.sources.path(), label, expires)
}
