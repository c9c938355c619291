package connect

import (
	"errors"
	"net/url"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/vault"
)

// complete turns a typed address into the form of a profile.
func complete(address string) string {
	address = strings.TrimSpace(address)
	if address != "" && !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return strings.TrimRight(address, "/")
}

func (m *Machine) setRemote(a Action) {
	next := m.draft
	next.Remote, next.Insecure = complete(a.Remote), a.Insecure || m.draft.Insecure && Plain(m.draft.Local)
	if m.wrong(next, "remote") {
		m.draft.Remote, m.draft.Insecure, m.step = next.Remote, next.Insecure, Remote
		return
	}
	if next.Remote != m.draft.Remote { // the stored key and identity belong to another gateway
		next.RemoteKey, next.Identity, next.Jobs = "", nil, gateway.JobsUnasked
	}
	m.take(next)
	m.step = Local
}

func (m *Machine) setLocal(a Action) {
	next := m.draft
	next.Local, next.Insecure = complete(a.Local), a.Insecure || m.draft.Insecure && Plain(m.draft.Remote)
	if m.wrong(next, "local") {
		m.draft.Local, m.step = next.Local, Local
		return
	}
	if next.Local != m.draft.Local {
		next.LocalKey = ""
		if next.Identity != nil {
			identity := *next.Identity
			identity.LocalKey = ""
			next.Identity = &identity
		}
	}
	m.take(next)
	m.step = Auth
}

func (m *Machine) setAuth(a Action) {
	next := m.draft
	next.Auth, next.Username = a.Auth, strings.TrimSpace(a.Username)
	if next.Auth != gateway.AuthPassword {
		next.Username = ""
	}
	if m.wrong(next, "auth", "username") {
		m.step = Auth
		if next.Auth == gateway.AuthPassword {
			m.draft.Auth, m.draft.Username = next.Auth, next.Username
		}
		return
	}
	changed := next.Auth != m.draft.Auth
	m.take(next)
	if changed {
		m.creds = gateway.Credentials{}.For(m.draft)
	}
	switch {
	case a.Secret.IsZero():
	case next.Auth == gateway.AuthBearer:
		m.creds = gateway.Credentials{Token: gateway.NewSecret(strings.TrimSpace(a.Secret.Reveal()))}.For(m.draft)
	case next.Auth == gateway.AuthPassword:
		m.creds = gateway.Credentials{Password: a.Secret}.For(m.draft) // drops the session of the old password
	}
	if next.Auth != gateway.AuthNone && !m.has() {
		m.step, m.problems = Auth, []Problem{{Field: "secret", Code: Missing, Text: "Enter it: none is stored for this gateway and account."}}
		return
	}
	m.step = Test
	if state, _ := m.o.Storage.Vault.State(); next.Auth != gateway.AuthNone && state != vault.Ready {
		m.step = Unlock
	}
}

// setJobs stores whether to use jobs that the gateway does not advertise. It changes neither
// addresses nor credentials, so it needs no new test.
func (m *Machine) setJobs(answer gateway.JobAccess) error {
	if m.step != Done || m.saved == nil || answer != gateway.JobsOn && answer != gateway.JobsOff {
		m.problems = []Problem{{Field: "jobs", Code: Invalid, Text: "Answer on or off, once the gateway is connected."}}
		return nil
	}
	next := *m.saved
	next.Jobs = answer
	if err := m.o.Storage.SaveProfile(next); err != nil {
		return err
	}
	m.saved, m.draft.Jobs = &next, answer
	return nil
}

// take changes the draft. It drops the credentials of another gateway or account, typed or stored.
func (m *Machine) take(next gateway.Profile) {
	m.draft = next
	m.creds = m.creds.For(next)
}

// wrong records the problems of these fields of a profile. Other fields have their own steps.
func (m *Machine) wrong(p gateway.Profile, fields ...string) bool {
	for _, err := range problemsOf(p.Validate()) {
		for _, field := range fields {
			if err.Field == field {
				m.problems = append(m.problems, describe(err))
			}
		}
	}
	return len(m.problems) > 0
}

