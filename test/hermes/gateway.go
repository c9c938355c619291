//go:build unix

package hermes

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// stopGrace is how long a gateway may take to end: 0.22.2 waits for a running turn.
const stopGrace = 40 * time.Second

// Gateway is one installation of Hermes: a home, and the gateway process when it is running.
// Its methods may be called from any goroutine.
type Gateway struct {
	t      testing.TB
	setup  Setup
	root   string // of everything that Hermes may write
	home   string
	marker string // a variable in the environment of all its processes
	sweep  func() error

	mu     sync.Mutex
	proc   *process
	warmed int // warm-ups of the processes before proc
	failed int // and those of them that failed
}

// New writes the configuration of a gateway that is not started yet.
func New(t testing.TB, s Setup) *Gateway {
	t.Helper()
	if err := Available(s.Version); err != nil {
		t.Fatal(err)
	}
	if s.API {
		s.api = newAPI(t)
	}
	// Not t.TempDir: a test's name would make the path of the gateway's socket too long.
	root, err := os.MkdirTemp("", "hermes-")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gateway{t: t, setup: s, root: root, home: s.Home, marker: "HERMES_TEST_RUN=" + rand.Text()}
	if g.sweep, err = startSweeper(g.marker, root); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.cleanUp)
	if g.home == "" {
		g.home = filepath.Join(g.root, "home", ".hermes")
	}
	for _, dir := range []string{"home", "tmp", "no-skills"} {
		if err := os.MkdirAll(filepath.Join(g.root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	writeEmbedded(t, "guard/sitecustomize.py", filepath.Join(g.root, "guard", "sitecustomize.py"))
	if err := s.write(g.home); err != nil {
		t.Fatal(err)
	}
	return g
}

// cleanUp ends everything that New and what came after it started, and removes its files.
func (g *Gateway) cleanUp() {
	g.Kill()
	if g.t.Failed() || os.Getenv("HERMES_TEST_LOGS") != "" {
		g.t.Logf("hermes %s, the end of its logs:\n%s", g.setup.Version, tail(g.Logs(), 100))
	}
	if err := g.sweep(); err != nil {
		g.t.Errorf("hermes: clean up after the gateway: %v", err)
	}
}

// Start configures a gateway and runs it. It does not wait until the gateway has dialled: the test's
// connector sees that.
func Start(t testing.TB, s Setup) *Gateway {
	t.Helper()
	g := New(t, s)
	g.Run()
	return g
}

// Run starts the process of a gateway that is not running.
func (g *Gateway) Run() {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running() {
		g.t.Fatal("hermes: the gateway is running already")
	}
	log, err := openLog(g.outputPath())
	if err != nil {
		g.t.Fatal(err)
	}
	defer closeQuietly(log)
	cmd := g.command("gateway", "run")
	cmd.Stdout, cmd.Stderr = log, log
	g.warmed, g.failed = g.warmUps(), g.failedWarmUps()
	if g.proc, err = startProcess(cmd); err != nil {
		g.t.Fatal(err)
	}
}

// warmUps counts how often the logs say that what a turn needs was loaded, or that it could not be.
func (g *Gateway) warmUps() int {
	return strings.Count(g.Logs(), "Turn machinery warmed in ") + g.failedWarmUps()
}

// failedWarmUps counts how often they could not be. That is a fault of Python 3.11, in which two threads may not read source at once.
func (g *Gateway) failedWarmUps() int {
	return strings.Count(g.Logs(), "Turn-machinery warm-up failed")
}

// Stop ends the gateway as a service manager does: SIGTERM, and SIGKILL when it takes too long.
func (g *Gateway) Stop() { g.end(func(p *process) { p.stop(stopGrace) }) }

// Kill ends the gateway as a crash does.
func (g *Gateway) Kill() { g.end((*process).kill) }

// Restart ends the gateway, as a crash when hard is set, and runs it again on the same home.
func (g *Gateway) Restart(hard bool) {
	g.t.Helper()
	if hard {
		g.Kill()
	} else {
		g.Stop()
	}
	g.Run()
}

func (g *Gateway) end(how func(*process)) {
	g.mu.Lock()
	p := g.proc
	g.mu.Unlock()
	if p != nil {
		how(p)
	}
}

// Pid is the process id of the gateway, or 0 when none was started.
func (g *Gateway) Pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proc == nil {
		return 0
	}
	return g.proc.cmd.Process.Pid
}

// Done is closed when the process that was started last has ended; nil before the first.
func (g *Gateway) Done() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.proc == nil {
		return nil
	}
	return g.proc.done
}

