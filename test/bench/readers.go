package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/test/bench/measure"
)

// heldStreams is how many streams are open at once where their memory is measured.
const heldStreams = 200

// reader is a client library in a process of its own.
type reader struct {
	name   string
	argv   []string
	golang bool // it can count what it allocates

	version                                         string
	p50, p99, allocs, bytes, cpu, rss, before, heap []float64
}

// readers are those that scripts/bench.sh has built; others are left out, and it said why.
func readers() []*reader {
	var list []*reader
	add := func(name, program string, golang bool, more ...string) {
		argv := append(strings.Fields(os.Getenv(program)), more...)
		if os.Getenv(program) != "" {
			list = append(list, &reader{name: name, argv: argv, golang: golang})
		}
	}
	add("gateway, chat completions", "BENCH_READER", true)
	add("gateway, runs", "BENCH_READER", true, "-way", "runs")
	add("OpenAI for Go", "BENCH_OPENAI_GO", true)
	add("OpenAI for Python", "BENCH_OPENAI_PYTHON", false)
	return list
}

// clients measures package gateway beside other clients of the same streams, and what the direct agent adds to a turn.
func clients(ctx context.Context, s *suite) error {
	a := newAPI()
	defer a.Close()
	defer a.CloseClientConnections()
	list := readers()
	if len(list) == 0 {
		return errors.New("there are no readers: run scripts/bench.sh, which builds them")
	}
	var bare []float64
	for range s.repeat {
		p50, err := curl(ctx, a)
		if err != nil {
			return err
		}
		bare = append(bare, p50)
		for _, r := range list {
			if err := r.measure(ctx, a); err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
		}
	}
	s.add("gateway", "bare curl: write to caller, p50 µs", spread("%.0f", bare), "")
	base := middle(bare)
	for _, r := range list {
		goal := func(text string) string {
			if strings.HasPrefix(r.name, "gateway") {
				return text
			}
			return ""
		}
		of := func(figure string) string { return r.name + ": " + figure }
		s.add("gateway", of("version"), r.version, "")
		s.add("gateway", of("write to caller, p50 µs, p99 µs"), spread("%.0f", r.p50)+", "+spread("%.0f", r.p99), "")
		added := middle(r.p50) - base
		s.add("gateway", of("p50 over a bare curl, ms"), fmt.Sprintf("%.3f", added/1000), verdict(goal("<= 1"), added <= 1000))
		if r.golang {
			allocs := math.Round(middle(r.allocs)*100) / 100
			s.add("gateway", of("allocations an event"), fmt.Sprintf("%.2f, %.0f B", allocs, middle(r.bytes)), verdict(goal("<= 3"), allocs <= 3))
		}
		s.add("gateway", of("CPU an event, µs"), spread("%.1f", r.cpu), "")
		more := (middle(r.rss) - middle(r.before)) / heldStreams / 1024
		s.add("gateway", of(fmt.Sprintf("RSS with %d streams, MB; more a stream, KiB", heldStreams)), fmt.Sprintf("%.1f; %.1f", middle(r.rss)/1e6, more), "")
		if r.golang {
			s.add("gateway", of("heap and stacks in use a stream, KiB"), fmt.Sprintf("%.1f", middle(r.heap)/heldStreams/1024), "")
		}
	}
	return firstToken(ctx, s, a)
}

// verdict is a goal with whether it is met.
func verdict(goal string, met bool) string {
	switch {
	case goal == "":
		return ""
	case met:
		return goal + ", met"
	}
	return goal + ", missed"
}

// measure runs the reader once for each kind of stream.
func (r *reader) measure(ctx context.Context, a *api) error {
	for _, do := range []string{"paced", "burst", "held"} {
		args := append(slices.Clone(r.argv[1:]), "-url", a.URL, "-key", apiKey, "-do", do, "-streams", strconv.Itoa(heldStreams))
		cmd := exec.CommandContext(ctx, r.argv[0], args...)
		dieWithParent(cmd)
		var said, trouble bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &trouble
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w: %s", do, err, trouble.Bytes()[max(0, trouble.Len()-1000):])
		}
		var got measure.Result
		if err := json.Unmarshal(said.Bytes(), &got); err != nil {
			return fmt.Errorf("%s: %w", do, err)
		}
		want := map[string]int{"paced": pacedPieces, "burst": burstPieces, "held": heldStreams}[do]
		if got.Events != want {
			return fmt.Errorf("%s: %d of %d came", do, got.Events, want)
		}
		r.version = got.Version
		switch do {
		case "paced":
			r.p50, r.p99 = append(r.p50, got.P50), append(r.p99, got.P99)
		case "burst":
			r.allocs, r.bytes, r.cpu = append(r.allocs, got.Allocs), append(r.bytes, got.Bytes), append(r.cpu, got.CPU)
		case "held":
			r.rss, r.before, r.heap = append(r.rss, float64(got.RSS)), append(r.before, float64(got.Before)), append(r.heap, float64(got.Heap))
		}
	}
	return nil
}

