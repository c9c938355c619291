package app

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect"
)

// Diagnostics are for the user to read, or to copy when asking for help. They contain no secret and no host.
type Diagnostics struct {
	Version string               `json:"version"`
	System  string               `json:"system"`
	Started time.Time            `json:"started,omitzero"`
	Step    connect.Step         `json:"step"`
	Vault   connect.VaultState   `json:"vault"`
	Gateway *gateway.Diagnostics `json:"gateway"` // nil: no gateway is in use
	Text    string               `json:"text"`    // all of it as text
}

// Diagnose returns diagnostics. It makes no requests.
func (a *App) Diagnose() Diagnostics { return diagnose(a.o.Version, a.started, a.machine, a.current()) }

// unused says why no gateway is in use, and how to fix it.
var unused = map[connect.Step]string{
	connect.Welcome: ": connect one with hermes-mobile app",
	connect.Unlock:  ": the stored credentials are locked; start hermes-mobile app, enter the passphrase, and run this again while the app is running",
	connect.Auth:    ": start hermes-mobile app and sign in again",
}

func diagnose(version string, started time.Time, machine *connect.Machine, client *gateway.Client) Diagnostics {
	state := machine.State()
	d := Diagnostics{Version: version, System: fmt.Sprintf("%s/%s, %s", runtime.GOOS, runtime.GOARCH, runtime.Version()), Started: started.UTC().Truncate(time.Second),
		Step: state.Step, Vault: state.Vault}
	if started.IsZero() {
		d.Started = time.Time{}
	}
	if client != nil {
		g := client.Diagnostics()
		d.Gateway = &g
	}
	var b strings.Builder
	fmt.Fprintf(&b, "hermes-mobile %s on %s\n", d.Version, d.System)
	if !d.Started.IsZero() {
		fmt.Fprintf(&b, "running since: %s\n", d.Started.Format(time.RFC3339))
	}
	fmt.Fprintf(&b, "step: %s\n", d.Step)
	fmt.Fprintf(&b, "credentials: %s, %s", d.Vault.Kind, d.Vault.State)
	if d.Vault.Problem != "" {
		fmt.Fprintf(&b, " (%s)", d.Vault.Problem)
	}
	b.WriteString("\n")
	if d.Gateway != nil {
		b.WriteString(d.Gateway.String())
	} else {
		b.WriteString("no gateway is in use" + unused[d.Step] + "\n")
	}
	d.Text = b.String()
	return d
}
