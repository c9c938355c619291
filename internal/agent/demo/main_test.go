package demo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/leak"
)

func TestMain(m *testing.M) { leak.Main(m) }

const patience = 10 * time.Second

// host is the hub's end of the contract: it records what the agent says.
type host struct {
	agent  *Agent
	events chan agent.Event
	moved  chan agent.Status // the agent's status at each Changed
}

func (h *host) Post(_ string, done func(error), events ...agent.Event) {
	for _, e := range events {
		h.events <- e
	}
	if done != nil {
		done(nil)
	}
}

func (h *host) Changed() { h.moved <- h.agent.Status("d") }

func (h *host) OpenCards(context.Context, string) ([]agent.Card, error) { return nil, nil }

// files keeps files in memory.
type files struct {
	mu   sync.Mutex
	data map[string][]byte
}

func (f *files) Put(r io.Reader, max int64) (string, int64, error) {
	b, err := io.ReadAll(io.LimitReader(r, max+1))
	if err != nil {
		return "", 0, err
	}
	if int64(len(b)) > max {
		return "", 0, fmt.Errorf("more than %d bytes", max)
	}
	sum := sha256.Sum256(b)
	hash := hex.EncodeToString(sum[:])
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data[hash] = b
	return hash, int64(len(b)), nil
}

func (f *files) get(hash string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.data[hash]
}

type seeker struct{ *bytes.Reader }

func (seeker) Close() error { return nil }

func (f *files) Open(hash string) (io.ReadSeekCloser, error) {
	if b := f.get(hash); b != nil {
		return seeker{bytes.NewReader(b)}, nil
	}
	return nil, fmt.Errorf("no file %s", hash)
}

func (f *files) LocalCopy(string, string) (string, error) { return "", fmt.Errorf("not here") }

// stage is a demo agent with a host.
type stage struct {
	t     *testing.T
	agent *Agent
	host  *host
	files *files
	n     int64
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, files: &files{data: map[string][]byte{}}}
	s.agent = New(s.files, slog.New(slog.DiscardHandler))
	s.host = &host{agent: s.agent, events: make(chan agent.Event, 1<<17), moved: make(chan agent.Status, 100)}
	if s.agent.Status("d").Online {
		t.Error("online before it runs")
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.agent.Run(ctx, s.host) }()
	t.Cleanup(func() {
		end()
		if err := receive(t, done, "Run to return"); err != nil {
			t.Error(err)
		}
	})
	if st := receive(t, s.host.moved, "the agent to be online"); !st.Online {
		t.Fatal("not online")
	}
	return s
}

func receive[T any](t *testing.T, c <-chan T, what string) T {
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

// hand gives the agent an input, which it must take.
func (s *stage) hand(in agent.Input) agent.Input {
	s.t.Helper()
	if in.N == 0 {
		s.n++
		in.N = s.n
	}
	in.Device = "d"
	if in.ID == "" {
		in.ID = fmt.Sprint("m", in.N)
	}
	taken := make(chan error, 1)
	s.agent.Hand(in, func(err error) { taken <- err })
	if err := receive(s.t, taken, "the input to be taken"); err != nil {
		s.t.Fatalf("not taken: %v", err)
	}
	return in
}

func (s *stage) text(text string) agent.Input { s.t.Helper(); return s.hand(agent.Input{Text: text}) }

func (s *stage) event() agent.Event {
	s.t.Helper()
	return receive(s.t, s.host.events, "the agent to say something")
}

// next is the next event, which must have this type.
func next[T agent.Event](s *stage) T {
	s.t.Helper()
	e := s.event()
	v, is := e.(T)
	if !is {
		s.t.Fatalf("the agent says %T %+v, want %T", e, e, v)
	}
	return v
}

// turn collects all of an input's turn.
func (s *stage) turn(in agent.Input) (list []agent.Event) {
	s.t.Helper()
	for {
		e := s.event()
		if d, is := e.(agent.Done); is {
			if d.N != in.N {
				s.t.Fatalf("done with %d, the turn is %d", d.N, in.N)
			}
			return list
		}
		list = append(list, e)
	}
}

// says returns the steps and the finals of a turn, checking what is the same for all.
func (s *stage) says(in agent.Input) (steps []string, finals []agent.Say) {
	s.t.Helper()
	id := ""
	for _, e := range s.turn(in) {
		say, is := e.(agent.Say)
		if !is {
			s.t.Fatalf("the agent says %T %+v", e, e)
		}
		if say.ID == "" || say.N != in.N || say.ReplyTo != in.ID {
			s.t.Fatalf("%+v does not belong to the turn of %+v", say, in)
		}
		if id != "" && say.ID != id {
			s.t.Fatalf("another message before the end of the first: %+v", say)
		}
		if say.Final {
			id, finals = "", append(finals, say)
		} else {
			id, steps = say.ID, append(steps, say.Text)
		}
	}
	if id != "" {
		s.t.Fatal("a message without an end")
	}
	return steps, finals
}

// final is the only text of a turn that is not streamed.
func (s *stage) final(in agent.Input) string {
	s.t.Helper()
	steps, finals := s.says(in)
	if len(steps) != 0 || len(finals) != 1 || finals[0].Interrupted {
		s.t.Fatalf("steps %q, finals %+v", steps, finals)
	}
	return finals[0].Text
}

// silent fails when the agent said anything more.
func (s *stage) silent() {
	s.t.Helper()
	select {
	case e := <-s.host.events:
		s.t.Fatalf("the agent says %T %+v, too", e, e)
	default:
	}
}
