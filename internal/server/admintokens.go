package server

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/hub"
)

// inviteLife is the lifetime of a pairing code (doc/protocol.md §8).
const inviteLife = 10 * time.Minute

// maxTokenLife bounds the lifetime of a token.
const maxTokenLife = 10 * 365 * 24 * time.Hour

// tokenLife returns the lifetime of a token, 0 if it doesn't expire.
func tokenLife(seconds int64) (time.Duration, error) {
	if seconds < 0 || seconds > int64(maxTokenLife/time.Second) {
		return 0, fmt.Errorf("a lifetime of %d seconds is out of range: a token is valid for one second to ten years, or doesn't expire", seconds)
	}
	return time.Duration(seconds) * time.Second, nil
}

// tokenEnd returns when a token that is created now expires, zero if it doesn't.
func tokenEnd(seconds int64) (time.Time, error) {
	life, err := tokenLife(seconds)
	if err != nil || life == 0 {
		return time.Time{}, err
	}
	return time.Now().Add(life).UTC().Truncate(time.Second), nil
}

// code returns what a pairing code grants.
func (c Command) code() (access.PairingCode, error) {
	life, err := tokenLife(c.Seconds)
	return access.PairingCode{User: c.User, Trusted: c.Trusted, Life: life}, err
}

// invite creates a pairing code.
func (a *adminAPI) invite(ctx context.Context, of access.PairingCode) (Invitation, error) {
	code, name, expires, err := a.hub.Owner().Invite(ctx, of, inviteLife)
	if err != nil {
		return Invitation{}, err
	}
	code = access.FormatCode(code)
	base, local := a.addresses.public()
	link := base + "/#pair=" + url.QueryEscape(code)
	pin := a.addresses.fingerprint()
	if pin != "" {
		link += "&fingerprint=" + pin
	}
	if a.cfg.Path != "/ws" {
		link += "&path=" + url.QueryEscape(a.cfg.Path)
	}
	return Invitation{Name: name, User: of.User, Trusted: of.Trusted, Seconds: int64(of.Life / time.Second), Code: code, Link: link, Address: "ws" + strings.TrimPrefix(base, "http") + a.cfg.Path, Fingerprint: pin,
		Expires: expires.UTC().Truncate(time.Second), Local: local}, nil
}

// rotate replaces a device's own token.
func (a *adminAPI) rotate(ctx context.Context, c Command) (any, error) {
	if c.Life == nil {
		return nil, a.hub.Owner().Rotate(ctx, c.ID, nil)
	}
	expires, err := tokenEnd(*c.Life)
	if err != nil {
		return nil, err
	}
	return nil, a.hub.Owner().Rotate(ctx, c.ID, &expires)
}

// listTokens lists all tokens and when each was last used.
func (a *adminAPI) listTokens(ctx context.Context) ([]TokenInfo, error) {
	_, list, err := a.sources.read(a.sources.latest.Load())
	uses, failed := a.store.TokenUses(ctx)
	for i := range list {
		list[i].Used = hub.TimeOrNil(uses[list[i].Label])
	}
	return list, errors.Join(err, failed)
}

func (a *adminAPI) addToken(ctx context.Context, c Command) (any, error) {
	expires, err := tokenEnd(c.Seconds)
	if err != nil {
		return nil, err
	}
	made := NewToken{Label: c.Label, Expires: hub.TimeOrNil(expires)}
	err = a.audit.attempt(ctx, "token.added", c.Label, func() (err error) { made.Token, err = a.reloader.addToken(c.Label, expires); return err })
	if err != nil {
		return nil, err
	}
	return made, a.reloader.settings(nil)
}

func (a *adminAPI) removeToken(ctx context.Context, c Command) (any, error) {
	if err := access.RemoveFromFile(a.sources.path(), c.Label); err != nil {
		if errors.Is(err, access.ErrUnknownLabel) {
			err = fmt.Errorf("%w in the token file: remove a token of MOBILE_TOKEN or another setting where it is set, then send the server SIGHUP", err)
		}
		return nil, err
	}
	a.audit.recordAnyway(ctx, "token.removed", c.Label, "")
	return nil, a.reloader.settings(nil)
}
