package gateway

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"time"
)

// Options are what a [Client] is made with besides its profile. The zero value works.
type Options struct {
	RootCAs       *x509.CertPool // trusted authorities; nil: those of the system
	Log           *slog.Logger   // nil: nothing is logged
	ProbeTimeout  time.Duration  // for each step of proving the Local address; 0: 1.5 s
	RemoteTimeout time.Duration  // for each step of proving the Remote address; 0: 15 s

	// WatchNetwork reports changes of the network until ctx ends, such as the function [WatchNetwork]. With nil, the
	// host program calls [Client.NetworkChanged]. An error is logged as a warning.
	WatchNetwork func(ctx context.Context, changed func()) error
	// OnCredentials gets the credentials after a login, a refresh by the gateway or a logout, to be kept. OnProfile gets the
	// profile when something was learnt. Both are called one at a time and must not call the client.
	OnCredentials func(Credentials)
	OnProfile     func(Profile)

	Clock func() time.Time                                                     // nil: time.Now
	Dial  func(ctx context.Context, network, address string) (net.Conn, error) // how connections are made; nil: net.Dialer
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
