package connect

import (
	"context"
	"errors"
	"fmt"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/vault"
)

// ErrGivenUp: the person left the setup.
var ErrGivenUp = errors.New("the setup was left")

// Person is who is asked. Each method may return [ErrGivenUp].
type Person interface {
	Tell(text string)
	// Text asks for a line; now is what there is, which an empty answer keeps.
	Text(ctx context.Context, title, help, now string) (string, error)
	// Secret asks for a line that is not shown.
	Secret(ctx context.Context, title, help string) (gateway.Secret, error)
	// Present reports whether somebody is there, who is asked what may be left out, too. To a program, whose lines after the setup are
	// messages, each question that it does not know would be one of them.
	Present() bool
	// Choose asks for one of some options and returns its index.
	Choose(ctx context.Context, title string, options []string, now int) (int, error)
}

// Setup asks until the setup is done.
func Setup(ctx context.Context, m *Machine, p Person) error {
	if err := until(ctx, m, p, func(s Step) bool { return s == Done }); err != nil {
		return err
	}
	return jobs(ctx, m, p, m.State())
}

// Again goes through the setup of a gateway that is in use once more. What is kept is unlocked first.
func Again(ctx context.Context, m *Machine, p Person) error {
	if err := until(ctx, m, p, func(s Step) bool { return s != Unlock }); err != nil {
		return err
	}
	if _, err := m.Do(ctx, Action{Do: Edit}); err != nil {
		return err
	}
	return Setup(ctx, m, p)
}

// until asks until the setup is at a step that ends it.
func until(ctx context.Context, m *Machine, p Person, end func(Step) bool) error {
	for {
		s := m.State()
		for _, problem := range s.Problems {
			p.Tell(problem.Text)
		}
		if end(s.Step) {
			return nil
		}
		action, err := question(ctx, s, p)
		if err != nil {
			return err
		}
		if action.Do == TestNow || action.Do == Trust || action.Do == Relearn || action.Do == Decline {
			p.Tell("Testing the gateway…")
		}
		if s, err = m.Do(ctx, action); err != nil {
			return err
		}
		if s.Result != nil {
			tell(p, *s.Result)
		}
	}
}

// jobs asks once whether scheduled jobs may be used that the gateway does not advertise. Who leaves here has a gateway without them.
func jobs(ctx context.Context, m *Machine, p Person, s State) error {
	if !s.NoJobs || s.Jobs != gateway.JobsUnasked || !p.Present() {
		return nil
	}
	yes, err := agrees(ctx, p, `Show the scheduled jobs of this gateway? Hermes has them, but does not advertise them to apps: they work with the versions tested,
and a later version may change them without notice`)
	if errors.Is(err, ErrGivenUp) {
		return nil
	}
	if err != nil {
		return err
	}
	answer := gateway.JobsOff
	if yes {
		answer = gateway.JobsOn
	}
	_, err = m.Do(ctx, Action{Do: SetJobs, Jobs: answer})
	return err
}

func question(ctx context.Context, s State, p Person) (a Action, err error) {
	switch s.Step {
	case Welcome:
		p.Tell(`Welcome. This connects to your own Hermes gateway, and to nobody else.
The address and the conversation stay in the data folder of this machine. Credentials are kept encrypted, and are sent to the gateway only.`)
		return Action{Do: Begin}, nil
	case Remote:
		a = Action{Do: SetRemote}
		a.Remote, err = p.Text(ctx, "Remote address", "The https address by which the gateway is reached from everywhere.", s.Remote)
		if err == nil && Plain(a.Remote) {
			a.Insecure, err = agrees(ctx, p, plainQuestion)
		}
	case Local:
		a = Action{Do: SetLocal}
		a.Local, err = p.Text(ctx, "Local address (may be empty)", "The address of the same gateway at home, which is used there. Write - for none.", s.Local)
		if a.Local == "-" {
			a.Local = ""
		}
		a.Insecure = s.Insecure && Plain(a.Local)
		if err == nil && Plain(a.Local) && !s.Insecure {
			a.Insecure, err = agrees(ctx, p, plainQuestion)
		}
	case Auth:
		return credential(ctx, s, p)
	case Unlock:
		return passphrase(ctx, s, p)
	case Test:
		if s.Result == nil {
			return Action{Do: TestNow}, nil
		}
		return afterTest(ctx, *s.Result, p)
	}
	return a, err
}

const plainQuestion = "This address is not encrypted: whoever is in the same network, or answers at this address in another one, can read your credential and messages. Use it all the same?"

