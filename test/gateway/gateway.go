// Package gateway is a scripted Hermes gateway for tests: it dials a server of ours as a stock 0.22.2 gateway does, acts on
// what it is told by a script, and records everything it saw and did, so that a checker can compare it with what devices
// saw. It never dies; its link does.
//
// What it does with an input follows from the text alone (see turn.go): "echo N X" is answered with
// "reply N X", "ask N" with a card and then "decided N <option>", "file N" with "filed N" and a
// file, "take N" with "took N <sha256>" of the file that came with it.
//
// Facts that it follows are those of doc/hermes/relay.md §3 to §7, §10 and §11. In three points it
// is kinder than a stock one, so that a test can demand more: marks (👀, ✅) that could not be sent
// come when the link is back, unless LoseMarks is set; a file is fetched again until the server is
// back; a card whose result was lost is asked anew under another id, where the stock one asks in
// words.
package gateway

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Form is how a message is sent again whose result was lost.
type Form int

// The forms. A stock 0.22.2 gateway uses Recovered; SameText is what it does when only the answer was late (§11).
const (
	Recovered Form = iota // it answers nothing, and its text stands behind a line of explanation (§10)
	SameText              // the same frame again, under a new request id
)

// RecoveredPrefix is what stands before the text of a message that is sent again (the gateway's delivery_ledger.py).
const RecoveredPrefix = "♻️ Recovered reply — the messaging platform reconnected after the original delivery failed, so this may be a duplicate:\n\n"

// Config says how a gateway behaves. URL, ID and Secret are needed.
type Config struct {
	URL    string // GATEWAY_RELAY_URL: http://host:port or https://host:port
	ID     string
	Secret string
	// Client makes its connections; one of its own when nil.
	Client *http.Client
	Form   Form
	// LoseMarks drops marks and typing that cannot be sent, as a stock gateway does. A server then has to find the end
	// of a turn in another way, which takes it up to minutes.
	LoseMarks bool
	// Kind helps a server to see where turns end, so that conversations go on at once after a lost link: the last marks of a
	// conversation are given again a moment after each new link, and the first draft of a message is sent until it is taken.
	Kind bool
	// Patient is for a server that is to be short of disk or standing still: a refusal and a result that comes too late are
	// no faults then, and what was refused is tried again.
	Patient bool
	// Redial is the wait before the first attempt after a lost link, doubled up to RedialMax. Stock: 1 s and 30 s.
	// Default: 30 ms and 240 ms.
	Redial, RedialMax time.Duration
	// Pace is about how long the steps of a turn are apart. Default 15 ms.
	Pace time.Duration
	// Clock is the gateway's clock, by which its tokens hold; time.Now when nil.
	Clock func() time.Time
	// OnOp is called before an op is sent, with its name, "upload" or "download" for a file, and with "decision" when a
	// card's answer came. It must not block nor call the gateway.
	OnOp func(op string)
}

// Gateway is a running gateway. Its methods may be called from any goroutine.
type Gateway struct {
	cfg    Config
	nonce  string // of this process, in prompt ids
	client *http.Client
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	link    *link         // nil while it is away
	changed chan struct{} // closed when link or records change
	chats   map[string]*chat
	rec     record
}

// link is one connection.
type link struct {
	conn    *websocket.Conn
	ready   bool // the descriptor came
	gone    chan struct{}
	pending map[string]chan result // by requestId
}

// New starts a gateway. It dials at once and again and again, until Close.
func New(cfg Config) *Gateway {
	for _, d := range []struct {
		v    *time.Duration
		zero time.Duration
	}{{&cfg.Redial, 30 * time.Millisecond}, {&cfg.RedialMax, 240 * time.Millisecond}, {&cfg.Pace, 15 * time.Millisecond}} {
		if *d.v <= 0 {
			*d.v = d.zero
		}
	}
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	if cfg.OnOp == nil {
		cfg.OnOp = func(string) {}
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Transport: &http.Transport{}}
	}
	cfg.URL = strings.TrimRight(cfg.URL, "/")
	g := &Gateway{cfg: cfg, nonce: fmt.Sprintf("%06x", rand.IntN(1<<24)), changed: make(chan struct{}), chats: map[string]*chat{},
		client: cfg.Client, rec: newRecord()}
	g.ctx, g.cancel = context.WithCancel(context.Background())
	g.work.Go(g.run)
	return g
}

