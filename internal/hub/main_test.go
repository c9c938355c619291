package hub_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/access"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/leak"
	"hermes-mobile/internal/media"
	"hermes-mobile/internal/metrics"
	"hermes-mobile/internal/store"
	"hermes-mobile/internal/wsconn"
)

func TestMain(m *testing.M) { leak.Main(m) }

// patience is how long something that must happen may take. Nothing waits for it unless it fails.
const patience = 10 * time.Second

const (
	token        = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	extraToken   = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	deliverToken = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

var ctx = context.Background()

// tb is what the helpers need of a test, also of rapid's.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(f func())
}

func ok(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func value[T any](t tb) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

// until waits for a condition that others bring about.
func until(t tb, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// world is a hub with everything around it: a store on the disk, an agent that does what the test says, and a real server.
type world struct {
	t       tb
	dir     string
	change  func(*hub.Options)
	hub     *hub.Hub
	store   *store.Store
	files   *media.Store
	tokens  *access.Tokens
	pairing *access.Pairing
	agent   *scripted
	server  *httptest.Server
	loop    bool // connections count as of this machine
	end     context.CancelFunc
	work    *sync.WaitGroup
	closed  bool
}

// newWorld starts a hub whose options the test may change.
func newWorld(t tb, change func(*hub.Options)) *world {
	t.Helper()
	dir := value[string](t)(os.MkdirTemp("", "hub"))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return startWorld(t, dir, change)
}

func startWorld(t tb, dir string, change func(*hub.Options)) *world {
	t.Helper()
	w := &world{t: t, dir: dir, change: change}
	w.start(newAgent())
	t.Cleanup(w.close)
	return w
}

func (w *world) start(a *scripted) {
	w.t.Helper()
	t := w.t
	w.agent, w.closed, w.work = a, false, &sync.WaitGroup{}
	w.store = value[*store.Store](t)(store.Open(ctx, w.dir))
	w.files = value[*media.Store](t)(media.OpenStore(filepath.Join(w.dir, "files")))
	w.pairing = value[*access.Pairing](t)(access.OpenPairing(filepath.Join(w.dir, "pairing"), "mobile"))
	w.tokens = &access.Tokens{}
	w.tokens.Replace([]access.Token{{Label: "main", Secret: token}, {Label: "extra", Secret: extraToken},
		{Label: "sender", Secret: deliverToken, Kind: access.Deliver}})
	var key [32]byte
	_, _ = rand.Read(key[:])
	o := hub.Options{Store: w.store, Files: w.files, Links: media.NewSigner(key), Agent: a, Tokens: w.tokens, Pairing: w.pairing,
		Guard: access.NewGuard(time.Now), Keeper: wsconn.NewKeeper(25*time.Second, time.Minute), Metrics: metrics.New("test"),
		Log: slog.New(slog.DiscardHandler), Version: "test", AllowAllUsers: true, PromptLife: 5 * time.Minute, MaxMedia: frame.MaxMedia,
		OutboxEntries: 10_000, IdleTimeout: time.Minute, HelloTimeout: patience,
		AnswerWait: -1} // newcomer_test.go is about new devices that may not answer
	if w.change != nil {
		w.change(&o)
	}
	w.hub = hub.New(o)
	ok(t, w.hub.Start(ctx))
	life, end := context.WithCancel(ctx)
	w.end = end
	w.work.Go(func() { o.Keeper.Run(life) })
	w.work.Go(func() { _ = a.Run(life, w.hub) })
	<-a.running
	h, loop := w.hub, w.loop
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		h.Accept(rw, r, netip.MustParseAddr("127.0.0.1"), loop, "http://"+r.Host)
	}))
	w.server.Listener = narrow{w.server.Listener}
	w.server.Start()
}

// narrow gives connections small buffers in the kernel, so that a reader who does not read is noticed after kilobytes.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, isTCP := c.(*net.TCPConn); isTCP {
		_ = tcp.SetWriteBuffer(8 << 10)
	}
	return c, err
}

// close ends the hub as the server does when it is told to stop.
func (w *world) close() {
	if w.closed {
		return
	}
	w.closed = true
	grace, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.hub.Close(grace)
	if grace.Err() != nil {
		w.t.Errorf("the hub did not close in time")
	}
	w.end()
	w.work.Wait()
	w.server.Close()
	if err := w.store.Close(); err != nil {
		w.t.Errorf("close the store: %v", err)
	}
}

// restart stops the server and starts it again on the same data.
func (w *world) restart() {
	w.t.Helper()
	w.close()
	w.start(newAgent())
}

// crash starts another server on the data as it is on the disk at this moment, like after kill -9. The old one is ended.
func (w *world) crash() *world {
	w.t.Helper()
	dir := value[string](w.t)(os.MkdirTemp("", "hub"))
	w.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(w.dir, store.File+suffix))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		ok(w.t, err)
		ok(w.t, os.WriteFile(filepath.Join(dir, store.File+suffix), data, 0o600))
	}
	for _, folder := range []string{"files", "pairing"} {
		ok(w.t, os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(w.dir, folder))))
	}
	next := startWorld(w.t, dir, w.change)
	w.close()
	return next
}

