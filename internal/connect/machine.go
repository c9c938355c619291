package connect

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/vault"
)

// Options configures a Machine.
type Options struct {
	Storage *Storage
	RootCAs *x509.CertPool // nil: the system's roots
	Log     *slog.Logger
	// OnReady gets the profile and the credentials for the client: at Start if both are stored, after each
	// successful test, and after the vault was unlocked. Calls do not overlap and hold no lock.
	OnReady func(gateway.Profile, gateway.Credentials)
}

// Machine is the state machine of the wizard. It is safe for concurrent use, as from two tabs.
type Machine struct {
	o Options

	acting sync.Mutex // serializes actions, which may take as long as a test

	mu       sync.Mutex // guards the following; held for a small file at most
	step     Step
	saved    *gateway.Profile // the profile in use; nil before the first connection
	draft    gateway.Profile
	creds    gateway.Credentials // for the draft; typed ones are bound to it only by the test
	legacy   bool                // creds come from a profile of the first schema and must be saved
	problems []Problem
	result   *Result
	noJobs   bool // the last tested gateway advertises no jobs
}

// New reads the stored profile and decides the first step. It fails if there is a profile that it must not
// overwrite, such as one of a newer version.
func New(o Options) (*Machine, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Machine{o: o, step: Welcome, draft: fresh()}
	p, legacy, err := o.Storage.Profile()
	var field *gateway.ProfileError
	switch {
	case errors.Is(err, ErrNoProfile):
		return m, nil
	case errors.As(err, &field) && field.Field != "schema":
		if err := o.Storage.MoveAside(); err != nil {
			return nil, fmt.Errorf("move the unreadable profile aside: %w", err)
		}
		m.problems = []Problem{{Field: "profile", Code: Lost, Text: "The stored profile is unreadable and was moved aside. Connect the gateway again."}}
		return m, nil
	case err != nil:
		return nil, err
	}
	m.saved, m.draft, m.creds = &p, p, legacy
	m.legacy = !legacy.Token.IsZero() || !legacy.Password.IsZero()
	m.resume()
	return m, nil
}

// fresh returns a new, empty profile.
func fresh() gateway.Profile {
	return gateway.Profile{Schema: gateway.ProfileSchema, ID: strings.ToLower(rand.Text()[:16]), Name: "Hermes", Auth: gateway.AuthBearer}
}

// resume decides the step for a stored profile and reads its credentials.
func (m *Machine) resume() {
	m.step, m.problems = Done, nil
	if m.draft.Auth == gateway.AuthNone && !m.legacy {
		m.creds = gateway.Credentials{}.For(m.draft)
		return
	}
	if state, _ := m.o.Storage.Vault.State(); state == vault.Closed || state == vault.Unmade && m.legacy {
		m.step = Unlock
		return
	}
	if m.legacy {
		if err := errors.Join(m.o.Storage.SaveCredentials(m.draft, m.creds), m.o.Storage.SaveProfile(m.draft)); err != nil {
			m.problems = []Problem{{Field: "profile", Code: Lost, Text: "Could not store the credentials: " + err.Error() + "."}}
			return
		}
		m.legacy = false
		return
	}
	creds, err := m.o.Storage.Credentials(m.draft)
	switch {
	case err == nil:
		m.creds = creds
		if m.draft.Migrated {
			m.note(m.o.Storage.SaveProfile(m.draft))
		}
	case errors.Is(err, vault.ErrNone):
		m.step, m.problems = Auth, []Problem{{Field: "secret", Code: Missing, Text: "No credential is stored for this gateway. Sign in."}}
	default:
		m.step, m.problems = Auth, []Problem{{Field: "secret", Code: Lost, Text: sentence(err)}}
	}
}

func (m *Machine) note(err error) {
	if err != nil {
		m.o.Log.Error("storing the connection failed", "component", "connect", "err", err)
	}
}

// Start calls OnReady if a profile and its credentials are stored.
func (m *Machine) Start() {
	m.acting.Lock()
	defer m.acting.Unlock()
	m.ready()
}

func (m *Machine) ready() {
	m.mu.Lock()
	done, p, c := m.step == Done && m.saved != nil, m.draft, m.creds
	m.mu.Unlock()
	if done && m.o.OnReady != nil {
		m.o.OnReady(p, c)
	}
}

// State returns the current state.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := State{Step: m.step, Editing: m.saved != nil && m.step != Done, Remote: m.draft.Remote, Local: m.draft.Local, Insecure: m.draft.Insecure,
		Auth: m.draft.Auth, Username: m.draft.Username, Kept: m.has(), Problems: append([]Problem{}, m.problems...), Result: m.result,
		Jobs: m.draft.Jobs, NoJobs: m.step == Done && m.noJobs}
	s.Vault.Kind = m.o.Storage.Vault.Kind()
	state, err := m.o.Storage.Vault.State()
	s.Vault.State = state
	var lost *vault.SignInError
	if errors.As(err, &lost) {
		s.Vault.Problem = lost.Problem
	}
	return s
}

