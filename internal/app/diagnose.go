package app

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect"
)

// Diagnostics are what a person looks at, or copies to ask for help: no secret and no host is in them.
type Diagnostics struct {
	Version string               `json:"version"`
	System  string               `json:"system"`
	Started time.Time            `json:"started,omitzero"`
	Step    connect.Step         `json:"step"`
	Vault   connect.VaultState   `json:"vault"`
	Gateway *gateway.Diagnostics `json:"gateway"` // nil: none is in use
	Text    string               `json:"text"`    // all of it, to copy
}

// Diagnose tells how things stand. It asks nobody.
func (a *App) Diagnose() Diagnostics { return diagnose(a.o.Version, a.started, a.setup, a.current()) }

// unused says why no gateway is in use, and what to do.
var unused = map[connect.Step]string{
	connect.Welcome: ": none is set up; start hermes-mobile app",
	connect.Unlock:  ": a passphrase locks the stored credentials; start hermes-mobile app, enter it there, and run this again while the app runs",
	connect.Auth:    ": sign in again; start hermes-mobile app",
}

func diagnose(version string, started time.Time, setup *connect.Machine, client *gateway.Client) Diagnostics {
	state := setup.State()
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
	fmt.Fprintf(&b, "setup: %s\n", d.Step)
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
