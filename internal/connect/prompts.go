package connect

import (
	"context"
	"errors"
	"fmt"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/vault"
)

// ErrCanceled means that the user left the wizard.
var ErrCanceled = errors.New("canceled: the gateway is not connected")

// Prompter asks the user questions. Each question may return [ErrCanceled].
type Prompter interface {
	Show(text string)
	// Text asks for a line. An empty answer keeps now, the current value.
	Text(ctx context.Context, title, help, now string) (string, error)
	// Secret asks for a line without echo.
	Secret(ctx context.Context, title, help string) (gateway.Secret, error)
	// Interactive reports whether a user is present, so that optional questions make sense. A script sends
	// messages after its answers, and an unexpected question would consume one of them.
	Interactive() bool
	// Choose asks for one of some options and returns its index.
	Choose(ctx context.Context, title string, options []string, now int) (int, error)
}

// Run asks questions until the gateway is connected.
func Run(ctx context.Context, m *Machine, p Prompter) error {
	if err := until(ctx, m, p, func(s Step) bool { return s == Done }); err != nil {
		return err
	}
	return jobs(ctx, m, p, m.State())
}

// Reconnect asks the questions again for a gateway that is already connected. It unlocks the stored
// credentials first.
func Reconnect(ctx context.Context, m *Machine, p Prompter) error {
	if err := until(ctx, m, p, func(s Step) bool { return s != Unlock }); err != nil {
		return err
	}
	if _, err := m.Do(ctx, Action{Do: Edit}); err != nil {
		return err
	}
	return Run(ctx, m, p)
}

// until asks questions until end returns true for the step.
func until(ctx context.Context, m *Machine, p Prompter, end func(Step) bool) error {
	for {
		s := m.State()
		for _, problem := range s.Problems {
			p.Show(problem.Text)
		}
		if end(s.Step) {
			return nil
		}
		action, err := question(ctx, s, p)
		if err != nil {
			return err
		}
		if action.Do == TestNow || action.Do == Trust || action.Do == Relearn || action.Do == Decline {
			p.Show("Testing the gateway…")
		}
		if s, err = m.Do(ctx, action); err != nil {
			return err
		}
		if s.Result != nil {
			tell(p, *s.Result)
		}
	}
}