// has reports whether there is a credential for the draft.
func (m *Machine) has() bool {
	c := m.creds.For(m.draft)
	switch m.draft.Auth {
	case gateway.AuthBearer:
		return !c.Token.IsZero()
	case gateway.AuthPassword:
		return !c.Password.IsZero() || c.HasSession()
	}
	return false
}

// SignedOut asks the user to sign in again, after the gateway rejected the credential of the running client.
func (m *Machine) SignedOut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step == Done {
		m.step, m.problems, m.result = Auth, []Problem{{Field: "secret", Code: SignIn, Text: "The gateway rejected the stored credential. Sign in again."}}, nil
	}
}

// KeepProfile stores what the running client learned about its gateway, unless the profile was replaced
// meanwhile.
func (m *Machine) KeepProfile(p gateway.Profile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.saved == nil || !same(*m.saved, p) {
		return
	}
	next := *m.saved
	next.Identity = p.Identity
	m.note(m.o.Storage.SaveProfile(next))
	m.saved = &next
	if same(next, m.draft) {
		m.draft.Identity = p.Identity
	}
}

// KeepCredentials stores credentials that the running client got from its gateway, such as refreshed cookies.
func (m *Machine) KeepCredentials(p gateway.Profile, c gateway.Credentials) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.saved == nil || !same(*m.saved, p) {
		return
	}
	m.note(m.o.Storage.SaveCredentials(p, c))
	if m.step == Done {
		m.creds = c.For(m.draft)
	}
}

// same reports whether two profiles use the same account, addresses, and keys.
func same(a, b gateway.Profile) bool {
	return a.ID == b.ID && a.Remote == b.Remote && a.Local == b.Local && a.Auth == b.Auth && a.Username == b.Username && a.RemoteKey == b.RemoteKey &&
		a.LocalKey == b.LocalKey
}

// Do carries out an action. It returns errors of the program, such as a full disk. Mistakes of the user are in
// State.Problems.
func (m *Machine) Do(ctx context.Context, a Action) (State, error) {
	m.acting.Lock()
	defer m.acting.Unlock()
	before := m.State().Step
	err := m.act(ctx, a)
	if after := m.State().Step; err == nil && after == Done && (before != Done || a.Do == TestNow || a.Do == SetJobs) && a.Do != Leave {
		m.ready()
	}
	return m.State(), err
}

func (m *Machine) act(ctx context.Context, a Action) error {
	m.mu.Lock()
	m.problems = nil
	if a.Do != TestNow && a.Do != Trust && a.Do != Relearn && a.Do != Decline && a.Do != SetJobs {
		m.result = nil
	}
	switch a.Do {
	case Begin:
		if m.step == Welcome {
			m.step = Remote
		}
	case Edit:
		if m.step == Done {
			m.step = Remote
		}
	case Leave:
		defer m.mu.Unlock()
		return m.leave()
	case SetJobs:
		defer m.mu.Unlock()
		return m.setJobs(a.Jobs)
	case Back:
		m.back()
	case SetRemote:
		m.setRemote(a)
	case SetLocal:
		m.setLocal(a)
	case SetAuth:
		m.setAuth(a)
	case Open:
		m.mu.Unlock()
		return m.unlock(a.Secret)
	case ForgetAll:
		defer m.mu.Unlock()
		return m.forget()
	case Trust:
		m.trust(a)
		m.mu.Unlock()
		return m.test(ctx)
	case Relearn:
		m.draft.Identity = nil
		m.mu.Unlock()
		return m.test(ctx)
	case Decline:
		m.decline()
		m.mu.Unlock()
		return m.test(ctx)
	case TestNow:
		m.mu.Unlock()
		return m.test(ctx)
	default:
		m.problems = []Problem{{Field: "profile", Code: Invalid, Text: "Unknown action."}}
	}
	m.mu.Unlock()
	return nil
}

// leave restores the profile in use.
func (m *Machine) leave() error {
	if m.saved == nil {
		return nil
	}
	m.draft = *m.saved
	m.resume()
	return nil
}

func (m *Machine) back() {
	order := []Step{Welcome, Remote, Local, Auth, Unlock, Test}
	for i, step := range order {
		if step == m.step && i > 0 {
			m.step = order[i-1]
			break
		}
	}
	if m.step == Unlock { // the vault is already unlocked
		m.step = Auth
	}
	if m.step == Welcome && m.saved != nil {
		m.step = Remote
	}
}
