package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/test/hermes"
)

// TestAsDocumented sets Hermes up with the very lines that the server prints, and lets phones in with Hermes' own commands.
func TestAsDocumented(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		home := filepath.Join(t.TempDir(), "hermes")
		if err := os.MkdirAll(home, 0o700); err != nil {
			t.Fatal(err)
		}
		s := NewServer(t, "HERMES_HOME="+home, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=", "MOBILE_ALLOW_ALL_USERS=").Start()
		follow(t, s, home, v)
		w := &world{t: t, version: v, server: s, model: hermes.Model(t)}
		w.gateway = hermes.Start(t, hermes.Setup{Version: v, Home: home, ModelURL: w.model.URL, Streaming: w.newer(), Env: []string{"RELAY_HOME_CHANNEL=nobody"}})

		p := NewPhone(t, s, "tel-1", func(c *device.Config) { c.User.ID, c.User.Name = "anna", "Anna" })
		p.Online()
		code := p.code(t, "FM:text(first)")
		list := w.hermes(t, "pairing", "list")
		if !strings.Contains(list, "mobile") || !strings.Contains(list, "anna") {
			t.Errorf("hermes pairing list says\n%s", list)
		}
		mark := p.Mark()
		w.hermes(t, "pairing", "approve", "mobile", code)
		p.approvedSoon(t, mark)
		p.Final(mark, "the answer to what was sent before", func(m device.Message) bool { return m.Text == "first" })

		mark = p.Mark()
		w.hermes(t, "pairing", "revoke", "mobile", "anna")
		p.thrownOut(t, mark)

		if w.newer() { // its list shows ids of requests, which approve as well
			p := NewPhone(t, s, "tel-2", func(c *device.Config) { c.User.ID = "bert" })
			p.Online()
			p.code(t, "FM:text(second)")
			list := w.hermes(t, "pairing", "list")
			id := ""
			for line := range strings.Lines(list) {
				if strings.Contains(line, "bert") {
					id = requestID.FindString(line)
				}
			}
			if id == "" {
				t.Fatalf("hermes pairing list shows no id of a request:\n%s", list)
			}
			mark := p.Mark()
			w.hermes(t, "pairing", "approve", "mobile", id)
			p.approvedSoon(t, mark)
			p.Final(mark, "the answer to what was sent before", func(m device.Message) bool { return m.Text == "second" })
		}
		if hosts := w.gateway.Outside(); len(hosts) > 0 {
			t.Errorf("Hermes tried to leave this machine: %q", hosts)
		}
	})
}

var (
	pairingCode = regexp.MustCompile(`\b[A-HJ-NP-Z2-9]{8}\b`)
	requestID   = regexp.MustCompile(`\b[0-9a-f]{8,}\b`)
)

// follow does what the server's banner says.
func follow(t *testing.T, s *Server, home string, v hermes.Version) {
	t.Helper()
	var text []byte
	for end := time.Now().Add(patience); !strings.Contains(string(text), "Then start the gateway again"); time.Sleep(10 * time.Millisecond) {
		var err error
		if text, err = os.ReadFile(s.log.Name()); err != nil || time.Now().After(end) {
			t.Fatalf("no banner came: %v\n%s", err, text)
		}
	}
	_, said, ok := strings.Cut(string(text), "Hermes is not connected yet.")
	command := regexp.MustCompile(`(?m)^ +(.* >> .*/\.env.*)$`).FindStringSubmatch(said)
	_, said, ok2 := strings.Cut(said, "Add to config.yaml there:\n\n")
	config, _, ok3 := strings.Cut(said, "\n\n")
	if !ok || !ok2 || !ok3 || command == nil {
		t.Fatalf("the banner says\n%s", text)
	}
	if out, err := exec.Command("/bin/sh", "-c", command[1]).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command[1], err, out)
	}
	if v == hermes.V019 {
		config = regexp.MustCompile(`(?m)^.*omit this line on 0\.19\n`).ReplaceAllString(config, "")
	}
	if err := os.WriteFile(filepath.Join(home, "config.yaml"), []byte(config+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// hermes runs one of Hermes' own commands.
func (w *world) hermes(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := w.gateway.CLI(ctx, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("hermes %s:\n%s", strings.Join(args, " "), out)
	return out
}

// code sends a message of somebody who is not approved, and returns the code in the answer.
func (p *Phone) code(t *testing.T, text string) string {
	t.Helper()
	p.Submit(text)
	m := p.Final(0, "a pairing code", func(m device.Message) bool { return pairingCode.MatchString(m.Text) })
	if st := p.Status(); st.Approved || st.Pairing != m.Text {
		t.Errorf("the status is %+v", st)
	}
	return pairingCode.FindString(m.Text)
}

// approvedSoon: an approval reaches the live connection.
func (p *Phone) approvedSoon(t *testing.T, mark int) {
	t.Helper()
	began := time.Now()
	Wait(p, mark, "the approval", func(s device.StatusChanged) bool { return s.Approved })
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the approval took %v", took)
	}
}

// thrownOut: a revocation ends the connection for good.
func (p *Phone) thrownOut(t *testing.T, mark int) {
	t.Helper()
	began := time.Now()
	s := Wait(p, mark, "the end of the connection", func(s device.StatusChanged) bool { return s.State == device.NoAccess })
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the revocation took %v", took)
	}
	var no *device.NoAccessError
	if !errors.As(s.Err, &no) {
		t.Errorf("the connection ended with %v", s.Err)
	}
	t.Logf("thrown out: %v", s.Err)
}