func agrees(ctx context.Context, p Person, question string) (bool, error) {
	n, err := p.Choose(ctx, question, []string{"No", "Yes"}, 0)
	return n == 1, err
}

var modes = []gateway.AuthMode{gateway.AuthNone, gateway.AuthBearer, gateway.AuthPassword}

func credential(ctx context.Context, s State, p Person) (a Action, err error) {
	now := 1
	for i, mode := range modes {
		if mode == s.Auth {
			now = i
		}
	}
	n, err := p.Choose(ctx, "How the gateway lets you in", []string{"Without a credential", "By a token (API_SERVER_KEY)", "By user name and password"}, now)
	if err != nil {
		return a, err
	}
	a = Action{Do: SetAuth, Auth: modes[n], Username: s.Username}
	help := ""
	if s.Kept && a.Auth == s.Auth {
		help = "Leave it empty to keep the one that is stored."
	}
	switch a.Auth {
	case gateway.AuthBearer:
		a.Secret, err = p.Secret(ctx, "Token", help)
	case gateway.AuthPassword:
		if a.Username, err = p.Text(ctx, "User name", "", s.Username); err == nil {
			a.Secret, err = p.Secret(ctx, "Password", help)
		}
	}
	return a, err
}

func passphrase(ctx context.Context, s State, p Person) (Action, error) {
	forget := Action{Do: ForgetAll}
	switch s.Vault.State {
	case vault.Unmade:
		p.Tell("This machine has no keyring that can be used, so the credentials are encrypted by a passphrase. It is asked for at each start.")
		for {
			one, err := p.Secret(ctx, "New passphrase", fmt.Sprintf("At least %d characters.", vault.MinPassphrase))
			if err != nil {
				return Action{}, err
			}
			again, err := p.Secret(ctx, "The same once more", "")
			if err != nil {
				return Action{}, err
			}
			if one == again {
				return Action{Do: Open, Secret: one}, nil
			}
			p.Tell("They differ.")
		}
	case vault.Closed:
		secret, err := p.Secret(ctx, "Passphrase of the stored credentials", "Leave it empty to forget them, and sign in again.")
		if err != nil || !secret.IsZero() {
			return Action{Do: Open, Secret: secret}, err
		}
		if sure, err := agrees(ctx, p, "Forget the stored credentials?"); err != nil || !sure {
			return Action{Do: Open}, err
		}
		return forget, nil
	default:
		sure, err := agrees(ctx, p, "What was stored cannot be read. Forget it, and store the credentials anew?")
		if err == nil && !sure {
			err = ErrGivenUp
		}
		return forget, err
	}
}

func tell(p Person, r Result) {
	for _, a := range r.Attempts {
		name := map[gateway.RouteKind]string{gateway.Local: "Local", gateway.Remote: "Remote"}[a.Kind]
		switch {
		case a.OK && a.Version != "":
			p.Tell(fmt.Sprintf("%s (%s): a Hermes gateway, version %s.", name, a.Host, a.Version))
		case a.OK:
			p.Tell(fmt.Sprintf("%s (%s): it works.", name, a.Host))
		default:
			p.Tell(fmt.Sprintf("%s (%s): %s", name, a.Host, a.Text))
		}
	}
	if r.Passed {
		p.Tell("The gateway is set up.")
	}
}

// afterTest asks what to do about a test that did not pass.
func afterTest(ctx context.Context, r Result, p Person) (Action, error) {
	options := []string{"Test again", "Go back and change something"}
	actions := []Action{{Do: TestNow}, {Do: Back}}
	for _, a := range r.Attempts {
		switch {
		case a.Pin != "":
			p.Tell(fmt.Sprintf("The certificate of %s: %s\nThe fingerprint of its key: %s\nCompare it with what the owner of the gateway sees. Whoever trusts a wrong one gives the credential away.", a.Host, a.Certificate, a.Pin))
			options = append(options, "Trust this key of "+a.Host)
			actions = append(actions, Action{Do: Trust, Kind: a.Kind, Pin: a.Pin})
		case a.Code == Other && a.Kind == gateway.Remote:
			options = append(options, "The gateway was exchanged: take the new one")
			actions = append(actions, Action{Do: Relearn})
		}
		if a.MayGo {
			options = append(options, "Continue without the Local address")
			actions = append(actions, Action{Do: Decline})
		}
	}
	n, err := p.Choose(ctx, "The test did not pass", options, 0)
	if err != nil {
		return Action{}, err
	}
	return actions[n], nil
}
