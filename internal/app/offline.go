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

// DiagnoseFolder returns the diagnostics of the app on a data folder. It asks the running app, or
// connects to the gateway itself if none is running.
func DiagnoseFolder(ctx context.Context, o Options) (Diagnostics, error) {
	var d Diagnostics
	if err := server.NewClient(o.Data).Get(ctx, "/app/diagnostics", &d); err == nil {
		return d, nil
	}
	var client *gateway.Client
	var failed error
	_, machine, err := open(o, func(p gateway.Profile, c gateway.Credentials) {
		client, failed = gateway.New(p, c, gateway.Options{RootCAs: o.RootCAs, Log: o.Log})
	})
	if err != nil {
		return d, err
	}
	machine.Start()
	if o.Passphrase != nil && machine.State().Step == connect.Unlock && machine.State().Vault.State == vault.Closed {
		secret, err := o.Passphrase(ctx)
		if err != nil {
			return d, err
		}
		if s, err := machine.Do(ctx, connect.Action{Do: connect.Open, Secret: secret}); err != nil {
			return d, err
		} else if len(s.Problems) > 0 {
			return d, errors.New(s.Problems[0].Text)
		}
	}
	if failed != nil {
		return d, fmt.Errorf("create the gateway's client: %w", failed)
	}
	if client != nil {
		defer func() { _ = client.Close() }()
		_, _ = client.Connect(ctx) // diagnostics show the result
	}
	return diagnose(o.Version, time.Time{}, machine, client), nil
}
