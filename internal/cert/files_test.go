package cert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written makes a pair of files as another program would. Each call makes another pair.
func written(t *testing.T, certPath, keyPath string, names ...string) {
	t.Helper()
	w := newWorld(t, Self)
	w.o.names = func() []string { return names }
	w.open()
	for from, to := range map[string]string{leafCert: certPath, leafKey: keyPath} {
		if to == "" {
			continue
		}
		b, err := os.ReadFile(w.path(from))
		ok(t, err)
		ok(t, os.WriteFile(to, b, 0o600))
	}
}

func filesWorld(t *testing.T) (w *world, certPath, keyPath string) {
	w = newWorld(t, Files)
	dir := t.TempDir()
	w.o.CertFile, w.o.KeyFile = filepath.Join(dir, "fullchain.pem"), filepath.Join(dir, "privkey.pem")
	written(t, w.o.CertFile, w.o.KeyFile, "one.example")
	return w, w.o.CertFile, w.o.KeyFile
}

// A new pair is used without a restart and without a signal.
func TestFilesAreReadAgain(t *testing.T) {
	w, certPath, keyPath := filesWorld(t)
	c := w.open()
	st := c.State()
	if st.Mode != Files || len(st.Names) != 1 || st.Names[0] != "one.example" || st.Fingerprint != "" || st.NotAfter.IsZero() {
		t.Fatalf("state %+v", st)
	}
	w.run(c)
	written(t, certPath, keyPath, "two.example")
	until(t, "the new certificate", func() bool { return c.State().Names[0] == "two.example" })
	if chain := shown(t, c); chain[0].DNSNames[0] != "two.example" || len(chain) != 2 {
		t.Errorf("phones see %v", chain[0].DNSNames)
	}
	until(t, "no error", func() bool { return c.State().LastError == "" })
}

// Certbot keeps the files elsewhere and changes a link.
func TestFilesBehindLinks(t *testing.T) {
	w, certPath, keyPath := filesWorld(t)
	next := t.TempDir()
	written(t, filepath.Join(next, "c"), filepath.Join(next, "k"), "two.example")
	c := w.open()
	for path, to := range map[string]string{certPath: filepath.Join(next, "c"), keyPath: filepath.Join(next, "k")} {
		ok(t, os.Remove(path))
		ok(t, os.Symlink(to, path))
	}
	ok(t, c.Reload())
	if st := c.State(); st.Names[0] != "two.example" {
		t.Errorf("state %+v", st)
	}
}

// A broken pair keeps the old one, and is told; when it is right again it is used, and nothing is told any more.
func TestFilesBroken(t *testing.T) {
	w, certPath, keyPath := filesWorld(t)
	c := w.open()
	first := c.State()
	for name, damage := range map[string]func(){
		"half":    func() { written(t, certPath, "", "two.example") },
		"gone":    func() { ok(t, os.Remove(keyPath)) },
		"garbage": func() { ok(t, os.WriteFile(certPath, []byte("x"), 0o600)) },
	} {
		damage()
		if err := c.Reload(); err == nil || !strings.Contains(err.Error(), "the old one stays in use") {
			t.Errorf("%s: %v", name, err)
		}
		if st := c.State(); st.Leaf != first.Leaf || st.LastError == "" || st.LastErrorAt.IsZero() || sum(shown(t, c)[0]) != first.Leaf {
			t.Errorf("%s: state %+v", name, st)
		}
		written(t, certPath, keyPath, "one.example")
		ok(t, c.Reload())
		if st := c.State(); st.LastError != "" || st.Leaf == first.Leaf {
			t.Errorf("after %s: state %+v", name, st)
		}
		first = c.State()
	}
	// Without a signal it is told once, not at every look.
	w.run(c)
	ok(t, os.WriteFile(keyPath, []byte("x"), 0o600))
	until(t, "the error", func() bool { return c.State().LastError != "" })
	until(t, "a line in the log", func() bool { return w.log.has("keeping the old one") })
	for range 3 { // looks later
		at := c.State().LastErrorAt
		w.clock.add(0, 0, 1)
		until(t, "another look", func() bool { return c.State().LastErrorAt.After(at) })
	}
	w.log.mu.Lock()
	if n := strings.Count(w.log.b.String(), "keeping the old one"); n != 1 {
		t.Errorf("it was logged %d times", n)
	}
	w.log.mu.Unlock()
	if st := c.State(); st.Leaf != first.Leaf {
		t.Errorf("state %+v", st)
	}
	written(t, certPath, keyPath, "three.example")
	until(t, "the new pair", func() bool { st := c.State(); return st.Names[0] == "three.example" && st.LastError == "" })
}

func TestFilesAtTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		damage func(certPath, keyPath string)
		want   string
	}{
		"no certificate": {func(c, _ string) { ok(t, os.Remove(c)) }, "MOBILE_TLS_CERT"},
		"no key":         {func(_, k string) { ok(t, os.Remove(k)) }, "MOBILE_TLS_KEY"},
		"mismatch":       {func(c, _ string) { written(t, c, "", "x.example") }, "are not a certificate and its key"},
		"garbage":        {func(c, _ string) { ok(t, os.WriteFile(c, []byte("x"), 0o600)) }, "are not a certificate and its key"},
		"turned round": {func(c, k string) {
			ok(t, os.Rename(c, c+"2"))
			ok(t, os.Rename(k, c))
			ok(t, os.Rename(c+"2", k))
		}, "the first must contain the certificate"},
	} {
		w, certPath, keyPath := filesWorld(t)
		tt.damage(certPath, keyPath)
		if _, err := Open(w.o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	w, _, _ := filesWorld(t)
	w.clock.add(1, 1, 0)
	w.open()
	if !w.log.has("certificate expired") {
		t.Error("an expired certificate is not told of")
	}
}

// The mark that editors on Windows put before a text is no part of it, and another encoding is named.
func TestFilesWithMarks(t *testing.T) {
	w, certPath, keyPath := filesWorld(t)
	for _, path := range []string{certPath, keyPath} {
		b, err := os.ReadFile(path)
		ok(t, err)
		ok(t, os.WriteFile(path, append([]byte("\xef\xbb\xbf"), b...), 0o600))
	}
	if st := w.open().State(); st.Names[0] != "one.example" {
		t.Errorf("%+v", st)
	}
	ok(t, os.WriteFile(certPath, []byte("\xff\xfe-\x00-\x00"), 0o600))
	if _, err := Open(w.o); err == nil || !strings.Contains(err.Error(), "UTF-16") || !strings.Contains(err.Error(), certPath) {
		t.Errorf("%v", err)
	}
}
