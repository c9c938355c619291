package cert

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What is made the first time, as a phone and a look at the folder see it.
func TestSelfMakesAnAuthority(t *testing.T) {
	w := newWorld(t, Self)
	w.o.Hosts = []string{"Agent.Example.com.", "192.0.2.7", "0.0.0.0", "no name"}
	c := w.open()
	chain := shown(t, c)
	if len(chain) != 2 {
		t.Fatalf("%d certificates are sent, want the server's and its authority's", len(chain))
	}
	leaf, ca := chain[0], chain[1]
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	for _, name := range []string{"localhost", "127.0.0.1", "agent.example.com", "192.0.2.7"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, is := ca.PublicKey.(*ecdsa.PublicKey)
	if !is || key.Curve != elliptic.P256() || !ca.IsCA || leaf.IsCA {
		t.Errorf("the authority: %T, CA %v and %v", ca.PublicKey, ca.IsCA, leaf.IsCA)
	}
	if d := time.Until(ca.NotAfter); d < 3649*24*time.Hour || d > 3654*24*time.Hour {
		t.Errorf("the authority lives %v", d)
	}
	if d := time.Until(leaf.NotAfter); d < 364*24*time.Hour || d > 366*24*time.Hour {
		t.Errorf("the certificate lives %v", d)
	}
	st := c.State()
	if st.Mode != Self || st.Fingerprint != sum(ca) || c.Fingerprint() != sum(ca) || st.Leaf != sum(leaf) || !st.NotAfter.Equal(leaf.NotAfter) || st.LastError != "" ||
		!slices.Equal(st.Names, []string{"agent.example.com", "localhost", "127.0.0.1", "192.0.2.7"}) {
		t.Errorf("state %+v", st)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, authorityKey: 0o600, leafKey: 0o600} {
		if got := modeOf(t, w.path(name)); got != mode {
			t.Errorf("%q has mode %o, want %o", name, got, mode)
		}
	}
	if files, err := os.ReadDir(w.path("")); err != nil || len(files) != 4 {
		t.Errorf("%d files, %v", len(files), err)
	}
	again := w.open()
	if st := again.State(); st.Fingerprint != sum(ca) || st.Leaf != sum(leaf) {
		t.Errorf("another start shows another certificate: %+v", st)
	}
}

// The machine's own names are among those of the certificate.
func TestMachineNames(t *testing.T) {
	names := sorted(machineNames())
	for _, want := range []string{"localhost", "127.0.0.1", "::1"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not among %q", want, names)
		}
	}
	if host, err := os.Hostname(); err == nil && dnsName.MatchString(strings.ToLower(host)) {
		first, _, _ := strings.Cut(strings.ToLower(host), ".")
		if !slices.Contains(names, strings.ToLower(host)) || !slices.Contains(names, first+".local") {
			t.Errorf("%s is not among %q", host, names)
		}
	}
}

// A certificate is made anew in time, and when the machine has other addresses, while the server runs. Phones stay paired.
func TestSelfRenews(t *testing.T) {
	w := newWorld(t, Self)
	var names atomic.Pointer[[]string]
	names.Store(&[]string{"127.0.0.1", "10.0.0.1"})
	w.o.names = func() []string { return *names.Load() }
	c := w.open()
	first := c.State()
	w.run(c)

	w.clock.add(0, 0, leafDays-renewDays-1)
	ok(t, c.Reload())
	if st := c.State(); st.Leaf != first.Leaf {
		t.Error("it was renewed early")
	}
	w.clock.add(0, 0, 2)
	until(t, "the renewal", func() bool { return c.State().Leaf != first.Leaf })
	second := c.State()
	if d := second.NotAfter.Sub(w.clock.now()); d < 364*24*time.Hour {
		t.Errorf("the new one lives %v", d)
	}
	if chain := shown(t, c); sum(chain[0]) != second.Leaf || sum(chain[1]) != first.Fingerprint {
		t.Error("phones do not see the new certificate under the old authority")
	}

	names.Store(&[]string{"127.0.0.1"}) // one less needs nothing
	ok(t, c.Reload())
	if c.State().Leaf != second.Leaf {
		t.Error("it was made anew for an address that went")
	}
	names.Store(&[]string{"127.0.0.1", "10.0.0.2"})
	until(t, "the new address", func() bool { return slices.Contains(c.State().Names, "10.0.0.2") })
	if st := c.State(); st.Fingerprint != first.Fingerprint {
		t.Error("the authority was replaced")
	}
	if again := w.open(); again.State().Leaf != c.State().Leaf {
		t.Error("the new certificate was not stored")
	}
}

// What cannot be stored is told, and the old certificate goes on.
func TestSelfCannotStore(t *testing.T) {
	w := newWorld(t, Self)
	c := w.open()
	first := c.State()
	ok(t, os.RemoveAll(w.path("")))
	ok(t, os.WriteFile(w.path(""), nil, 0o600)) // a file where the folder was
	w.clock.add(0, 0, leafDays-renewDays+1)
	w.run(c)
	until(t, "the error", func() bool { return c.State().LastError != "" })
	if st := c.State(); st.Leaf != first.Leaf || st.LastErrorAt.IsZero() || sum(shown(t, c)[0]) != first.Leaf {
		t.Errorf("state %+v", st)
	}
	until(t, "a line in the log", func() bool { return w.log.has("creating a certificate failed") })
	ok(t, os.Remove(w.path("")))
	ok(t, os.Mkdir(w.path(""), 0o700))
	until(t, "it to work again", func() bool { return c.State().LastError == "" && c.State().Leaf != first.Leaf })
}

