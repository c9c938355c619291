package direct

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/agent"
)

const (
	patience = 30 * time.Second
	testKey  = "key-of-the-gateway-in-tests"
	phone    = "phone"
)

// disk is what outlives a process: what the agent keeps, and what the hub has stored.
type disk struct {
	mu     sync.Mutex
	values map[string][]byte
	events []agent.Event
	cards  map[string]agent.Card // open ones
	files  map[string][]byte
	full   error // what Put fails with
}

func newDisk() *disk {
	return &disk{values: map[string][]byte{}, cards: map[string]agent.Card{}, files: map[string][]byte{}}
}

// handed is an input as the hub hands it over in the next life.
func (d *disk) handed(in agent.Input) agent.Input {
	d.mu.Lock()
	defer d.mu.Unlock()
	in.Handed, in.Texts, in.Cards = true, 0, nil
	for _, e := range d.events {
		switch e := e.(type) {
		case agent.Say:
			if e.Final && e.N == in.N {
				in.Texts++
			}
		case agent.SendFile:
			in.Texts++
		}
	}
	for _, c := range d.cards {
		in.Cards = append(in.Cards, c)
	}
	return in
}

// life is one life of the server: the hub's end of the contract and what the agent keeps. After a crash nothing that is said
// or kept arrives.
type life struct {
	t     testing.TB
	disk  *disk
	agent *Agent
	end   context.CancelFunc
	over  chan struct{}
	log   *bytes.Buffer

	mu     sync.Mutex
	dead   bool
	fail   error // of Post
	keep   error // of Save
	step   int
	crash  int // at this step, from 1; 0: never
	late   bool
	live   []agent.Event
	news   chan struct{}
	online chan struct{}
}

// moment counts what may be the last thing of this life. early: nothing of it is done; done is false where it must not be.
func (l *life) moment(do func()) (done bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.step++
	if l.step == l.crash {
		l.dead = true
		l.end()
		if l.late {
			do()
		}
		return false
	}
	do()
	return true
}

func (l *life) kill() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	l.end()
	<-l.over
}

func (l *life) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

var errDead = errors.New("the process is dead")

func (l *life) Load(_ context.Context, key string) ([]byte, error) {
	l.disk.mu.Lock()
	defer l.disk.mu.Unlock()
	return l.disk.values[key], nil
}

func (l *life) Save(_ context.Context, key string, value []byte) error {
	l.mu.Lock()
	fail := l.keep
	l.mu.Unlock()
	if fail != nil {
		return fail
	}
	if !l.moment(func() {
		l.disk.mu.Lock()
		defer l.disk.mu.Unlock()
		l.disk.values[key] = bytes.Clone(value)
	}) {
		return errDead
	}
	return nil
}

// Post stores what lasts, all or nothing, and shows the rest.
func (l *life) Post(_ string, done func(error), events ...agent.Event) {
	l.mu.Lock()
	fail := l.fail
	l.mu.Unlock()
	if fail != nil {
		if done != nil {
			done(fail)
		}
		return
	}
	arrived := true
	if done != nil {
		arrived = l.moment(func() { l.disk.take(events) })
	} else if !l.isDead() {
		l.disk.take(events)
	}
	l.mu.Lock()
	if arrived && !l.dead {
		l.live = append(l.live, events...)
		close(l.news)
		l.news = make(chan struct{})
	}
	l.mu.Unlock()
	if done != nil && arrived {
		done(nil)
	}
}

func (d *disk) take(events []agent.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case agent.Say:
			if e.Final {
				d.events = append(d.events, e)
			}
		case agent.SendFile, agent.Done:
			d.events = append(d.events, e)
		case agent.Ask:
			d.events = append(d.events, e)
			d.cards[e.Card.ID] = e.Card
		case agent.CloseCard:
			if _, open := d.cards[e.ID]; open {
				d.events = append(d.events, e)
				delete(d.cards, e.ID)
			}
		}
	}
}

func (l *life) Changed() {
	if l.agent != nil && l.agent.Status(phone).Online {
		select {
		case l.online <- struct{}{}:
		default:
		}
	}
}

func (l *life) OpenCards(context.Context, string) ([]agent.Card, error) { return nil, nil }

type seeker struct{ *bytes.Reader }

func (seeker) Close() error { return nil }

