package gateway

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"time"
)

// Options configure a [Client]. The zero value works.
type Options struct {
	RootCAs       *x509.CertPool // trusted CAs; nil means those of the system
	Log           *slog.Logger   // nil means no logging
	ProbeTimeout  time.Duration  // for each step of verifying the Local address; 0 means 1.5 s
	RemoteTimeout time.Duration  // for each step of verifying the Remote address; 0 means 15 s

	// WatchNetwork reports changes of the network until ctx ends; the function [WatchNetwork] fits.
	// With nil, call [Client.NetworkChanged] yourself. An error is logged as a warning.
	WatchNetwork func(ctx context.Context, changed func()) error
	// OnCredentials is called with the credentials to store, after a login, a refresh by the
	// gateway and a logout. OnProfile is called with the profile to store when the client learned
	// something. They are called one at a time and must not call the client.
	OnCredentials func(Credentials)
	OnProfile     func(Profile)

	Clock func() time.Time                                                     // nil means time.Now
	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // makes connections; nil means a net.Dialer
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.ProbeTimeout <= 0 {
		o.ProbeTimeout = 1500 * time.Millisecond
	}
	if o.RemoteTimeout <= 0 {
		o.RemoteTimeout = 15 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return o
}
