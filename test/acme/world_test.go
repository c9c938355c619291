package acme

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/internal/leak"
	"hermes-mobile/test/port"
)

// name is what the certificates are for.
const name = "agent.home.test"

const patience = 90 * time.Second

// built is the server under test.
var built string

func TestMain(m *testing.M) {
	code := func() int {
		dir, err := os.MkdirTemp("", "hermes-mobile-acme-")
		if err == nil {
			defer os.RemoveAll(dir)
			built = filepath.Join(dir, "hermes-mobile")
			cmd := exec.Command("go", "build", "-o", built, "hermes-mobile/cmd/hermes-mobile")
			cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
			cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
			err = cmd.Run()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "build the server:", err)
			return 1
		}
		return m.Run()
	}()
	os.Exit(leak.Status(code))
}

var pebble = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("bash", "install.sh").Output()
	if err != nil {
		return "", fmt.Errorf("install Pebble: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
})

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !f(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// process is a program that runs beside the test.
type process struct {
	t    *testing.T
	log  *os.File
	path string
	cmd  *exec.Cmd
	done chan struct{}
}

func newProcess(t *testing.T, dir, title string) *process {
	path := filepath.Join(dir, title+".log")
	log, err := os.Create(path)
	ok(t, err)
	p := &process{t: t, log: log, path: path}
	t.Cleanup(func() {
		p.end(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("the log of %s ends with:\n%s", title, p.tail())
		}
		_ = log.Close()
	})
	return p
}

func (p *process) start(env []string, command string, args ...string) {
	p.t.Helper()
	cmd := exec.Command(command, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = env, p.log, p.log, &syscall.SysProcAttr{}
	dieWithParent(cmd.SysProcAttr)
	done, started := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the child dies with the thread that forked it
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	ok(p.t, <-started)
	p.cmd, p.done = cmd, done
}

func (p *process) end(sig syscall.Signal) {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
	case <-time.After(20 * time.Second):
		p.t.Errorf("a process did not end on %v", sig)
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	p.cmd = nil
}

func (p *process) text() string {
	b, _ := os.ReadFile(p.path)
	return string(b)
}

func (p *process) tail() string {
	lines := strings.Split(p.text(), "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}

// authority is the ACME server. It is not started at once.
type authority struct {
	*process
	dir        string
	port, side int
	client     *http.Client
	root       string // file with the root of its own address
	dns        string
}

// newAuthority prepares an ACME server that checks names at these ports and gives certificates for so long.
func newAuthority(t *testing.T, httpPort, tlsPort int, validity time.Duration) *authority {
	t.Helper()
	a := &authority{dir: t.TempDir(), port: port.Free(t), side: port.Free(t), dns: startDNS(t)}
	a.process = newProcess(t, a.dir, "pebble")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "acme"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	ok(t, err)
	a.root = filepath.Join(a.dir, "root.pem")
	rootPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	ok(t, os.WriteFile(a.root, rootPEM, 0o600))
	ok(t, os.WriteFile(filepath.Join(a.dir, "root.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(rootPEM)
	a.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	config, err := json.Marshal(map[string]any{"pebble": map[string]any{
		"listenAddress": "127.0.0.1:" + strconv.Itoa(a.port), "managementListenAddress": "127.0.0.1:" + strconv.Itoa(a.side),
		"certificate": a.root, "privateKey": filepath.Join(a.dir, "root.key"), "httpPort": httpPort, "tlsPort": tlsPort, "keyAlgorithm": "ecdsa",
		"retryAfter": map[string]int{"authz": 1, "order": 1},
		"profiles":   map[string]any{"default": map[string]any{"description": "default", "validityPeriod": int(validity.Seconds())}}}})
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(a.dir, "config.json"), config, 0o600))
	return a
}

func (a *authority) directory() string { return fmt.Sprintf("https://127.0.0.1:%d/dir", a.port) }

// begin starts the ACME server.
func (a *authority) begin() {
	a.t.Helper()
	path, err := pebble()
	ok(a.t, err)
	// Every challenge is really checked; only its artificial delays and faults are off.
	a.start([]string{"PEBBLE_VA_NOSLEEP=1", "PEBBLE_WFE_NONCEREJECT=0", "PEBBLE_AUTHZREUSE=0"}, path, "-config", filepath.Join(a.dir, "config.json"), "-dnsserver", a.dns)
	until(a.t, "the ACME server", func() bool {
		resp, err := a.client.Get(a.directory())
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// roots are what phones must trust. Each run of the ACME server has a root of its own.
func (a *authority) roots() *x509.CertPool {
	a.t.Helper()
	resp, err := a.client.Get(fmt.Sprintf("https://127.0.0.1:%d/roots/0", a.side))
	ok(a.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(a.t, err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		a.t.Fatalf("no root in %q", text)
	}
	return pool
}

// program is the server under test.
type program struct {
	*process
	port int
	env  []string
}

func newServer(t *testing.T, port int, a *authority) *program {
	t.Helper()
	dir, err := os.MkdirTemp("", "hm-acme-") // short, for the socket in it
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &program{port: port, env: []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH"), "HERMES_HOME=" + filepath.Join(dir, "none"),
		"MOBILE_DATA=" + filepath.Join(dir, "data"), "MOBILE_HOST=127.0.0.1", "MOBILE_PORT=" + strconv.Itoa(port), "MOBILE_AGENT=demo", "MOBILE_LOG_LEVEL=debug",
		"MOBILE_PUBLIC_URL=https://" + name + ":" + strconv.Itoa(port), "MOBILE_TLS_EMAIL=owner@home.test",
		"MOBILE_TLS_ACME=" + a.directory(), "MOBILE_TLS_ACME_ROOT=" + a.root}}
	s.process = newProcess(t, dir, "server")
	return s
}

func (s *program) begin() {
	s.t.Helper()
	s.start(s.env, built, "serve", "--tls", "auto")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	until(s.t, "the server", func() bool {
		resp, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d/healthz", s.port))
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// command runs another subcommand of the server's program and reads its JSON.
func (s *program) command(to any, args ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, built, append(args, "--json")...)
	cmd.Env = s.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		s.t.Fatalf("%v: %v\n%s", args, err, errs.String())
	}
	ok(s.t, json.Unmarshal(out.Bytes(), to))
}