func (d *disk) Put(r io.Reader, max int64) (string, int64, error) {
	b, err := io.ReadAll(io.LimitReader(r, max+1))
	if err == nil && int64(len(b)) > max {
		err = errors.New("too large")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.full != nil {
		return "", 0, d.full
	}
	hash := fmt.Sprint("file-", len(d.files))
	d.files[hash] = b
	return hash, int64(len(b)), err
}

func (d *disk) Open(hash string) (io.ReadSeekCloser, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b := d.files[hash]; b != nil {
		return seeker{bytes.NewReader(b)}, nil
	}
	return nil, errors.New("no such file")
}

func (d *disk) LocalCopy(string, string) (string, error) { return "", errors.New("not here") }

// begin starts a life of the server on a disk.
func begin(t testing.TB, g string, d *disk, change ...func(*Options, *gateway.Profile)) *life {
	t.Helper()
	l := &life{t: t, disk: d, over: make(chan struct{}), log: &bytes.Buffer{}, news: make(chan struct{}), online: make(chan struct{}, 1)}
	profile := gateway.Profile{ID: "test", Name: "test", Remote: g, Auth: gateway.AuthBearer, Insecure: true, Jobs: gateway.JobsOn}
	o := Options{Store: l, Files: d, Instance: "i", OutcomeTimeout: 400 * time.Millisecond, Log: slog.New(slog.NewTextHandler(l.log, nil))}
	for _, c := range change {
		c(&o, &profile)
	}
	client, err := gateway.New(profile, gateway.Credentials{Token: gateway.NewSecret(testKey)}, gateway.Options{})
	ok(t, err)
	o.Client = client
	l.agent = New(o)
	ctx, cancel := context.WithCancel(context.Background())
	l.end = cancel
	go func() {
		defer close(l.over)
		_ = l.agent.Run(ctx, l)
		_ = client.Close()
	}()
	t.Cleanup(func() {
		cancel()
		<-l.over
		if strings.Contains(l.log.String(), testKey) {
			t.Error("the key is in the log")
		}
	})
	receive(t, l.online, "the agent to be online")
	return l
}

func receive[T any](t testing.TB, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("not reached")
	}
}

func message(n int64, text string) agent.Input {
	return agent.Input{N: n, Device: phone, ID: fmt.Sprint("m", n), Text: text}
}

// hand gives the agent an input and returns what it says to it.
func (l *life) hand(in agent.Input) <-chan error {
	taken := make(chan error, 1)
	l.agent.Hand(in, func(err error) { taken <- err })
	return taken
}

// answer decides a card as the hub does.
func (l *life) answer(card agent.Card, a agent.Answer) error {
	l.t.Helper()
	l.disk.mu.Lock()
	delete(l.disk.cards, card.ID)
	l.disk.mu.Unlock()
	taken := make(chan error, 1)
	l.agent.Answer(card, a, func(err error) { taken <- err })
	return receive(l.t, taken, "the answer to be taken")
}

// eventually waits until what was said to the device fits.
func (l *life) eventually(what string, is func(events []agent.Event) bool) {
	l.t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		events, news := l.live, l.news
		l.mu.Unlock()
		if is(events) {
			return
		}
		select {
		case <-news:
		case <-l.over:
			l.t.Fatalf("the server ended before %s", what)
		case <-deadline:
			l.t.Fatalf("waited in vain for %s; there came %+v\nlog: %s", what, events, l.log)
		}
	}
}

func seen[T agent.Event](events []agent.Event, match func(T) bool) bool {
	return slices.ContainsFunc(events, func(e agent.Event) bool { v, ok := e.(T); return ok && match(v) })
}

// done waits for the end of a turn.
func (l *life) done(n int64) agent.Done {
	l.t.Helper()
	var d agent.Done
	l.eventually(fmt.Sprint("the end of turn ", n), func(events []agent.Event) bool {
		return seen(events, func(e agent.Done) bool { d = e; return e.N == n })
	})
	return d
}

// step waits for a step of a message.
func (l *life) steps(text string) {
	l.t.Helper()
	l.eventually(fmt.Sprintf("the step %q", text), func(events []agent.Event) bool {
		return seen(events, func(e agent.Say) bool { return !e.Final && e.Text == text })
	})
}

// asks waits for n cards and returns them.
func (l *life) asks(n int) (cards []agent.Card) {
	l.t.Helper()
	l.eventually(fmt.Sprint(n, " cards"), func(events []agent.Event) bool {
		cards = nil
		for _, e := range events {
			if a, ok := e.(agent.Ask); ok {
				cards = append(cards, a.Card)
			}
		}
		return len(cards) >= n
	})
	return cards
}

// closed waits for the end of a card that the agent decided.
func (l *life) closed(card agent.Card) (c agent.CloseCard) {
	l.t.Helper()
	l.eventually("the end of a card", func(events []agent.Event) bool {
		return seen(events, func(e agent.CloseCard) bool { c = e; return e.ID == card.ID })
	})
	return c
}

// finals are the stored messages of a turn.
func (d *disk) finals(n int64) (texts []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if s, ok := e.(agent.Say); ok && s.Final && s.N == n {
			texts = append(texts, s.Text)
		}
	}
	return texts
}

func (d *disk) ends(n int64) (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if done, ok := e.(agent.Done); ok && done.N == n {
			count++
		}
	}
	return count
}

func wantFinals(t testing.TB, d *disk, n int64, want ...string) {
	t.Helper()
	if got := d.finals(n); !slices.Equal(got, want) {
		t.Errorf("turn %d said %q, want %q", n, got, want)
	}
	if e := d.ends(n); e != 1 {
		t.Errorf("turn %d ended %d times", n, e)
	}
}

// each runs a test with what both versions offer.
func each(t *testing.T, f func(t *testing.T, version string)) {
	t.Parallel()
	for _, v := range []string{older, now} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			f(t, v)
		})
	}
}