// Damaged files of the certificate are made anew; those of the authority are not, because every phone pins it.
func TestSelfDamagedFiles(t *testing.T) {
	for _, tt := range []struct {
		name   string
		damage func(w *world)
		err    string // part of the error; empty: the server starts, with the same fingerprint
	}{
		{name: "certificate", damage: func(w *world) { ok(w.t, os.WriteFile(w.path(leafCert), []byte("x"), 0o600)) }},
		{name: "certificate's key", damage: func(w *world) { ok(w.t, os.WriteFile(w.path(leafKey), nil, 0o600)) }},
		{name: "certificate gone", damage: func(w *world) { ok(w.t, os.Remove(w.path(leafCert))) }},
		{name: "certificate's key gone", damage: func(w *world) { ok(w.t, os.Remove(w.path(leafKey))) }},
		{name: "key of another", damage: func(w *world) {
			other := newWorld(w.t, Self)
			other.open()
			b, err := os.ReadFile(other.path(leafKey))
			ok(w.t, err)
			ok(w.t, os.WriteFile(w.path(leafKey), b, 0o600))
		}},
		{name: "certificate of another authority", damage: func(w *world) {
			other := newWorld(w.t, Self)
			other.open()
			for _, name := range []string{leafKey, leafCert} {
				b, err := os.ReadFile(other.path(name))
				ok(w.t, err)
				ok(w.t, os.WriteFile(w.path(name), b, 0o600))
			}
		}},
		{name: "authority", damage: func(w *world) { ok(w.t, os.WriteFile(w.path(authorityCert), []byte("x"), 0o600)) }, err: "pair every phone again"},
		{name: "authority's key", damage: func(w *world) { ok(w.t, os.WriteFile(w.path(authorityKey), nil, 0o600)) }, err: "pair every phone again"},
		{name: "authority gone", damage: func(w *world) { ok(w.t, os.Remove(w.path(authorityCert))) }, err: authorityCert},
		{name: "authority's key gone", damage: func(w *world) { ok(w.t, os.Remove(w.path(authorityKey))) }, err: authorityKey},
		{name: "no authority at all", damage: func(w *world) {
			for _, name := range []string{authorityKey, authorityCert} {
				b, err := os.ReadFile(w.path(map[string]string{authorityKey: leafKey, authorityCert: leafCert}[name]))
				ok(w.t, err)
				ok(w.t, os.WriteFile(w.path(name), b, 0o600))
			}
		}, err: "not a CA created by this program"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, Self)
			first := w.open().State()
			tt.damage(w)
			c, err := Open(w.o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error %v, want one with %q", err, tt.err)
				}
				return
			}
			ok(t, err)
			defer c.Close()
			chain := shown(t, c)
			if st := c.State(); st.Fingerprint != first.Fingerprint || st.Leaf == first.Leaf || chain[0].CheckSignatureFrom(chain[1]) != nil || sum(chain[1]) != first.Fingerprint {
				t.Errorf("state %+v after %+v", st, first)
			}
		})
	}
}

// A first start that was cut off between two files is no reason to refuse the second.
func TestSelfFirstStartCutOff(t *testing.T) {
	w := newWorld(t, Self)
	w.open()
	for _, name := range []string{authorityCert, leafCert, leafKey} {
		ok(t, os.Remove(w.path(name)))
	}
	if len(shown(t, w.open())) != 2 || !w.log.has("own CA incomplete") {
		t.Error("no chain, or nobody is told")
	}
}

// Whoever deletes the authority gets a new one, and is told what that means.
func TestSelfNewAuthority(t *testing.T) {
	w := newWorld(t, Self)
	first := w.open().State()
	ok(t, os.Remove(w.path(authorityCert)))
	ok(t, os.Remove(w.path(authorityKey)))
	if st := w.open().State(); st.Fingerprint == first.Fingerprint || !w.log.has("phones must pair again") {
		t.Errorf("state %+v", st)
	}
}

func TestSelfProtectsKeys(t *testing.T) {
	w := newWorld(t, Self)
	w.open()
	for _, name := range []string{authorityKey, leafKey} {
		ok(t, os.Chmod(w.path(name), 0o644))
	}
	ok(t, os.Chmod(w.path(""), 0o755))
	w.open()
	for name, mode := range map[string]os.FileMode{"": 0o700, authorityKey: 0o600, leafKey: 0o600} {
		if got := modeOf(t, w.path(name)); got != mode {
			t.Errorf("%q has mode %o", name, got)
		}
	}
	if !w.log.has("readable by other users") {
		t.Error("nobody is told")
	}
}

// The authority outlives its own end for those who pin it.
func TestSelfAuthorityExpired(t *testing.T) {
	w := newWorld(t, Self)
	first := w.open().State()
	w.clock.add(authorityYears, 0, 1)
	c := w.open()
	if st := c.State(); st.Fingerprint != first.Fingerprint || st.NotAfter.Before(w.clock.now()) || !w.log.has("own CA expired") {
		t.Errorf("state %+v", st)
	}
}
