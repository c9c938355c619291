package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect"
	"hermes-mobile/internal/server"
	"hermes-mobile/internal/vault"
)

// DiagnoseFolder tells how the app of a data folder stands: it asks the one that runs, and where none does, connects to the gateway itself.
func DiagnoseFolder(ctx context.Context, o Options) (Diagnostics, error) {
	var d Diagnostics
	if err := server.NewClient(o.Data).Get(ctx, "/app/diagnostics", &d); err == nil {
		return d, nil
	}
	var client *gateway.Client
	var failed error
	_, setup, err := open(o, func(p gateway.Profile, c gateway.Credentials) {
		client, failed = gateway.New(p, c, gateway.Options{RootCAs: o.RootCAs, Log: o.Log})
	})
	if err != nil {
		return d, err
	}
	setup.Start()
	if o.Passphrase != nil && setup.State().Step == connect.Unlock && setup.State().Vault.State == vault.Closed {
		secret, err := o.Passphrase(ctx)
		if err != nil {
			return d, err
		}
		if s, err := setup.Do(ctx, connect.Action{Do: connect.Open, Secret: secret}); err != nil {
			return d, err
		} else if len(s.Problems) > 0 {
			return d, errors.New(s.Problems[0].Text)
		}
	}
	if failed != nil {
		return d, fmt.Errorf("the gateway cannot be used: %w", failed)
	}
	if client != nil {
		defer client.Close()
		_, _ = client.Connect(ctx) // diagnostics say what became of it
	}
	return diagnose(o.Version, time.Time{}, setup, client), nil
}
