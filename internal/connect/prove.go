package connect

import (
	"context"
	"errors"
	"sync"

	"hermes-mobile/gateway"
)

// A try is one run of the compatibility test. It proves one address after the other, and sends the credential to the next only
// when the one before has shown which gateway is meant: who sits at an address that proves nothing, such as one of plain http
// in a network of others, must not get it first.
type try struct {
	m      *Machine
	ctx    context.Context
	p      gateway.Profile
	saved  *gateway.Profile // in use; nil before the first setup
	mu     sync.Mutex       // guards creds, which a client changes
	creds  gateway.Credentials
	result map[gateway.RouteKind]Attempt
	noJobs bool // the gateway advertises no scheduled jobs
}

func (m *Machine) try(ctx context.Context, p gateway.Profile, creds gateway.Credentials, saved *gateway.Profile) (Result, gateway.Profile, gateway.Credentials, error) {
	t := &try{m: m, ctx: ctx, p: p, saved: saved, creds: creds, result: map[gateway.RouteKind]Attempt{}}
	err := t.run()
	if err == nil {
		err = ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conclude(), t.p, t.creds, err
}

// run tests the addresses in their order.
func (t *try) run() error {
	first, second := gateway.Remote, gateway.Local
	if t.p.Local != "" && Plain(t.p.Remote) && !Plain(t.p.Local) {
		first, second = second, first
	}
	err := t.first(first)
	if t.p.Local == "" || t.ctx.Err() != nil {
		return err
	}
	if !t.result[first].OK && !t.mayGoOn(first, second) {
		t.result[second] = Attempt{Kind: second, Host: hostOf(t.address(second)), Code: NotTried,
			Text: "It was not tried: the " + string(first) + " address has to show first which gateway is yours."}
		return err
	}
	return errors.Join(err, t.second(second))
}

func (t *try) address(kind gateway.RouteKind) string {
	if kind == gateway.Local {
		return t.p.Local
	}
	return t.p.Remote
}

// known reports whether an address is as it was when it was last proven.
func (t *try) known(kind gateway.RouteKind) bool {
	if t.saved == nil || t.saved.Identity == nil || t.p.Identity == nil {
		return false
	}
	if kind == gateway.Local {
		return t.saved.Local == t.p.Local && t.saved.LocalKey == t.p.LocalKey
	}
	return t.saved.Remote == t.p.Remote && t.saved.RemoteKey == t.p.RemoteKey
}

// mayGoOn reports whether the other address is tried although the first does not answer: where the gateway is known from an
// earlier setup, and the other proves itself. So somebody at home can sign in again while the way from outside is interrupted.
func (t *try) mayGoOn(first, second gateway.RouteKind) bool {
	return t.known(first) && outOfReach(t.result[first]) && !Plain(t.address(second))
}

// outOfReach reports whether nothing is known against an address but that it does not answer here and now.
func outOfReach(a Attempt) bool {
	switch a.Code {
	case Unreachable, NoName, Slow:
		return true
	}
	return false
}

// first tests one address alone, and learns there which gateway it is.
func (t *try) first(kind gateway.RouteKind) error {
	alone := t.p
	if kind == gateway.Local {
		alone = swapped(t.p)
	}
	alone.Local, alone.LocalKey = "", ""
	attempt := Attempt{Kind: kind, Host: hostOf(t.address(kind))}
	_, learnt, version, err := t.connect(alone)
	none := &gateway.NoRouteError{}
	switch {
	case err == nil:
		attempt.OK, attempt.Version = true, version
		if kind == gateway.Local {
			learnt = swapped(learnt)
		}
		t.p.Identity = learnt.Identity
	case errors.As(err, &none):
		attempt = t.m.explain(t.ctx, attempt, alone.Remote, alone.RemoteKey, none.Remote)
	default:
		return err
	}
	t.result[kind] = attempt
	return nil
}

// second tests the other address of a gateway that is known now.
func (t *try) second(kind gateway.RouteKind) error {
	if kind == gateway.Remote {
		return t.first(kind) // it is compared with what was learnt at Local
	}
	attempt := Attempt{Kind: kind, Host: hostOf(t.p.Local)}
	route, learnt, version, err := t.connect(t.p)
	none := &gateway.NoRouteError{}
	switch {
	case err == nil && route.Kind == gateway.Local:
		attempt.OK, attempt.Version = true, version
		t.p.Identity = learnt.Identity
	case err == nil:
		attempt = t.m.explain(t.ctx, attempt, t.p.Local, t.p.LocalKey, route.LocalErr)
	case errors.As(err, &none) && none.Local != nil:
		attempt = t.m.explain(t.ctx, attempt, t.p.Local, t.p.LocalKey, none.Local)
	case errors.As(err, &none):
		attempt = t.m.explain(t.ctx, attempt, t.p.Local, t.p.LocalKey, none.Remote)
	default:
		return err
	}
	t.result[kind] = attempt
	return nil
}

// swapped is a profile with its addresses exchanged, and what belongs to them.
func swapped(p gateway.Profile) gateway.Profile {
	p.Remote, p.Local, p.RemoteKey, p.LocalKey = p.Local, p.Remote, p.LocalKey, p.RemoteKey
	if p.Identity != nil {
		identity := *p.Identity
		identity.RemoteKey, identity.LocalKey = identity.LocalKey, identity.RemoteKey
		p.Identity = &identity
	}
	return p
}

// connect connects as the client will.
func (t *try) connect(p gateway.Profile) (gateway.Route, gateway.Profile, string, error) {
	t.mu.Lock()
	with := t.creds
	t.mu.Unlock()
	account := with.Account
	with.Account = "" // it is bound to the Remote address, and p may have the other in its place
	client, err := gateway.New(p, with, gateway.Options{RootCAs: t.m.o.RootCAs, Log: t.m.o.Log, OnCredentials: func(c gateway.Credentials) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.creds, t.creds.Account = c, account
	}})
	if err != nil {
		return gateway.Route{}, p, "", err
	}
	defer client.Close()
	route, err := client.Connect(t.ctx)
	if err != nil {
		return route, p, "", err
	}
	version := ""
	if caps, err := client.Capabilities(t.ctx); err == nil {
		version, t.noJobs = caps.Version, !caps.AdvertisesJobs()
	}
	return route, client.Profile(), version, nil
}

// conclude says whether the setup may end: one address works, and each other works, too, or did when it was last tested and is
// only out of reach now.
func (t *try) conclude() (r Result) {
	any, all := false, true
	for _, kind := range []gateway.RouteKind{gateway.Local, gateway.Remote} {
		a, tested := t.result[kind]
		if !tested {
			continue
		}
		any, all = any || a.OK, all && (a.OK || t.known(kind) && outOfReach(a))
		r.Attempts = append(r.Attempts, a)
	}
	r.Passed, r.noJobs = any && all, t.noJobs
	for i := range r.Attempts {
		if r.Passed && r.Attempts[i].OK {
			r.Attempts[i].Used = true
			break
		}
	}
	// Who has only one thing to decide may do so.
	for i, a := range r.Attempts {
		r.Attempts[i].MayGo = a.Kind == gateway.Local && !a.OK && t.result[gateway.Remote].OK && !r.Passed
	}
	return r
}
