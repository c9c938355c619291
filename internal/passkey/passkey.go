// Package passkey lets the owner log in to the admin UI with passkeys (WebAuthn). A passkey belongs
// to one site, which is the server at its public address or at localhost. It always requires user
// verification, by a PIN or a fingerprint.
package passkey

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"hermes-mobile/frame"
	"hermes-mobile/internal/store"
)

const (
	// maxPasskeys is the maximum number of passkeys.
	maxPasskeys = 32
	// metaUser is the store's key for the user handle. There is one owner.
	metaUser = "passkey_user"
	userSize = 32
)

// Errors of this package.
var (
	ErrUnknown  = errors.New("no such passkey: list them with hermes-mobile admin passkeys list")
	ErrMany     = fmt.Errorf("the maximum of %d passkeys is reached: remove one first", maxPasskeys)
	ErrTwice    = errors.New("this passkey is already registered")
	ErrRejected = errors.New("passkey rejected")
	// ErrCloned reports that the passkey's counter decreased, so two copies of it may be in use.
	ErrCloned = errors.New("the passkey's counter decreased, so it may have been copied")
)

// Site is a site on which passkeys are registered and used.
type Site struct {
	ID     string // the host, as browsers bind passkeys to it
	Origin string // scheme, host and port of the page
}

// SiteOf returns the site of an address. ok says that browsers allow passkeys there: it is https
// with a host name, or localhost.
func SiteOf(address string) (site Site, ok bool) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return Site{}, false
	}
	host, scheme := strings.ToLower(u.Hostname()), strings.ToLower(u.Scheme)
	if _, err := netip.ParseAddr(host); err == nil || scheme != "https" && (scheme != "http" || host != "localhost") || protocol.ValidateRPID(host) != nil {
		return Site{}, false
	}
	origin := scheme + "://" + host
	if port := u.Port(); port != "" && port != map[string]string{"https": "443", "http": "80"}[scheme] {
		origin = scheme + "://" + net.JoinHostPort(host, port)
	}
	return Site{ID: host, Origin: origin}, true
}

// Passkey is one of the owner's passkeys.
type Passkey struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Site      string     `json:"site"` // the host on which it works
	CreatedAt time.Time  `json:"created_at"`
	UsedAt    *time.Time `json:"used_at,omitempty"`
}

// credential is the stored part of a passkey.
type credential struct {
	Site      string `json:"site"`
	PublicKey []byte `json:"public_key"` // COSE
	Synced    bool   `json:"synced"`     // its authenticator may sync it to others; this never changes
	Count     uint32 `json:"count"`      // of signatures; 0: its authenticator doesn't count
}

// Keys manages the owner's passkeys. It is safe for concurrent use.
type Keys struct {
	store *store.Store
	log   *slog.Logger
	now   func() time.Time

	mu         sync.Mutex // held from the check of an answer until it is stored, so each counts once
	challenges *challenges
}

// New returns the passkeys of a store.
func New(s *store.Store, log *slog.Logger, now func() time.Time) *Keys {
	return &Keys{store: s, log: log, now: now, challenges: newChallenges()}
}

// List returns all passkeys, the oldest first.
func (k *Keys) List(ctx context.Context) ([]Passkey, error) {
	stored, err := k.store.Passkeys(ctx)
	list := make([]Passkey, 0, len(stored))
	for _, p := range stored {
		var c credential
		if err := json.Unmarshal(p.Credential, &c); err != nil {
			return nil, fmt.Errorf("passkey %s: %w", p.ID, err)
		}
		list = append(list, shown(p, c))
	}
	return list, err
}

func shown(p store.Passkey, c credential) Passkey {
	out := Passkey{ID: p.ID, Name: p.Name, Site: c.Site, CreatedAt: p.CreatedAt.UTC()}
	if !p.UsedAt.IsZero() {
		at := p.UsedAt.UTC()
		out.UsedAt = &at
	}
	return out
}