// Close ends the link, the turns and every goroutine.
func (g *Gateway) Close() {
	g.cancel()
	g.work.Wait()
	g.client.CloseIdleConnections()
}

// Drop cuts the link without a word, if there is one. What was on its way is lost.
func (g *Gateway) Drop() {
	g.mu.Lock()
	l := g.link
	if l != nil {
		g.traceLocked("", "-- link cut by the test")
	}
	g.mu.Unlock()
	if l != nil {
		_ = l.conn.CloseNow()
	}
}

// Online reports whether a descriptor came on the link there is.
func (g *Gateway) Online() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.link != nil && g.link.ready
}

func (g *Gateway) token() string { return token(g.cfg.ID, g.cfg.Secret, g.cfg.Clock()) }

// token is the bearer of an upgrade or a request that was made at a time (§3).
func token(id, secret string, made time.Time) string {
	signed := fmt.Sprintf("%s:%d", id, made.Add(300*time.Second).Unix())
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(signed))
	return base64.RawURLEncoding.EncodeToString([]byte(signed + ":" + hex.EncodeToString(mac.Sum(nil))))
}

func (g *Gateway) run() {
	wait := g.cfg.Redial
	for g.ctx.Err() == nil {
		if l, err := g.dial(); err == nil {
			wait = g.cfg.Redial
			g.serve(l)
		}
		g.sleep(wait)
		wait = min(wait*2, g.cfg.RedialMax)
	}
}

// sleep waits, and returns early when the gateway ends.
func (g *Gateway) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-g.ctx.Done():
	}
}

func (g *Gateway) dial() (*link, error) {
	ctx, cancel := context.WithTimeout(g.ctx, 10*time.Second)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(g.cfg.URL, "http")+"/relay", &websocket.DialOptions{
		HTTPClient: g.client, HTTPHeader: http.Header{"Authorization": {"Bearer " + g.token()}}})
	if err != nil {
		if resp != nil && resp.StatusCode == http.StatusUnauthorized {
			g.fault("the upgrade was refused with 401")
		}
		return nil, err
	}
	conn.SetReadLimit(1 << 20) // the default of the stock gateway's library
	l := &link{conn: conn, gone: make(chan struct{}), pending: map[string]chan result{}}
	if err := g.write(ctx, l, map[string]any{"type": "hello", "platform": "relay", "botId": ""}); err != nil {
		_ = conn.CloseNow()
		return nil, err
	}
	return l, nil
}

func (g *Gateway) write(ctx context.Context, l *link, frame any) error {
	b, err := json.Marshal(frame)
	if err != nil {
		return err
	}
	return l.conn.Write(ctx, websocket.MessageText, append(b, '\n'))
}

// serve reads until the link is lost. All waiting ops then have no result.
func (g *Gateway) serve(l *link) {
	g.mu.Lock()
	g.link = l
	g.rec.links++
	g.traceLocked("", "-- link made")
	g.mu.Unlock()
	if g.cfg.Kind {
		g.work.Go(func() { g.markAgain(l) })
	}
	buf := ""
	var err error
	for {
		var data []byte
		if _, data, err = l.conn.Read(g.ctx); err != nil {
			break
		}
		lines := strings.Split(buf+string(data), "\n")
		buf = lines[len(lines)-1]
		for _, line := range lines[:len(lines)-1] {
			if strings.TrimSpace(line) != "" {
				g.frame(l, line)
			}
		}
	}
	code := websocket.CloseStatus(err)
	_ = l.conn.CloseNow()
	g.mu.Lock()
	g.link = nil
	g.rec.closes[int(code)]++
	g.traceLocked("", fmt.Sprintf("-- link lost, close code %d", code))
	close(l.gone)
	g.tellLocked()
	g.mu.Unlock()
	if code == 4401 {
		g.fault("the server closed with 4401, after which a stock gateway never dials again")
	}
}

// tellLocked wakes whoever waits for a change.
func (g *Gateway) tellLocked() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Changed returns a channel that is closed when something changes.
func (g *Gateway) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

var errEnded = errors.New("gateway: closed")

// online waits for a link that is ready.
func (g *Gateway) online() (*link, error) {
	for {
		g.mu.Lock()
		l, changed := g.link, g.changed
		ready := l != nil && l.ready
		g.mu.Unlock()
		if ready {
			return l, nil
		}
		select {
		case <-changed:
		case <-g.ctx.Done():
			return nil, errEnded
		}
	}
}
