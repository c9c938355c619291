package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/test/e2e"
	"hermes-mobile/test/port"
)

// patience is how long a test waits for what should come soon, on a machine that is busy with other tests.
const patience = 90 * time.Second

// front is a proxy process before a server.
type front struct {
	t       *testing.T
	kind    string
	program string
	dir     string
	port    int
	server  *e2e.Server
	changes []change
	main    string // further lines for the outermost part of nginx's settings
	round   int    // of the settings, to see when nginx has taken them
	bare    string // settings without TLS, in place of the recipe; PORT is the server's and LISTEN its own
	roots   *x509.CertPool
	cmd     *exec.Cmd
	done    chan struct{}
	log     *os.File
}

// newFront prepares a proxy on a port; start starts it before a server.
func newFront(t *testing.T, kind string, changes ...change) *front {
	t.Helper()
	dir, err := os.MkdirTemp("", "hm-proxy-") // t.TempDir may be too long a path for Caddy's admin socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := &front{t: t, kind: kind, program: program(t, kind), dir: dir, port: port.Free(t), changes: changes}
	if f.log, err = os.Create(filepath.Join(dir, "log")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.stop()
		if t.Failed() {
			text, _ := os.ReadFile(f.log.Name())
			t.Logf("the log of %s ends with:\n%s", kind, text[max(0, len(text)-4000):])
		}
		_ = f.log.Close()
	})
	return f
}

// url is where phones and gateways find the server.
func (f *front) url() string {
	if f.bare != "" {
		return fmt.Sprintf("http://127.0.0.1:%d", f.port)
	}
	return fmt.Sprintf("https://%s:%d", name, f.port)
}

func (f *front) path(file string) string { return filepath.Join(f.dir, file) }

// settings are the recipe with the names, ports and paths of here, or what a test has in its place.
func (f *front) settings() string {
	f.t.Helper()
	if f.bare != "" {
		return strings.NewReplacer("PORT", strconv.Itoa(f.server.Port), "LISTEN", strconv.Itoa(f.port)).Replace(f.bare)
	}
	changes := []change{swap("127.0.0.1:8787", fmt.Sprintf("127.0.0.1:%d", f.server.Port))}
	language := map[string]string{"caddy": "caddyfile", "nginx": "nginx", "haproxy": "haproxy"}[f.kind]
	switch f.kind {
	case "nginx":
		changes = append(changes, swap("listen 443 ", fmt.Sprintf("listen 127.0.0.1:%d ", f.port)), swap("/etc/ssl/agent.pem", f.path("agent.pem")), swap("/etc/ssl/agent.key", f.path("agent.key")))
	case "haproxy":
		changes = append(changes, swap("bind :443 ", fmt.Sprintf("bind 127.0.0.1:%d ", f.port)), swap("/etc/ssl/agent.pem", f.path("both.pem")))
	}
	text := recipe(f.t, language)
	for _, c := range changes {
		text = c(f.t, text)
	}
	return text
}