// curl reads the paced stream with curl, and returns the median from the server's write to the line being here, in µs.
func curl(ctx context.Context, a *api) (float64, error) {
	cmd := exec.CommandContext(ctx, "curl", "-sN", "-H", "Authorization: Bearer "+apiKey, "-d", `{"model":"paced","stream":true}`, a.URL+"/v1/chat/completions")
	dieWithParent(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("curl, which the others are measured against: %w", err)
	}
	var delays []time.Duration
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		now := time.Now().UnixNano()
		_, rest, _ := bytes.Cut(lines.Bytes(), []byte(`"content": "`))
		digits, _, _ := bytes.Cut(rest, []byte(" "))
		if sent, err := strconv.ParseInt(string(digits), 10, 64); err == nil {
			delays = append(delays, time.Duration(now-sent))
		}
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return 0, fmt.Errorf("curl: %w", err)
	}
	if len(delays) != pacedPieces {
		return 0, fmt.Errorf("curl gave %d of %d pieces", len(delays), pacedPieces)
	}
	return float64(quantile(delays, 0.5).Nanoseconds()) / 1e3, nil
}

// turns is how many turns the time to the first token is measured with.
const turns = 40

// firstToken measures how much later the first token is on a phone than straight at the API.
func firstToken(ctx context.Context, s *suite, a *api) error {
	p, err := s.serve(ctx, "first", "MOBILE_AGENT=direct", "MOBILE_API_URL="+a.URL, "MOBILE_API_KEY="+apiKey, "MOBILE_RELAY_ID=", "MOBILE_RELAY_SECRET=")
	if err != nil {
		return err
	}
	defer p.drop()
	first, final := make(chan time.Time, 1), make(chan struct{}, 1)
	fresh := true // of the device's reader
	f, err := open(ctx, p.addr, 0, 1, func(_ *device, kind string, b []byte) {
		if kind != "message" {
			return
		}
		if fresh { // a step, or the whole reply where all of it came at once
			first <- time.Now()
		}
		if fresh = has(b, `"final":true`); fresh {
			final <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	defer f.close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stop := s.capture(ctx, p, "first", 4*time.Second)
	defer stop()
	var straight, through, there, thought, back []time.Duration
	for n := range turns + 5 { // the first ones warm up
		at, err := a.straight(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		f.list[0].send([]byte(`{"t":"text","id":"f` + strconv.Itoa(n) + `","text":"hello"}`))
		var came time.Time
		select {
		case came = <-first:
		case err := <-f.lost:
			return err
		case <-ctx.Done():
			return fmt.Errorf("no first token: %w: %s", ctx.Err(), p.lastWords())
		}
		posted, spoken := a.times()
		if err := f.wait(ctx, signalled(ctx, final), "no reply"); err != nil {
			return err
		}
		if n >= 5 {
			straight, through = append(straight, at), append(through, came.Sub(begin))
			there, thought, back = append(there, posted.Sub(begin)), append(thought, spoken.Sub(posted)), append(back, came.Sub(spoken))
		}
	}
	const what = "first token "
	through50, straight50 := quantile(through, 0.5), quantile(straight, 0.5)
	s.add("gateway", what+"straight at the API, p50, p99 ms", fmt.Sprintf("%.1f, %.1f (it thinks for %d)", ms(straight50), ms(quantile(straight, 0.99)), thinking.Milliseconds()), "")
	s.add("gateway", what+"through serve --agent direct, p50, p99 ms", fmt.Sprintf("%.1f, %.1f", ms(through50), ms(quantile(through, 0.99))), "")
	s.add("gateway", what+"later by, p50 ms", fmt.Sprintf("%.1f", ms(through50-straight50)), "")
	s.add("gateway", what+"through serve: text to run, run to piece, piece to phone, p50 ms", fmt.Sprintf("%.1f, %.1f, %.1f",
		ms(quantile(there, 0.5)), ms(quantile(thought, 0.5)), ms(quantile(back, 0.5))), "")
	return nil
}

// signalled closes its channel with the next signal.
func signalled(ctx context.Context, c <-chan struct{}) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		select {
		case <-c:
			close(done)
		case <-ctx.Done():
		}
	}()
	return done
}

// straight is the time to the first token of a run that nobody stands between.
func (a *api) straight(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	resp, err := a.call(ctx, "POST", "/v1/runs", `{"input":"hello"}`)
	if err != nil {
		return 0, err
	}
	var run struct {
		ID string `json:"run_id"`
	}
	err = json.NewDecoder(resp.Body).Decode(&run)
	resp.Body.Close()
	if err != nil {
		return 0, err
	}
	if resp, err = a.call(ctx, "GET", "/v1/runs/"+run.ID+"/events", ""); err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var took time.Duration
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if took == 0 && bytes.Contains(lines.Bytes(), []byte("message.delta")) {
			took = time.Since(begin)
		}
	}
	if err := lines.Err(); err != nil || took == 0 {
		return 0, errors.Join(errors.New("the run gave no text"), err)
	}
	return took, nil
}

func (a *api) call(ctx context.Context, method, path, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	resp, err := http.DefaultClient.Do(req)
	if err == nil && resp.StatusCode >= 300 {
		resp.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, path, resp.Status)
	}
	return resp, err
}