// Usable reports whether a site has a passkey.
func (k *Keys) Usable(ctx context.Context, site Site) (bool, error) {
	list, err := k.List(ctx)
	for _, p := range list {
		if p.Site == site.ID {
			return true, nil
		}
	}
	return false, err
}

// party returns the WebAuthn relying party for a site.
func party(site Site) (*webauthn.WebAuthn, error) {
	life := webauthn.TimeoutConfig{Timeout: challengeLife, TimeoutUVD: challengeLife}
	w, err := webauthn.New(&webauthn.Config{RPID: site.ID, RPDisplayName: "Hermes Mobile", RPOrigins: []string{site.Origin},
		AttestationPreference: protocol.PreferNoAttestation, Timeouts: webauthn.TimeoutsConfig{Login: life, Registration: life},
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore})
	if err != nil {
		return nil, fmt.Errorf("passkeys for %s: %w", site.Origin, err)
	}
	return w, nil
}

// owner is the WebAuthn user of all passkeys.
type owner struct {
	handle []byte
	known  []webauthn.Credential
}

func (o owner) WebAuthnID() []byte                         { return o.handle }
func (o owner) WebAuthnName() string                       { return "admin" }
func (o owner) WebAuthnDisplayName() string                { return "Hermes Mobile admin" }
func (o owner) WebAuthnCredentials() []webauthn.Credential { return o.known }

// handle returns the owner's user handle, and creates it the first time.
func (k *Keys) handle(ctx context.Context) ([]byte, error) {
	made := make([]byte, userSize)
	rand.Read(made)
	stored, err := k.store.Meta(ctx, metaUser)
	if err != nil || len(stored) == userSize {
		return stored, err
	}
	if err := k.store.Do(func(tx *store.Tx) error { return tx.AddMeta(metaUser, made) }); err != nil {
		return nil, err
	}
	return k.store.Meta(ctx, metaUser) // a concurrent call may have stored another
}

// use returns the purpose of a challenge, which separates kinds, sites and sessions.
func use(kind string, site Site, binding string) string {
	return kind + "\n" + site.Origin + "\n" + binding
}

// Begin returns the options with which a browser registers a passkey, as JSON. Only the session
// that began can finish.
func (k *Keys) Begin(ctx context.Context, site Site, session string) (*protocol.CredentialCreation, error) {
	w, err := party(site)
	if err != nil {
		return nil, err
	}
	handle, err := k.handle(ctx)
	if err != nil {
		return nil, err
	}
	list, err := k.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(list) >= maxPasskeys {
		return nil, ErrMany
	}
	var there []protocol.CredentialDescriptor
	for _, p := range list {
		if id, err := base64.RawURLEncoding.DecodeString(p.ID); err == nil && p.Site == site.ID {
			there = append(there, protocol.CredentialDescriptor{Type: protocol.PublicKeyCredentialType, CredentialID: id})
		}
	}
	resident := true
	k.mu.Lock()
	challenge := k.challenges.issue(use("register", site, session), k.now())
	k.mu.Unlock()
	creation, _, err := w.BeginRegistration(owner{handle: handle}, webauthn.WithExclusions(there),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{RequireResidentKey: &resident,
			ResidentKey: protocol.ResidentKeyRequirementRequired, UserVerification: protocol.VerificationRequired}),
		func(o *protocol.PublicKeyCredentialCreationOptions) error { o.Challenge = challenge; return nil })
	if err != nil {
		return nil, fmt.Errorf("begin a passkey registration: %w", err)
	}
	return creation, nil
}

