package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/test/hermes"
)

// TestDoctor: what the doctor says of the real Hermes before it is connected, when all is well, when its gateway is stopped or
// killed, and when its secret is wrong.
func TestDoctor(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w, _ := newSetup(t, v, nil)
		mustFind(t, w.doctor(t), "relay_not_configured", "gateway.relay_url")
		p := w.setup(t)
		p.Leave()

		r := w.doctor(t)
		if !r.Well || len(r.Issues) > 0 {
			t.Errorf("connected, the doctor finds %+v", r.Issues)
		}
		if all := strings.Join(r.Checked, "\n"); !strings.Contains(all, fmt.Sprintf("version %s, gateway running (process %d)", v[:4], w.gateway.Pid())) {
			t.Errorf("he has looked at\n%s", all)
		}

		w.gateway.Stop()
		mustFind(t, w.doctor(t), "gateway_not_running", w.gateway.Home())
		w.gateway.Run()
		w.online(t)
		if r := w.doctor(t); !r.Well {
			t.Errorf("connected again, the doctor finds %+v", r.Issues)
		}
		w.gateway.Kill() // its files stay
		mustFind(t, w.doctor(t), "gateway_not_running", w.gateway.Home())

		env := filepath.Join(w.gateway.Home(), ".env")
		right := read(t, env)
		put(t, env, string(right)+"GATEWAY_RELAY_SECRET="+secret()+"\n")
		w.gateway.Run()
		var st struct {
			Relay struct{ LastRefusal *struct{ Kind string } }
		}
		for end := time.Now().Add(patience); st.Relay.LastRefusal == nil; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the gateway does not dial with the wrong secret")
			}
			w.server.JSON(t, &st, "status")
		}
		if st.Relay.LastRefusal.Kind != "wrong secret" {
			t.Errorf("it was refused for %q", st.Relay.LastRefusal.Kind)
		}
		mustFind(t, w.doctor(t), "gateway_wrong_secret", "GATEWAY_RELAY_SECRET")
		w.gateway.Stop()
	})
}

type diagnosis struct {
	Well    bool
	Issues  []doctor.Issue `json:"findings"`
	Checked []string
}

// doctor runs the command, whose status has to fit what it says.
func (w *world) doctor(t *testing.T) (d diagnosis) {
	t.Helper()
	out, err := w.server.CLI(t.Context(), "doctor", "--json")
	if e := json.Unmarshal([]byte(out), &d); e != nil || d.Well != (err == nil) {
		t.Fatalf("doctor: %v, %v\n%s", err, e, out)
	}
	if strings.Contains(out, w.server.Token) {
		t.Error("the token is shown")
	}
	return d
}

// mustFind requires exactly one issue, with its consequences hidden.
func mustFind(t *testing.T, d diagnosis, code string, says string) {
	t.Helper()
	var codes []string
	for _, f := range d.Issues {
		codes = append(codes, f.Code)
	}
	if !slices.Equal(codes, []string{code}) || !strings.Contains(d.Issues[0].Text, says) || d.Issues[0].Do == "" {
		t.Errorf("the doctor finds %q, want %s that says %q: %+v", codes, code, says, d.Issues)
	}
}

// online waits until the gateway is connected.
func (w *world) online(t *testing.T) {
	t.Helper()
	var st struct {
		Online bool `json:"agent_online"`
	}
	for end := time.Now().Add(patience); !st.Online; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the gateway does not dial in")
		}
		w.server.JSON(t, &st, "status")
	}
}
