package connect

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"testing"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect/connecttest"
	"hermes-mobile/internal/vault"
)

func machine(t *testing.T, dir string, roots *x509.CertPool) *Machine {
	t.Helper()
	v, err := vault.Open(vault.Options{Dir: dir, NoKeyring: true, Work: 10})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Options{Storage: NewStorage(dir, v), RootCAs: roots})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// answers runs the setup on lines and returns what was shown.
func answers(m *Machine, lines ...string) (string, error) {
	var out bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := Run(ctx, m, NewLines(strings.NewReader(strings.Join(lines, "\n")+"\n"), &out))
	return out.String(), err
}

// From the first question to the end: a wrong address, a key to compare, a passphrase that is mistyped.
func TestRun(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	dir := t.TempDir()
	m := machine(t, dir, x509.NewCertPool())
	shown, err := answers(m, "ftp://x", g.URL, "-", "2", token, "correct horse", "another", "correct horse", "correct horse", "3")
	if err != nil || m.State().Step != Done {
		t.Fatalf("%v\n%s", err, shown)
	}
	for _, want := range []string{"Welcome.", "must begin with https://", "The passphrases don't match.", gateway.KeyPin(g.Cert), "connected to Hermes 0.22.0", "The gateway is connected."} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q was not shown:\n%s", want, shown)
		}
	}
	for _, secret := range []string{token, "correct horse"} {
		if strings.Contains(shown, secret) {
			t.Errorf("a secret was shown:\n%s", shown)
		}
	}

	m = machine(t, dir, x509.NewCertPool())
	if shown, err := answers(m, "wrong horse", "correct horse"); err != nil || !strings.Contains(shown, "not the one") {
		t.Errorf("the next start: %v\n%s", err, shown)
	}
	m = machine(t, dir, x509.NewCertPool())
	if shown, err := answers(m, "", "2", "", token, "new passphrase", "new passphrase"); err != nil {
		t.Errorf("a forgotten passphrase: %v\n%s", err, shown)
	}
}

func TestFailedTest(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithLogin("ada", "password"))
	m := machine(t, t.TempDir(), connecttest.Roots(g))
	shown, err := answers(m, strings.TrimPrefix(g.URL, "https://"), "", "3", "ada", "wrong", "correct horse", "correct horse", "9", "1", "2", "3", "", "password")
	if err != nil || m.State().Step != Done {
		t.Fatalf("%v\n%s", err, shown)
	}
}

func TestGivenUp(t *testing.T) {
	t.Parallel()
	m := machine(t, t.TempDir(), nil)
	if shown, err := answers(m); !errors.Is(err, ErrCanceled) {
		t.Errorf("%v\n%s", err, shown)
	}
}

// A Local address that does not work is given up by a word, and an answer may be a word of an option.
func TestDeclineLocal(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	m := machine(t, t.TempDir(), connecttest.Roots(g))
	shown, err := answers(m, g.URL, "https://no-such-host.invalid", "Token", token, "correct horse", "correct horse", "change", "", "", "token", "", "without the local")
	if err != nil || m.State().Step != Done || m.State().Local != "" {
		t.Fatalf("%v %+v\n%s", err, m.State(), shown)
	}
	if !strings.Contains(shown, "Continue without the local address") || !strings.Contains(shown, "can't be resolved in this network") {
		t.Error(shown)
	}
}

// An address without a scheme that turns out to be plain http is named as what it is.
func TestPlainServerByItsAddress(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token), connecttest.WithoutTLS())
	host := strings.TrimPrefix(g.URL, "http://")
	m := machine(t, t.TempDir(), nil)
	shown, err := answers(m, host, "-", "token", token, "correct horse", "correct horse", "2", "2", "", "", "")
	if !strings.Contains(shown, "Use the address http://"+host+".") {
		t.Errorf("%v\n%s", err, shown)
	}
}

// atTerminal is somebody who answers in lines.
type atTerminal struct{ *Lines }

func (atTerminal) Interactive() bool { return true }

// Jobs that are not advertised are asked for once, and an input that ends there leaves them off.
func TestJobsQuestion(t *testing.T) {
	t.Parallel()
	g := connecttest.Start(t, connecttest.WithToken(token))
	for answer, want := range map[string]gateway.JobAccess{"yes": gateway.JobsOn, "no": gateway.JobsOff, "-": gateway.JobsUnasked} {
		lines := []string{g.URL, "-", "token", token, "correct horse", "correct horse"}
		if answer != "-" {
			lines = append(lines, answer)
		}
		dir := t.TempDir()
		m := machine(t, dir, connecttest.Roots(g))
		var out bytes.Buffer
		err := Run(t.Context(), m, atTerminal{NewLines(strings.NewReader(strings.Join(lines, "\n")+"\n"), &out)})
		shown := out.String()
		if err != nil || m.State().Step != Done || m.State().Jobs != want || !strings.Contains(shown, "does not advertise them") {
			t.Errorf("%s: %v %+v\n%s", answer, err, m.State(), shown)
		}
		if answer == "-" {
			continue
		}
		m = machine(t, dir, connecttest.Roots(g))
		if shown, err := answers(m, "correct horse"); err != nil || strings.Contains(shown, "advertise") {
			t.Errorf("%s: asked again: %v\n%s", answer, err, shown)
		}
	}
	// A program is not asked: what it writes next is a message.
	m := machine(t, t.TempDir(), connecttest.Roots(g))
	if shown, err := answers(m, g.URL, "-", "token", token, "correct horse", "correct horse", "yes"); err != nil || strings.Contains(shown, "advertise") || m.State().Jobs != gateway.JobsUnasked {
		t.Errorf("a program is asked: %v\n%s", err, shown)
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	options := []string{"Without a credential", "With a token (API_SERVER_KEY)", "With user name and password"}
	for text, want := range map[string]int{"1": 0, " 3 ": 2, "token": 1, "API_SERVER_KEY": 1, "Password": 2, "by": -1, "": -1, "4": -1, "0": -1, "x": -1, "-1": -1} {
		if n, ok := chosen(text, options); ok != (want >= 0) || ok && n != want {
			t.Errorf("%q chooses %d, %v", text, n, ok)
		}
	}
	if n, ok := chosen("no", []string{"No", "Not now"}); !ok || n != 0 {
		t.Error("the whole word does not win")
	}
}