// Finish stores the passkey that a browser registered in a session. The context names the actor.
func (k *Keys) Finish(ctx context.Context, site Site, session, name string, answer []byte) (Passkey, error) {
	w, err := party(site)
	if err != nil {
		return Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return Passkey{}, rejected(err)
	}
	handle, err := k.handle(ctx)
	if err != nil {
		return Passkey{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now, challenge, use := k.now(), parsed.Response.CollectedClientData.Challenge, use("register", site, session)
	if !k.challenges.valid(challenge, use, now) {
		return Passkey{}, rejected(errors.New("the challenge belongs to another request, has expired, or was already used"))
	}
	made, err := w.CreateCredential(owner{handle: handle}, webauthn.SessionData{Challenge: challenge, RelyingPartyID: site.ID, UserID: handle,
		UserVerification: protocol.VerificationRequired, CredParams: webauthn.CredentialParametersDefault()}, parsed)
	if err != nil {
		return Passkey{}, rejected(err)
	}
	if name = strings.TrimSpace(frame.CleanName(name)); name == "" {
		name = "Passkey"
	}
	c := credential{Site: site.ID, PublicKey: made.PublicKey, Synced: made.Flags.BackupEligible, Count: made.Authenticator.SignCount}
	p := store.Passkey{ID: base64.RawURLEncoding.EncodeToString(made.ID), Name: name, CreatedAt: now}
	if p.Credential, err = json.Marshal(c); err != nil {
		return Passkey{}, err
	}
	added := false
	if err := k.store.Do(func(tx *store.Tx) (err error) {
		if added, err = tx.AddPasskey(p, maxPasskeys); err != nil || !added {
			return err
		}
		return tx.Record(ctx, "passkey.added", p.ID, name)
	}); err != nil {
		return Passkey{}, err
	}
	if !added {
		if list, err := k.store.Passkeys(ctx); err == nil && len(list) >= maxPasskeys {
			return Passkey{}, ErrMany
		}
		return Passkey{}, ErrTwice
	}
	k.challenges.spend(challenge, use, now)
	return shown(p, c), nil
}

// Ask returns the options with which a browser logs in with a passkey, as JSON. step separates
// logins: the answer to one step is invalid in another.
func (k *Keys) Ask(site Site, step string) (*protocol.CredentialAssertion, error) {
	w, err := party(site)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	challenge := k.challenges.issue(use("login", site, step), k.now())
	k.mu.Unlock()
	// The options have no ids, so a stranger doesn't learn which passkeys exist. The authenticator
	// knows its own.
	assertion, _, err := w.BeginDiscoverableLogin(webauthn.WithChallenge(challenge), webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return nil, fmt.Errorf("begin a passkey login: %w", err)
	}
	return assertion, nil
}

// Check verifies the answer of a browser and returns its passkey. The context names who logs in.
// For an invalid answer the error is ErrRejected, and also ErrCloned if the passkey's counter
// decreased.
func (k *Keys) Check(ctx context.Context, site Site, step string, answer []byte) (Passkey, error) {
	w, err := party(site)
	if err != nil {
		return Passkey{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return Passkey{}, rejected(err)
	}
	handle, err := k.store.Meta(ctx, metaUser)
	if err != nil {
		return Passkey{}, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now, challenge, use := k.now(), parsed.Response.CollectedClientData.Challenge, use("login", site, step)
	if !k.challenges.valid(challenge, use, now) {
		return Passkey{}, rejected(errors.New("the challenge belongs to another request, has expired, or was already used"))
	}
	p, err := k.store.Passkey(ctx, base64.RawURLEncoding.EncodeToString(parsed.RawID))
	if err != nil {
		return Passkey{}, err
	}
	if p == nil {
		return Passkey{}, rejected(ErrUnknown)
	}
	var c credential
	if err := json.Unmarshal(p.Credential, &c); err != nil {
		return Passkey{}, fmt.Errorf("passkey %s: %w", p.ID, err)
	}
	if c.Site != site.ID {
		return Passkey{}, rejected(fmt.Errorf("the passkey belongs to %s", c.Site))
	}
	known := webauthn.Credential{ID: parsed.RawID, PublicKey: c.PublicKey, Flags: webauthn.CredentialFlags{UserVerified: true, BackupEligible: c.Synced},
		Authenticator: webauthn.Authenticator{SignCount: c.Count}}
	session := webauthn.SessionData{Challenge: challenge, RelyingPartyID: site.ID, UserVerification: protocol.VerificationRequired}
	_, used, err := w.ValidatePasskeyLogin(func(_, user []byte) (webauthn.User, error) {
		if !bytes.Equal(user, handle) {
			return nil, errors.New("the passkey belongs to another user")
		}
		return owner{handle, []webauthn.Credential{known}}, nil
	}, session, parsed)
	if err != nil {
		return Passkey{}, rejected(err)
	}
	k.challenges.spend(challenge, use, now)
	if used.Authenticator.CloneWarning {
		k.suspect(ctx, p, c.Count, parsed.Response.AuthenticatorData.Counter)
		return Passkey{}, fmt.Errorf("%w: %w", ErrRejected, ErrCloned)
	}
	c.Count, p.UsedAt = used.Authenticator.SignCount, now
	if p.Credential, err = json.Marshal(c); err != nil {
		return Passkey{}, err
	}
	found := false
	if err := k.store.Do(func(tx *store.Tx) (err error) {
		if found, err = tx.UsePasskey(p.ID, p.Credential, now); err != nil || !found {
			return err
		}
		return tx.Record(ctx, "passkey.login", p.ID, p.Name)
	}); err != nil {
		return Passkey{}, err
	}
	if !found { // removed in the meantime
		return Passkey{}, rejected(ErrUnknown)
	}
	return shown(*p, c), nil
}

// suspect logs and records a passkey whose counter decreased.
func (k *Keys) suspect(ctx context.Context, p *store.Passkey, had, got uint32) {
	k.log.Error("passkey rejected, its counter decreased, so it may have been copied: remove it", "passkey", p.ID, "name", p.Name, "counter", got, "expected_above", had)
	if err := k.store.Do(func(tx *store.Tx) error {
		return tx.Record(ctx, "passkey.suspect", p.ID, fmt.Sprintf("counter %d after %d", got, had))
	}); err != nil {
		k.log.Error("audit entry not stored", "action", "passkey.suspect", "err", err)
	}
}

// Rename renames a passkey.
func (k *Keys) Rename(ctx context.Context, id, name string) error {
	if name = strings.TrimSpace(frame.CleanName(name)); name == "" {
		return errors.New("the name is empty: give the passkey a name")
	}
	return k.change(func(tx *store.Tx) (bool, error) {
		found, err := tx.RenamePasskey(id, name)
		if err != nil || !found {
			return found, err
		}
		return true, tx.Record(ctx, "passkey.renamed", id, name)
	})
}

// Remove removes a passkey by its id, or by its name if only one has that name.
func (k *Keys) Remove(ctx context.Context, which string) (Passkey, error) {
	list, err := k.List(ctx)
	if err != nil {
		return Passkey{}, err
	}
	var fits []Passkey
	for _, p := range list {
		if p.ID == which {
			fits = []Passkey{p}
			break
		}
		if p.Name == which {
			fits = append(fits, p)
		}
	}
	switch len(fits) {
	case 0:
		return Passkey{}, ErrUnknown
	case 1:
		return fits[0], k.change(func(tx *store.Tx) (bool, error) {
			found, err := tx.RemovePasskey(fits[0].ID)
			if err != nil || !found {
				return found, err
			}
			return true, tx.Record(ctx, "passkey.removed", fits[0].ID, fits[0].Name)
		})
	}
	return Passkey{}, fmt.Errorf("%d passkeys have the name %q: give the id of one", len(fits), which)
}

func (k *Keys) change(do func(*store.Tx) (found bool, err error)) error {
	found := false
	if err := k.store.Do(func(tx *store.Tx) (err error) { found, err = do(tx); return err }); err != nil {
		return err
	}
	if !found {
		return ErrUnknown
	}
	return nil
}

// rejected returns the reason for rejecting an answer, for the log, with the library's details for
// developers.
func rejected(err error) error {
	var e *protocol.Error
	if errors.As(err, &e) && e.DevInfo != "" {
		return fmt.Errorf("%w: %s (%s)", ErrRejected, e.Details, e.DevInfo)
	}
	return fmt.Errorf("%w: %w", ErrRejected, err)
}