// write puts the settings into their file: the recipe, and around it what keeps the process to its folder and to loopback.
func (f *front) write() {
	f.t.Helper()
	f.round++
	text := f.settings()
	for _, c := range f.changes {
		text = c(f.t, text)
	}
	switch f.kind {
	case "haproxy":
		text = fmt.Sprintf("global\n\tstats socket %s mode 600 level admin\n\n%s\n", f.path("admin.sock"), text)
	case "caddy":
		text = fmt.Sprintf(`{
	admin unix/%s
	persist_config off
	https_port %d
	default_bind 127.0.0.1
	auto_https disable_redirects
	local_certs
	skip_install_trust
	servers {
		protocols h1 h2
	}
}
%s`, f.path("admin.sock"), f.port, text)
	case "nginx":
		user := ""
		if os.Geteuid() == 0 {
			user = "user root;" // nobody else can look into the folder
		}
		text = fmt.Sprintf(`daemon off; worker_processes 1; error_log stderr; pid nginx.pid; %s %s
events {}
http {
access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
add_header X-Round %d always;
%s}
`, user, f.main, f.round, text)
	}
	if err := os.WriteFile(f.path("settings"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// command is the program with an argument list, in its folder.
func (f *front) command(args ...string) *exec.Cmd {
	switch f.kind {
	case "nginx":
		args = append([]string{"-p", f.dir, "-c", f.path("settings"), "-e", "stderr"}, args...)
	case "haproxy":
		args = append([]string{"-db", "-f", f.path("settings")}, args...)
	}
	cmd := exec.Command(f.program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = f.dir, f.log, f.log
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + f.dir, "XDG_DATA_HOME=" + f.dir, "XDG_CONFIG_HOME=" + f.dir}
	return cmd
}

// start starts the process before a server and waits until it answers with a certificate that the tests trust.
func (f *front) start(server *e2e.Server) *front {
	f.t.Helper()
	f.server = server
	if f.kind != "caddy" && f.bare == "" && f.roots == nil {
		f.roots = certificate(f.t, f.path("agent.pem"), f.path("agent.key"))
		joined(f.t, f.path("both.pem"), f.path("agent.pem"), f.path("agent.key"))
	}
	f.write()
	var args []string
	if f.kind == "caddy" {
		args = []string{"run", "--adapter", "caddyfile", "--config", f.path("settings")}
	}
	cmd := f.command(args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	done, started := make(chan struct{}), make(chan error, 1)
	go func() {
		// "Parent" means the thread that forked, so that thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(done)
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			// Workers of nginx outlive their master when they have connections.
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}()
	if err := <-started; err != nil {
		f.t.Fatal(err)
	}
	f.cmd, f.done = cmd, done
	f.until("it does not answer", func() bool {
		select {
		case <-done:
			f.t.Fatalf("%s ended at its start", f.kind)
		default:
		}
		if f.kind == "caddy" && f.roots == nil {
			pem, err := os.ReadFile(f.path("caddy/pki/authorities/local/root.crt"))
			pool := x509.NewCertPool()
			if err != nil || !pool.AppendCertsFromPEM(pem) {
				return false
			}
			f.roots = pool
		}
		_, ok := f.get("/healthz")
		return ok
	})
	return f
}

// until waits for what a proxy does in its own time.
func (f *front) until(complaint string, ok func() bool) {
	f.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			f.t.Fatalf("%s: %s", f.kind, complaint)
		}
	}
}

// get fetches a path on a new connection; ok: with 200.
func (f *front) get(path string) (resp *http.Response, ok bool) {
	client := f.client("")
	defer client.CloseIdleConnections()
	resp, err := client.Get(f.url() + path)
	if err != nil {
		return nil, false
	}
	_ = resp.Body.Close()
	return resp, resp.StatusCode == http.StatusOK
}

// reload has the process take its settings again, and returns when it has.
func (f *front) reload() {
	f.t.Helper()
	f.write()
	cmd := f.command("-s", "reload")
	if f.kind == "caddy" {
		cmd = f.command("reload", "--force", "--adapter", "caddyfile", "--config", f.path("settings"), "--address", "unix/"+f.path("admin.sock"))
	}
	if err := cmd.Run(); err != nil {
		f.t.Fatalf("reload %s: %v", f.kind, err)
	}
	if f.kind == "nginx" {
		f.until("it does not take its new settings", func() bool {
			resp, ok := f.get("/healthz")
			return ok && resp.Header.Get("X-Round") == strconv.Itoa(f.round)
		})
	}
}

// stop ends the process at once, as a restart of its service does for those connected.
func (f *front) stop() {
	if f.cmd == nil {
		return
	}
	_ = syscall.Kill(f.cmd.Process.Pid, syscall.SIGTERM)
	select {
	case <-f.done:
	case <-time.After(15 * time.Second):
		f.t.Errorf("%s did not end within 15 s of SIGTERM", f.kind)
		_ = syscall.Kill(-f.cmd.Process.Pid, syscall.SIGKILL)
		<-f.done
	}
	f.cmd = nil
}

// transport reaches the proxy, whatever the name leads to, from an address of this machine.
func (f *front) transport(from string) *http.Transport {
	var dialer net.Dialer
	if from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
	}
	return &http.Transport{TLSClientConfig: f.tls(), ForceAttemptHTTP2: true, DialContext: f.dial(dialer)}
}

func (f *front) client(from string) *http.Client {
	return &http.Client{Transport: f.transport(from), CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (f *front) tls() *tls.Config { return &tls.Config{RootCAs: f.roots, MinVersion: tls.VersionTLS12} }

// changed adds a change for the next start or reload.
func (f *front) changed(c ...change) *front { f.changes = append(f.changes, c...); return f }

// hostPort cuts the scheme off an address.
func hostPort(address string) string { return strings.TrimPrefix(address, "https://") }
