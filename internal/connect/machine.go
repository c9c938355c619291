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

// Options is what a machine needs.
type Options struct {
	Keep    *Keep
	RootCAs *x509.CertPool // nil: those of the system
	Log     *slog.Logger
	// OnReady gets what the client is made of: at the start where everything is there, after a test that passed, and after the vault
	// was opened. It is called without the machine's lock, one at a time.
	OnReady func(gateway.Profile, gateway.Credentials)
}

// Machine is the setup. All methods may be called concurrently, as from two tabs.
type Machine struct {
	o Options

	acting sync.Mutex // one action at a time, which may take as long as a test

	mu       sync.Mutex // guards what follows; held for a small file at most
	step     Step
	saved    *gateway.Profile // in use; nil before the first setup
	draft    gateway.Profile
	creds    gateway.Credentials // of the draft; typed ones are not bound to it before the test
	legacy   bool                // creds came out of a profile of the first form, and are to be saved
	problems []Problem
	result   *Result
	noJobs   bool // the gateway that was tested last advertises no jobs
}

// New reads what is kept and decides where the setup stands. It fails where a profile is there that must not be overwritten, as one
// of a newer version.
func New(o Options) (*Machine, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	m := &Machine{o: o, step: Welcome, draft: fresh()}
	p, legacy, err := o.Keep.Profile()
	var field *gateway.ProfileError
	switch {
	case errors.Is(err, ErrNoProfile):
		return m, nil
	case errors.As(err, &field) && field.Field != "schema":
		if err := o.Keep.SetAside(); err != nil {
			return nil, fmt.Errorf("the profile of the gateway cannot be read, and not be renamed either: %w", err)
		}
		m.problems = []Problem{{Field: "profile", Code: Lost, Text: "The profile of the gateway could not be read. It was set aside: set the gateway up again."}}
		return m, nil
	case err != nil:
		return nil, err
	}
	m.saved, m.draft, m.creds = &p, p, legacy
	m.legacy = !legacy.Token.IsZero() || !legacy.Password.IsZero()
	m.settle()
	return m, nil
}

// fresh is a profile that nothing is known of yet.
func fresh() gateway.Profile {
	return gateway.Profile{Schema: gateway.ProfileSchema, ID: strings.ToLower(rand.Text()[:16]), Name: "Hermes", Auth: gateway.AuthBearer}
}

// settle decides the step of a profile that is kept, and reads its credentials.
func (m *Machine) settle() {
	m.step, m.problems = Done, nil
	if m.draft.Auth == gateway.AuthNone && !m.legacy {
		m.creds = gateway.Credentials{}.For(m.draft)
		return
	}
	if state, _ := m.o.Keep.Vault.State(); state == vault.Closed || state == vault.Unmade && m.legacy {
		m.step = Unlock
		return
	}
	if m.legacy {
		if err := errors.Join(m.o.Keep.SaveCredentials(m.draft, m.creds), m.o.Keep.SaveProfile(m.draft)); err != nil {
			m.problems = []Problem{{Field: "profile", Code: Lost, Text: "The credentials could not be stored: " + err.Error() + "."}}
			return
		}
		m.legacy = false
		return
	}
	creds, err := m.o.Keep.Credentials(m.draft)
	switch {
	case err == nil:
		m.creds = creds
		if m.draft.Migrated {
			m.note(m.o.Keep.SaveProfile(m.draft))
		}
	case errors.Is(err, vault.ErrNone):
		m.step, m.problems = Auth, []Problem{{Field: "secret", Code: Missing, Text: "No credential is kept for this gateway: sign in."}}
	default:
		m.step, m.problems = Auth, []Problem{{Field: "secret", Code: Lost, Text: sentence(err)}}
	}
}

func (m *Machine) note(err error) {
	if err != nil {
		m.o.Log.Error("the setup could not be stored", "error", err)
	}
}

// Start tells OnReady where everything is there already.
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

// State tells where the setup stands.
func (m *Machine) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := State{Step: m.step, Editing: m.saved != nil && m.step != Done, Remote: m.draft.Remote, Local: m.draft.Local, Insecure: m.draft.Insecure,
		Auth: m.draft.Auth, Username: m.draft.Username, Kept: m.has(), Problems: append([]Problem{}, m.problems...), Result: m.result,
		Jobs: m.draft.Jobs, NoJobs: m.step == Done && m.noJobs}
	s.Vault.Kind = m.o.Keep.Vault.Kind()
	state, err := m.o.Keep.Vault.State()
	s.Vault.State = state
	var lost *vault.SignInError
	if errors.As(err, &lost) {
		s.Vault.Problem = lost.Problem
	}
	return s
}

// has: there is a credential for the draft as it is.
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

// SignedOut opens the setup where the gateway refused the credential of the running client.
func (m *Machine) SignedOut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.step == Done {
		m.step, m.problems, m.result = Auth, []Problem{{Field: "secret", Code: SignIn, Text: "The gateway refused the stored credential: sign in again."}}, nil
	}
}

// KeepProfile stores what the running client learnt of its gateway. That of a client whose profile was replaced meanwhile is not.
func (m *Machine) KeepProfile(p gateway.Profile) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.saved == nil || !same(*m.saved, p) {
		return
	}
	next := *m.saved
	next.Identity = p.Identity
	m.note(m.o.Keep.SaveProfile(next))
	m.saved = &next
	if same(next, m.draft) {
		m.draft.Identity = p.Identity
	}
}

// KeepCredentials stores what the running client was given by its gateway, such as refreshed cookies.
func (m *Machine) KeepCredentials(p gateway.Profile, c gateway.Credentials) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.saved == nil || !same(*m.saved, p) {
		return
	}
	m.note(m.o.Keep.SaveCredentials(p, c))
	if m.step == Done {
		m.creds = c.For(m.draft)
	}
}

// same reports whether two profiles reach the same account in the same way.
func same(a, b gateway.Profile) bool {
	return a.ID == b.ID && a.Remote == b.Remote && a.Local == b.Local && a.Auth == b.Auth && a.Username == b.Username && a.RemoteKey == b.RemoteKey &&
		a.LocalKey == b.LocalKey
}

// Do carries an action out. The error is of the program, such as a disk that is full; what a person did wrong stands in the state.
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
		m.problems = []Problem{{Field: "profile", Code: Invalid, Text: "This is no step of the setup."}}
	}
	m.mu.Unlock()
	return nil
}

// leave goes back to what is in use.
func (m *Machine) leave() error {
	if m.saved == nil {
		return nil
	}
	m.draft = *m.saved
	m.settle()
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
	if m.step == Unlock { // it is open already
		m.step = Auth
	}
	if m.step == Welcome && m.saved != nil {
		m.step = Remote
	}
}
