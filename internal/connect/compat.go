package connect

import (
	"context"
	"errors"
	"sync"

	"hermes-mobile/gateway"
)

// compatTest is one run of the compatibility test. It verifies one address after the other. It
// sends the credential to the second address only after the first one has identified the gateway:
// an address without proof, such as plain http in a foreign network, must not get the credential
// first.
type compatTest struct {
	m      *Machine
	ctx    context.Context
	p      gateway.Profile
	saved  *gateway.Profile // the profile in use; nil before the first connection
	mu     sync.Mutex       // guards creds, which the client changes
	creds  gateway.Credentials
	result map[gateway.RouteKind]Attempt
	noJobs bool // the gateway advertises no scheduled jobs
}

func (m *Machine) runTest(ctx context.Context, p gateway.Profile, creds gateway.Credentials, saved *gateway.Profile) (Result, gateway.Profile, gateway.Credentials, error) {
	t := &compatTest{m: m, ctx: ctx, p: p, saved: saved, creds: creds, result: map[gateway.RouteKind]Attempt{}}
	err := t.run()
	if err == nil {
		err = ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conclude(), t.p, t.creds, err
}

// run tests the addresses in their order.
func (t *compatTest) run() error {
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
			Text: "Not tested: the " + string(first) + " address must identify your gateway first."}
		return err
	}
	return errors.Join(err, t.second(second))
}

func (t *compatTest) address(kind gateway.RouteKind) string {
	if kind == gateway.Local {
		return t.p.Local
	}
	return t.p.Remote
}

// known reports whether an address is unchanged since it last passed.
func (t *compatTest) known(kind gateway.RouteKind) bool {
	if t.saved == nil || t.saved.Identity == nil || t.p.Identity == nil {
		return false
	}
	if kind == gateway.Local {
		return t.saved.Local == t.p.Local && t.saved.LocalKey == t.p.LocalKey
	}
	return t.saved.Remote == t.p.Remote && t.saved.RemoteKey == t.p.RemoteKey
}

// mayGoOn reports whether to test the second address although the first does not answer: if the
// gateway is known and the second address proves its identity. So a user at home can sign in again
// while the remote address is down.
func (t *compatTest) mayGoOn(first, second gateway.RouteKind) bool {
	return t.known(first) && outOfReach(t.result[first]) && !Plain(t.address(second))
}

// outOfReach reports whether an address failed only because it does not answer at the moment.
func outOfReach(a Attempt) bool {
	switch a.Code {
	case Unreachable, NoName, Slow:
		return true
	}
	return false
}

// first tests one address alone and learns the gateway's identity.
func (t *compatTest) first(kind gateway.RouteKind) error {
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

// second tests the other address of the gateway that first identified.
func (t *compatTest) second(kind gateway.RouteKind) error {
	if kind == gateway.Remote {
		return t.first(kind) // compares it with the identity from the local address
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

// swapped returns a profile with its two addresses and their keys exchanged.
func swapped(p gateway.Profile) gateway.Profile {
	p.Remote, p.Local, p.RemoteKey, p.LocalKey = p.Local, p.Remote, p.LocalKey, p.RemoteKey
	if p.Identity != nil {
		identity := *p.Identity
		identity.RemoteKey, identity.LocalKey = identity.LocalKey, identity.RemoteKey
		p.Identity = &identity
	}
	return p
}

// connect connects as the client does.
func (t *compatTest) connect(p gateway.Profile) (gateway.Route, gateway.Profile, string, error) {
	t.mu.Lock()
	with := t.creds
	t.mu.Unlock()
	account := with.Account
	with.Account = "" // the account includes the remote address, which p may have replaced
	client, err := gateway.New(p, with, gateway.Options{RootCAs: t.m.o.RootCAs, Log: t.m.o.Log, OnCredentials: func(c gateway.Credentials) {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.creds, t.creds.Account = c, account
	}})
	if err != nil {
		return gateway.Route{}, p, "", err
	}
	defer func() { _ = client.Close() }()
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

// conclude decides whether the test passed: at least one address works, and each other one works or
// is unchanged since it last passed and only out of reach.
func (t *compatTest) conclude() (r Result) {
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
	// Offer to skip the local address if only that fails.
	for i, a := range r.Attempts {
		r.Attempts[i].CanSkip = a.Kind == gateway.Local && !a.OK && t.result[gateway.Remote].OK && !r.Passed
	}
	return r
}
