package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
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
	"time"
)

// Tokens and ids of the servers that are started here; they listen on loopback only and live for
// minutes.
const (
	appToken     = "bench0bench0bench0bench0bench0bench0bench0bench0bench0bench0be01"
	metricsToken = "bench0bench0bench0bench0bench0bench0bench0bench0bench0bench0be03"
	deliverToken = "bench0bench0bench0bench0bench0bench0bench0bench0bench0bench0be02"
	relayID      = "gw-bench"
	relaySecret  = "bench-secret-bench-secret-bench-secret"
)

// process is a running server.
type process struct {
	cmd   *exec.Cmd
	addr  string // host:port
	pprof string // host:port, where the server is the one with profiles
	data  string
	log   string
	began time.Time
	done  chan struct{}
}

// freeAddr returns an address of this machine on which nobody listens.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}

// launch starts a server with the relay agent on a data folder and returns at once.
func (s *suite) launch(data string, env ...string) (*process, error) {
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	host, port, _ := net.SplitHostPort(addr)
	p := &process{addr: addr, data: data, log: data + ".log", done: make(chan struct{})}
	p.cmd = exec.Command(s.bin, "serve")
	p.cmd.Env = append([]string{"HOME=" + s.dir, "HERMES_HOME=" + filepath.Join(s.dir, "no-hermes"), "TMPDIR=" + s.dir, "PATH=" + os.Getenv("PATH"),
		"MOBILE_HOST=" + host, "MOBILE_PORT=" + port, "MOBILE_DATA=" + data, "MOBILE_LOG_LEVEL=warn", "MOBILE_ALLOW_ALL_USERS=1",
		"MOBILE_TOKEN=" + appToken, "MOBILE_METRICS_TOKEN=" + metricsToken, "MOBILE_DELIVER_TOKENS=" + deliverToken,
		"MOBILE_AGENT=relay", "MOBILE_RELAY_ID=" + relayID, "MOBILE_RELAY_SECRET=" + relaySecret}, env...)
	if s.profile != "" {
		if p.pprof, err = freeAddr(); err != nil {
			return nil, err
		}
		p.cmd.Env = append(p.cmd.Env, "BENCH_PPROF="+p.pprof)
	}
	return p, p.start()
}

// start starts the command.
func (p *process) start() error {
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	p.cmd.Stdout, p.cmd.Stderr = out, out
	dieWithParent(p.cmd)
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // the child dies with the thread that made it, so that one must stay
		defer runtime.UnlockOSThread()
		p.began = time.Now()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start the server: %w", err)
	}
	return nil
}

// serve starts a server on a new data folder and waits until it answers.
func (s *suite) serve(ctx context.Context, name string, env ...string) (*process, error) {
	data, err := os.MkdirTemp(s.dir, name+"-")
	if err != nil {
		return nil, err
	}
	p, err := s.launch(data, env...)
	if err != nil {
		return nil, err
	}
	return p, p.await(ctx)
}

func (p *process) await(ctx context.Context) error {
	for {
		c, err := net.Dial("tcp", p.addr)
		if err == nil {
			return c.Close()
		}
		select {
		case <-p.done:
			return fmt.Errorf("the server ended: %s", p.lastWords())
		case <-ctx.Done():
			p.kill()
			return fmt.Errorf("the server does not listen: %s", p.lastWords())
		case <-time.After(time.Millisecond):
		}
	}
}

func (p *process) lastWords() string {
	text, _ := os.ReadFile(p.log)
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return string(text)
}

// stop ends a server in order; one that does not is killed.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(15 * time.Second):
		p.kill()
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// drop ends a server for good and removes what it wrote.
func (p *process) drop() {
	p.stop()
	_ = os.RemoveAll(p.data)
}

// cpu is the time the server has computed so far, in user and kernel.
func (p *process) cpu() time.Duration { return cpuTime(p.cmd.Process.Pid) }

// rss is the server's resident memory in bytes.
func (p *process) rss() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return n << 10
		}
	}
	return 0
}

// metrics reads the server's counters; the values of one name are added up.
func (p *process) metrics(ctx context.Context) (map[string]float64, error) {
	body, err := get(ctx, "http://"+p.addr+"/metrics", metricsToken)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	m := map[string]float64{}
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || name == "#" {
			continue
		}
		name, _, _ = strings.Cut(name, "{")
		v, _ := strconv.ParseFloat(value, 64)
		m[name] += v
	}
	return m, lines.Err()
}

// get fetches a page, with a bearer token where there is one.
func get(ctx context.Context, url, token string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("%s: %s", url, resp.Status)
	}
	return resp.Body, nil
}

// sweeping is time for the sweeper, until which a collection has found what is garbage but not
// freed it.
const sweeping = time.Second

// live is the memory that is in use after a collection: heap and stacks. There is no way to ask the
// server for a collection, but its own metrics make garbage, so they are read until it has made
// four: each halves the stacks that are larger than they need to be.
func (p *process) live(ctx context.Context) (float64, error) {
	first, err := p.metrics(ctx)
	if err != nil {
		return 0, err
	}
	const cycles = "go_gc_duration_seconds_count"
	for range 50000 {
		m, err := p.metrics(ctx)
		if err != nil {
			return 0, err
		}
		if m[cycles] < first[cycles]+4 {
			continue
		}
		time.Sleep(sweeping)
		if m, err = p.metrics(ctx); err != nil {
			return 0, err
		}
		return m["go_memstats_heap_inuse_bytes"] + m["go_memstats_stack_inuse_bytes"], nil
	}
	return 0, errors.New("the server made no collection")
}

// capture writes a CPU profile of the next seconds and what is allocated in them, and then the live
// heap, where profiles were asked for. The function it returns waits for that.
func (s *suite) capture(ctx context.Context, p *process, name string, d time.Duration) (wait func()) {
	if s.profile == "" {
		return func() {}
	}
	fetch := func(kind, query string) {
		body, err := get(ctx, "http://"+p.pprof+"/debug/pprof/"+query, "")
		if err != nil {
			fmt.Println("  no profile:", err)
			return
		}
		defer body.Close()
		f, err := os.Create(filepath.Join(s.profile, name+"."+kind))
		if err == nil {
			_, err = io.Copy(f, body)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			fmt.Println("  no profile:", err)
		}
	}
	seconds := strconv.Itoa(max(1, int(d.Seconds())))
	var work sync.WaitGroup
	work.Go(func() { fetch("cpu", "profile?seconds="+seconds) })
	work.Go(func() { fetch("allocs", "allocs?seconds="+seconds) })
	return func() {
		work.Wait()
		fetch("heap", "heap?gc=1")
	}
}
