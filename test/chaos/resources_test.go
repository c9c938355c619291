package chaos

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// resources is what a server holds while all phones are connected and nothing happens.
type resources struct {
	handles    int
	goroutines int
	memory     int // bytes of heap and stacks in use
}

// What may be more than at the start: connections of the store and of HTTP that are kept for the next use, and memory that
// the next collections give back.
const (
	moreHandles    = 12
	moreGoroutines = 12
	moreMemory     = 24 << 20
	backWithin     = 90 * time.Second
)

// warm sends a text and a file of each phone, so that all is open that is kept open.
func (w *world) warm() {
	w.t.Helper()
	for _, p := range w.phones {
		p.text(p.id+".warm", "echo "+p.id+".warm", "reply "+p.id+".warm")
		p.upload(p.id + ".warmfile")
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), settleWithin)
	defer cancel()
	if !w.wait(ctx, w.quiet) {
		w.t.Fatalf("the first messages were not answered\n%s", w.srv.tail(40))
	}
}

// resources reads what the server holds.
func (w *world) resources() (r resources) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 20*time.Second)
	defer cancel()
	m, err := w.metrics(ctx)
	if err != nil {
		w.t.Errorf("read the metrics: %v", err)
		return r
	}
	r.handles, _ = handles(w.srv.pid())
	r.goroutines = int(m["go_goroutines"])
	r.memory = int(m["go_memstats_heap_inuse_bytes"] + m["go_memstats_stack_inuse_bytes"])
	return r
}

func (w *world) metrics(ctx context.Context) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+w.srv.addr()+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	req.Close = true // no connection is to stay
	req.Header.Set("Authorization", "Bearer "+metricsToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	m := map[string]float64{}
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			m[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	return m, lines.Err()
}

// comeBack demands that the server holds no more than before all went wrong. Reading the metrics makes garbage, so
// collections come by themselves.
func (w *world) comeBack(before resources) {
	w.t.Helper()
	for _, p := range w.phones {
		p.net.idle()
	}
	var now resources
	for end := time.Now().Add(backWithin); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		now = w.resources()
		if now.handles <= before.handles+moreHandles && now.goroutines <= before.goroutines+moreGoroutines && now.memory <= before.memory+moreMemory {
			w.t.Logf("the server holds %+v, at the start it held %+v", now, before)
			return
		}
	}
	w.t.Errorf("BROKEN: what is used comes back to where it was\nat rest the server holds %+v, at the start it held %+v\nseed %d", now, before, w.seed)
}