// problemsOf splits an error of Validate.
func problemsOf(err error) (list []*gateway.ProfileError) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			list = append(list, problemsOf(e)...)
		}
		return list
	}
	var one *gateway.ProfileError
	if errors.As(err, &one) {
		list = append(list, one)
	}
	return list
}

var fieldNames = map[string]string{"remote": "The remote address", "local": "The local address", "auth": "The sign-in method", "username": "The user name"}

func describe(err *gateway.ProfileError) Problem {
	p := Problem{Field: err.Field, Code: Invalid, Text: fieldNames[err.Field] + " " + err.Problem + "."}
	switch {
	case strings.HasPrefix(err.Problem, "is missing"):
		p.Code = Missing
	case strings.Contains(err.Problem, "https://,"), strings.Contains(err.Problem, "https://:"):
		p.Code = NotHTTPS
	}
	return p
}

func (m *Machine) unlock(passphrase gateway.Secret) error {
	err := m.o.Storage.Vault.Unlock(passphrase) // takes about a second
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case errors.Is(err, vault.ErrPassphrase):
		m.step, m.problems = Unlock, []Problem{{Field: "passphrase", Code: Passphrase, Text: sentence(err)}}
		return nil
	case errors.Is(err, gateway.ErrSignIn):
		m.step, m.problems = Unlock, []Problem{{Field: "passphrase", Code: Lost, Text: sentence(err)}}
		return nil
	case err != nil:
		return err
	}
	if m.saved != nil && !m.changed() {
		m.resume()
		return nil
	}
	if m.step == Unlock {
		m.step = Test
	}
	return nil
}

// changed reports whether the user changed something since the profile was stored.
func (m *Machine) changed() bool {
	return m.saved == nil || m.saved.Remote != m.draft.Remote || m.saved.Local != m.draft.Local || m.saved.Auth != m.draft.Auth ||
		m.saved.Username != m.draft.Username || m.saved.Insecure != m.draft.Insecure || m.has() && !m.legacy
}

// forget deletes the stored credentials, so that the user signs in again.
func (m *Machine) forget() error {
	if err := m.o.Storage.Vault.Reset(); err != nil {
		return err
	}
	m.legacy = false
	switch {
	case m.draft.Auth == gateway.AuthNone:
	case !m.has():
		m.step = Auth
	case m.step == Unlock:
		if state, _ := m.o.Storage.Vault.State(); state == vault.Ready {
			m.step = Test
		}
	}
	return nil
}

func (m *Machine) trust(a Action) {
	switch a.Kind {
	case gateway.Remote:
		m.draft.RemoteKey = a.Pin
	case gateway.Local:
		m.draft.LocalKey = a.Pin
	}
	if m.draft.Identity != nil { // the new key replaces the learned one
		identity := *m.draft.Identity
		if a.Kind == gateway.Remote {
			identity.RemoteKey = ""
		} else {
			identity.LocalKey = ""
		}
		m.draft.Identity = &identity
	}
}

// decline drops the local address and the consent for it.
func (m *Machine) decline() {
	m.draft.Local, m.draft.LocalKey = "", ""
	m.draft.Insecure = m.draft.Insecure && Plain(m.draft.Remote)
	if m.draft.Identity != nil {
		identity := *m.draft.Identity
		identity.LocalKey = ""
		m.draft.Identity = &identity
	}
}

// sentence writes an error as one.
func sentence(err error) string {
	text := strings.TrimSpace(err.Error())
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

// Plain reports whether an address that the user typed means a connection without encryption, which
// the user must agree to. Addresses of this machine need no consent.
func Plain(address string) bool {
	u, err := url.Parse(complete(address))
	return err == nil && u.Scheme == "http" && u.Hostname() != "localhost" && !strings.HasPrefix(u.Hostname(), "127.") && u.Hostname() != "::1"
}