func (g *Gateway) running() bool {
	if g.proc == nil {
		return false
	}
	select {
	case <-g.proc.done:
		return false
	default:
		return true
	}
}

// Home is the gateway's HERMES_HOME.
func (g *Gateway) Home() string { return g.home }

// Logs returns what the gateway printed and wrote to its log files, without the secrets of relay and API server.
func (g *Gateway) Logs() string {
	paths, _ := filepath.Glob(filepath.Join(g.home, "logs", "*.log"))
	var out bytes.Buffer
	for _, path := range append(paths, g.outputPath()) {
		if text, err := os.ReadFile(path); err == nil && len(text) > 0 {
			fmt.Fprintf(&out, "--- %s\n%s\n", filepath.Base(path), text)
		}
	}
	text := out.String()
	for _, secret := range []string{g.setup.RelaySecret, g.setup.api.Key} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "<secret>")
		}
	}
	return text
}

// Outside lists the hosts outside this machine that Hermes tried to reach; the tries failed.
func (g *Gateway) Outside() []string {
	text, err := os.ReadFile(g.netLogPath())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		g.t.Error(err)
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	slices.Sort(lines)
	return slices.Compact(lines)
}

// CLI runs `hermes args...` on the gateway's home and returns what it printed, both streams together.
func (g *Gateway) CLI(ctx context.Context, args ...string) (string, error) {
	cmd := g.command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	// A grandchild that keeps the pipe open must not keep the test.
	cmd.WaitDelay = 2 * time.Second
	p, err := startProcess(cmd)
	if err != nil {
		return "", err
	}
	defer p.kill()
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return out.String(), fmt.Errorf("hermes %s: %w", strings.Join(args, " "), ctx.Err())
	}
	if p.err != nil {
		return out.String(), fmt.Errorf("hermes %s: %w", strings.Join(args, " "), p.err)
	}
	return out.String(), nil
}

// command prepares `hermes args...` with an environment that has nothing of the user's in it.
func (g *Gateway) command(args ...string) *exec.Cmd {
	hermes, err := program(g.setup.Version, "hermes")
	if err != nil {
		g.t.Fatal(err)
	}
	cmd := exec.Command(hermes, args...)
	home := filepath.Join(g.root, "home")
	cmd.Dir = home
	cmd.Env = []string{
		"HOME=" + home, "HERMES_HOME=" + g.home, "TMPDIR=" + filepath.Join(g.root, "tmp"),
		"PATH=" + filepath.Dir(hermes) + string(os.PathListSeparator) + os.Getenv("PATH"),
		"LANG=C.UTF-8", "TZ=UTC", "NO_COLOR=1", "PYTHONUNBUFFERED=1",
		// The guard refuses every connection off this machine and notes it.
		"PYTHONPATH=" + filepath.Join(g.root, "guard"), "HERMES_TEST_NET_LOG=" + g.netLogPath(),
		// Otherwise the first start copies the bundled skills into the home.
		"HERMES_BUNDLED_SKILLS=" + filepath.Join(g.root, "no-skills"),
		// No package is installed at run time for a feature that lacks one.
		"HERMES_DISABLE_LAZY_INSTALLS=1",
		g.marker,
	}
	return cmd
}

func (g *Gateway) outputPath() string { return filepath.Join(g.root, "gateway.out") }

func (g *Gateway) netLogPath() string { return filepath.Join(g.root, "network.log") }

// tail returns the last n lines.
func tail(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