// sql changes the database behind the store's back, to make it fail. The driver is the store's.
func (w *world) sql(statement string) {
	w.t.Helper()
	db := value[*sql.DB](w.t)(sql.Open("sqlite", "file:"+filepath.Join(w.dir, store.File)+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	_, err := db.ExecContext(ctx, statement)
	ok(w.t, err)
}

// query reads one value behind the store's back.
func (w *world) query(statement string, into any) {
	w.t.Helper()
	db := value[*sql.DB](w.t)(sql.Open("sqlite", "file:"+filepath.Join(w.dir, store.File)+"?_pragma=busy_timeout(10000)"))
	defer db.Close()
	ok(w.t, db.QueryRowContext(ctx, statement).Scan(into))
}

// holdDisk keeps the store from writing until release is called, as a disk does that is busy.
func (w *world) holdDisk() (release func()) {
	w.t.Helper()
	db := value[*sql.DB](w.t)(sql.Open("sqlite", "file:"+filepath.Join(w.dir, store.File)+"?_pragma=busy_timeout(10000)&_txlock=immediate"))
	tx := value[*sql.Tx](w.t)(db.BeginTx(ctx, nil))
	var once sync.Once
	release = func() {
		once.Do(func() {
			_ = tx.Rollback()
			_ = db.Close()
		})
	}
	w.t.Cleanup(release)
	return release
}

// failWrites makes every insert into a table fail until healed.
func (w *world) failWrites(table string) {
	w.t.Helper()
	w.sql("CREATE TRIGGER test_" + table + " BEFORE INSERT ON " + table + " BEGIN SELECT RAISE(ABORT, 'database or disk is full'); END")
}

func (w *world) healWrites(table string) { w.t.Helper(); w.sql("DROP TRIGGER test_" + table) }

// scripted is a scripted agent.Agent: it records what it is told, and the test answers.
type scripted struct {
	running chan struct{}
	hands   chan hand
	answers chan answered
	stops   chan string

	mu     sync.Mutex
	host   agent.Host
	status agent.Status
	admits func(agent.Input) bool
	onHand func(hand) bool // takes the hand itself when it returns true
}

type hand struct {
	agent.Input
	taken func(error)
}

type answered struct {
	card   agent.Card
	answer agent.Answer
	taken  func(error)
}

func newAgent() *scripted {
	return &scripted{running: make(chan struct{}), hands: make(chan hand, 1<<16), answers: make(chan answered, 1<<10), stops: make(chan string, 1<<10),
		status: agent.Status{Online: true, Edit: true, Typing: true, Prompt: true, Stop: true, Tool: true, FilesIn: true, Files: true}}
}

func (a *scripted) Name() string { return "scripted" }

func (a *scripted) Run(ctx context.Context, host agent.Host) error {
	a.mu.Lock()
	a.host = host
	a.mu.Unlock()
	close(a.running)
	<-ctx.Done()
	return nil
}

func (a *scripted) Status(string) agent.Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.status
}

func (a *scripted) set(f func(*agent.Status)) {
	a.mu.Lock()
	f(&a.status)
	a.mu.Unlock()
	a.host.Changed()
}

func (a *scripted) online(on bool) { a.set(func(s *agent.Status) { s.Online = on }) }

func (a *scripted) Hand(in agent.Input, taken func(error)) {
	a.mu.Lock()
	f := a.onHand
	a.mu.Unlock()
	if h := (hand{in, taken}); f == nil || !f(h) {
		a.hands <- h
	}
}

func (a *scripted) Admits(in agent.Input) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.admits != nil && a.admits(in)
}

func (a *scripted) Stop(device string) { a.stops <- device }

func (a *scripted) Answer(card agent.Card, answer agent.Answer, taken func(error)) {
	a.answers <- answered{card, answer, taken}
}

// next is what the agent is handed next.
func (w *world) next() hand {
	w.t.Helper()
	return receive(w.t, w.agent.hands, "the agent to be handed a message")
}

// take is next, taken.
func (w *world) take() hand {
	w.t.Helper()
	h := w.next()
	h.taken(nil)
	return h
}

// told is the next decision the agent is told.
func (w *world) told() answered {
	w.t.Helper()
	return receive(w.t, w.agent.answers, "the agent to be told a decision")
}

func receive[T any](t tb, c <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-c:
		return v
	case <-timer.C:
		t.Fatalf("waited in vain for %s", what)
		panic("not reached")
	}
}

// idle fails when the agent has been told something that the test did not ask for.
func (w *world) idle() {
	w.t.Helper()
	select {
	case h := <-w.agent.hands:
		w.t.Fatalf("the agent was handed %q too early", h.Text)
	case a := <-w.agent.answers:
		w.t.Fatalf("the agent was told %+v", a.answer)
	default:
	}
}

// try posts events and waits for their outcome, which must come exactly once.
func (w *world) try(device string, events ...agent.Event) error {
	w.t.Helper()
	done := make(chan error, 8)
	w.hub.Post(device, func(err error) { done <- err }, events...)
	return receive(w.t, done, "the outcome of a post")
}

// post posts events, which must be taken.
func (w *world) post(device string, events ...agent.Event) {
	w.t.Helper()
	ok(w.t, w.try(device, events...))
}

// reply ends the turn of a message with one text.
func (w *world) reply(h hand, text string) {
	w.t.Helper()
	w.post(h.Device, agent.Say{ID: agent.NewID(), Text: text, Final: true, ReplyTo: h.ID, N: h.N}, agent.Done{N: h.N})
}

// damagePairing makes the file of approvals unreadable until it is healed.
func (w *world) damagePairing() (heal func()) {
	w.t.Helper()
	path := filepath.Join(w.dir, "pairing", "mobile-approved.json")
	was := value[[]byte](w.t)(os.ReadFile(path))
	ok(w.t, os.WriteFile(path, []byte("no JSON"), 0o600))
	return func() { ok(w.t, os.WriteFile(path, was, 0o600)) }
}