// jobs asks once whether to use scheduled jobs that the gateway does not advertise. If the user cancels, the
// gateway stays connected without them.
func jobs(ctx context.Context, m *Machine, p Prompter, s State) error {
	if !s.NoJobs || s.Jobs != gateway.JobsUnasked || !p.Interactive() {
		return nil
	}
	yes, err := agrees(ctx, p, `Show the scheduled jobs of this gateway? Hermes has them, but does not advertise them to apps. They work with all tested versions, but
a later version may change them without notice`)
	if errors.Is(err, ErrCanceled) {
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

func question(ctx context.Context, s State, p Prompter) (a Action, err error) {
	switch s.Step {
	case Welcome:
		p.Show(`Welcome. Connect to your own Hermes gateway.
Addresses and conversations stay in the data folder on this machine. Credentials are stored encrypted and sent only to your gateway.`)
		return Action{Do: Begin}, nil
	case Remote:
		a = Action{Do: SetRemote}
		a.Remote, err = p.Text(ctx, "Remote address", "The https address that reaches the gateway from anywhere.", s.Remote)
		if err == nil && Plain(a.Remote) {
			a.Insecure, err = agrees(ctx, p, plainQuestion)
		}
	case Local:
		a = Action{Do: SetLocal}
		a.Local, err = p.Text(ctx, "Local address (optional)", "The address of the same gateway in your home network. Enter - for none.", s.Local)
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

const plainQuestion = "This address is not encrypted: others in the same network, or at this address in another network, can read your credential and messages. Use it anyway?"

func agrees(ctx context.Context, p Prompter, question string) (bool, error) {
	n, err := p.Choose(ctx, question, []string{"No", "Yes"}, 0)
	return n == 1, err
}

var modes = []gateway.AuthMode{gateway.AuthNone, gateway.AuthBearer, gateway.AuthPassword}

func credential(ctx context.Context, s State, p Prompter) (a Action, err error) {
	now := 1
	for i, mode := range modes {
		if mode == s.Auth {
			now = i
		}
	}
	n, err := p.Choose(ctx, "Sign-in method", []string{"Without a credential", "With a token (API_SERVER_KEY)", "With user name and password"}, now)
	if err != nil {
		return a, err
	}
	a = Action{Do: SetAuth, Auth: modes[n], Username: s.Username}
	help := ""
	if s.Kept && a.Auth == s.Auth {
		help = "Leave empty to keep the stored one."
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

func passphrase(ctx context.Context, s State, p Prompter) (Action, error) {
	forget := Action{Do: ForgetAll}
	switch s.Vault.State {
	case vault.Unmade:
		p.Show("This machine has no usable keyring, so a passphrase encrypts your credentials. You enter it at each start.")
		for {
			one, err := p.Secret(ctx, "New passphrase", fmt.Sprintf("At least %d characters.", vault.MinPassphrase))
			if err != nil {
				return Action{}, err
			}
			again, err := p.Secret(ctx, "Repeat the passphrase", "")
			if err != nil {
				return Action{}, err
			}
			if one == again {
				return Action{Do: Open, Secret: one}, nil
			}
			p.Show("The passphrases don't match.")
		}
	case vault.Closed:
		secret, err := p.Secret(ctx, "Passphrase for the stored credentials", "Leave empty to delete them and sign in again.")
		if err != nil || !secret.IsZero() {
			return Action{Do: Open, Secret: secret}, err
		}
		if sure, err := agrees(ctx, p, "Delete the stored credentials?"); err != nil || !sure {
			return Action{Do: Open}, err
		}
		return forget, nil
	default:
		sure, err := agrees(ctx, p, "The stored credentials are unreadable. Delete them and sign in again?")
		if err == nil && !sure {
			err = ErrCanceled
		}
		return forget, err
	}
}

func tell(p Prompter, r Result) {
	for _, a := range r.Attempts {
		name := map[gateway.RouteKind]string{gateway.Local: "Local", gateway.Remote: "Remote"}[a.Kind]
		switch {
		case a.OK && a.Version != "":
			p.Show(fmt.Sprintf("%s (%s): connected to Hermes %s.", name, a.Host, a.Version))
		case a.OK:
			p.Show(fmt.Sprintf("%s (%s): connected.", name, a.Host))
		default:
			p.Show(fmt.Sprintf("%s (%s): %s", name, a.Host, a.Text))
		}
	}
	if r.Passed {
		p.Show("The gateway is connected.")
	}
}

// afterTest asks what to do after a failed test.
func afterTest(ctx context.Context, r Result, p Prompter) (Action, error) {
	options := []string{"Test again", "Go back and change the settings"}
	actions := []Action{{Do: TestNow}, {Do: Back}}
	for _, a := range r.Attempts {
		switch {
		case a.Pin != "":
			p.Show(fmt.Sprintf("Certificate of %s: %s\nFingerprint of its key: %s\nCompare it with the fingerprint that the gateway's owner sees. If you trust a wrong key, you give your credential away.", a.Host, a.Certificate, a.Pin))
			options = append(options, "Trust the key of "+a.Host)
			actions = append(actions, Action{Do: Trust, Kind: a.Kind, Pin: a.Pin})
		case a.Code == Other && a.Kind == gateway.Remote:
			options = append(options, "The gateway was replaced: use the new one")
			actions = append(actions, Action{Do: Relearn})
		}
		if a.CanSkip {
			options = append(options, "Continue without the local address")
			actions = append(actions, Action{Do: Decline})
		}
	}
	n, err := p.Choose(ctx, "The test failed", options, 0)
	if err != nil {
		return Action{}, err
	}
	return actions[n], nil
}
