package store

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is what a store must hold, kept in maps.
type model struct {
	now   time.Time
	devs  []*modelDevice
	sent  map[string]modelDelivery // by sender and id
	cards map[string]*modelCard
	bill  map[string]time.Time // one-time codes
	used  map[string]string    // and the devices that used them
}

type modelDevice struct {
	n      int64
	name   string
	inbox  []*modelMessage
	outbox map[int64]modelEntry
	newest int64
	floor  int64
}

type modelMessage struct {
	n     int64
	id    string
	at    time.Time
	state State
	texts int
	hash  string
}

type modelEntry struct {
	at   time.Time
	hash string
}

type modelDelivery struct {
	at     time.Time
	queued bool
}

type modelCard struct {
	dev     int64
	seq     int64
	expires time.Time
	state   CardState
	option  string
}

func (d *modelDevice) find(id string) *modelMessage {
	for _, m := range d.inbox {
		if m.id == id && id != "" {
			return m
		}
	}
	return nil
}

func (d *modelDevice) forget(seq int64) {
	maps.DeleteFunc(d.outbox, func(s int64, _ modelEntry) bool { return s <= seq })
	d.floor = max(d.floor, seq)
}

// sweep drops what is past its time: everything of an outbox up to the newest entry that is too old
// or too many, ids and deliveries of more than a day, and cards that the agent knows of. Nothing
// that is unfinished goes, however old it is.
func (m *model) sweep(keep Retention) {
	for _, d := range m.devs {
		seqs := slices.Sorted(maps.Keys(d.outbox))
		drop := int64(0)
		for i, seq := range seqs {
			if d.outbox[seq].at.Before(m.now.Add(-keep.Outbox)) || i < len(seqs)-keep.Entries {
				drop = seq
			}
		}
		if drop > 0 {
			d.forget(drop)
		}
		d.inbox = slices.DeleteFunc(d.inbox, func(e *modelMessage) bool { return e.state == Done && e.at.Before(m.now.Add(-keep.IDs)) })
	}
	maps.DeleteFunc(m.sent, func(_ string, e modelDelivery) bool { return e.at.Before(m.now.Add(-keep.IDs)) })
	maps.DeleteFunc(m.cards, func(_ string, c *modelCard) bool {
		return c.state == CardSettled && c.expires.Before(m.now.Add(-keep.IDs))
	})
	maps.DeleteFunc(m.bill, func(_ string, at time.Time) bool { return at.Before(m.now) })
	maps.DeleteFunc(m.used, func(code, _ string) bool { _, there := m.bill[code]; return !there })
}

func (m *model) check(t *rapid.T, s *Store) {
	hashes, work := map[string]bool{}, []string{}
	for _, d := range m.devs {
		busy := false
		var want []string
		for _, e := range d.inbox {
			if e.state != Done {
				want = append(want, fmt.Sprint(e.n, e.id, e.state, e.texts))
				busy = true
				if e.hash != "" {
					hashes[e.hash] = true
				}
			}
			if e.id != "" && !value[bool](t)(s.Seen(ctx, d.n, e.id)) {
				t.Fatalf("id %s of %s is forgotten", e.id, d.name)
			}
		}
		for _, id := range ids {
			if value[bool](t)(s.Seen(ctx, d.n, id)) != (d.find(id) != nil) {
				t.Fatalf("id %s of %s: known %v, want the opposite", id, d.name, d.find(id) == nil)
			}
		}
		var got []string
		for _, e := range value[[]Entry](t)(s.Inbox(ctx, d.n)) {
			got = append(got, fmt.Sprint(e.N, e.ID, e.State, e.Texts))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("inbox of %s %v, want %v", d.name, got, want)
		}
		if got, want := seqs(t, s, d.n), slices.Sorted(maps.Keys(d.outbox)); !slices.Equal(got, want) {
			t.Fatalf("outbox of %s %v, want %v", d.name, got, want)
		}
		for _, e := range d.outbox {
			if e.hash != "" {
				hashes[e.hash] = true
			}
		}
		row := value[*Device](t)(s.Device(ctx, d.name))
		if row.Floor != d.floor {
			t.Fatalf("floor of %s %d, want %d", d.name, row.Floor, d.floor)
		}
		var cards []string
		for _, id := range slices.SortedFunc(maps.Keys(m.cards), func(a, b string) int { return int(m.cards[a].seq - m.cards[b].seq) }) {
			if c := m.cards[id]; c.dev == d.n && c.state != CardSettled {
				cards = append(cards, fmt.Sprint(id, c.state, c.option))
				busy = true
			}
		}
		var gotCards []string
		for _, c := range value[[]Card](t)(s.Cards(ctx, d.n)) {
			gotCards = append(gotCards, fmt.Sprint(c.ID, c.State, c.OptionID))
		}
		if !slices.Equal(gotCards, cards) {
			t.Fatalf("cards of %s %v, want %v", d.name, gotCards, cards)
		}
		if busy {
			work = append(work, d.name)
		}
	}
	for id := range m.cards {
		if _, found, err := s.Card(ctx, id); err != nil || !found {
			t.Fatalf("card %s is gone (%v)", id, err)
		}
	}
	if got := value[map[string]bool](t)(s.Hashes(ctx)); !maps.Equal(got, hashes) {
		t.Fatalf("hashes in use %v, want %v", got, hashes)
	}
	if got := value[[]string](t)(s.Work(ctx)); !slices.Equal(got, work) {
		t.Fatalf("devices with work %v, want %v", got, work)
	}
	for _, id := range ids {
		queued, known, err := s.Deliveries().Known(ctx, "sender", id)
		if want, have := m.sent[id]; err != nil || known != have || queued != want.queued {
			t.Fatalf("delivery %s: known %v queued %v (%v), want %v %v", id, known, queued, err, have, want.queued)
		}
		for _, dev := range []string{"tel-1", "tel-2"} {
			i, err := s.PairingCodes().Valid(ctx, id, dev, m.now)
			owner := m.used[id]
			if want := m.bill[id].After(m.now) && (owner == "" || owner == dev); err != nil || (i != nil) != want || want && i.Device != owner {
				t.Fatalf("code %s of %q: %+v for %s (%v)", id, owner, i, dev, err)
			}
		}
	}
}

var ids = []string{"a", "b", "c", "d"}

func TestSweepAgainstModel(t *testing.T) {
	keep := Retention{IDs: 24 * time.Hour, Outbox: 7 * 24 * time.Hour, Entries: 5}
	rapid.Check(t, func(t *rapid.T) {
		dir := value[string](t)(os.MkdirTemp("", "sweep"))
		defer os.RemoveAll(dir)
		s := value[*Store](t)(Open(ctx, dir))
		defer func() { ok(t, s.Close()) }()
		m := &model{now: t0, sent: map[string]modelDelivery{}, cards: map[string]*modelCard{}, bill: map[string]time.Time{}, used: map[string]string{}}
		for _, name := range []string{"d1", "d2"} {
			m.devs = append(m.devs, &modelDevice{n: device(t, s, name), name: name, outbox: map[int64]modelEntry{}})
		}
		dev := rapid.SampledFrom(m.devs)
		id := rapid.SampledFrom(ids)
		hash := rapid.SampledFrom([]string{"", "h1", "h2", "h3"})
		pick := func(t *rapid.T, d *modelDevice) *modelMessage {
			if len(d.inbox) == 0 {
				t.Skip("nothing was accepted")
			}
			return rapid.SampledFrom(d.inbox).Draw(t, "message")
		}
		t.Repeat(map[string]func(*rapid.T){
			"accept": func(t *rapid.T) {
				d, e := dev.Draw(t, "device"), &modelMessage{at: m.now}
				e.id, e.hash = rapid.SampledFrom(append([]string{""}, ids...)).Draw(t, "id"), hash.Draw(t, "hash")
				e.state = rapid.SampledFrom([]State{Waiting, Waiting, Done}).Draw(t, "state")
				var dup bool
				do(t, s, func(tx *Tx) (err error) {
					e.n, dup, err = tx.Accept(d.n, e.id, e.state, []byte("{}"), e.hash, m.now)
					return err
				})
				if dup != (d.find(e.id) != nil) {
					t.Fatalf("id %q: duplicate %v", e.id, dup)
				}
				if !dup {
					d.inbox = append(d.inbox, e)
				}
			},
			"hand": func(t *rapid.T) {
				e := pick(t, dev.Draw(t, "device"))
				do(t, s, func(tx *Tx) error { return tx.HandedOver(e.n) })
				e.state = max(e.state, Handed)
			},
			"say": func(t *rapid.T) {
				e := pick(t, dev.Draw(t, "device"))
				do(t, s, func(tx *Tx) error { return tx.Said(e.n) })
				e.texts++
			},
			"done": func(t *rapid.T) {
				e := pick(t, dev.Draw(t, "device"))
				do(t, s, func(tx *Tx) error { return tx.TurnDone(e.n) })
				e.state = Done
			},
			"append": func(t *rapid.T) {
				d, h := dev.Draw(t, "device"), hash.Draw(t, "hash")
				d.newest += int64(rapid.IntRange(1, 3).Draw(t, "skip"))
				do(t, s, func(tx *Tx) error {
					return tx.Append(d.n, d.newest, KindMessage, fmt.Append(nil, d.newest), h, m.now)
				})
				d.outbox[d.newest] = modelEntry{m.now, h}
			},
			"forget": func(t *rapid.T) {
				d := dev.Draw(t, "device")
				seq := int64(rapid.IntRange(0, int(d.newest)+2).Draw(t, "seq"))
				do(t, s, func(tx *Tx) error { return tx.Forget(d.n, seq) })
				d.forget(seq)
				d.newest = max(d.newest, seq) // numbers below the floor are not given again
			},
			"deliver": func(t *rapid.T) {
				key, queued := id.Draw(t, "id"), rapid.Bool().Draw(t, "queued")
				var dup bool
				do(t, s, func(tx *Tx) (err error) {
					dup, err = tx.Deliveries().Add(Delivery{Sender: "sender", ID: key, Queued: queued, Source: "deliver"}, 1, 1, m.now)
					return err
				})
				old, known := m.sent[key]
				if !known {
					old = modelDelivery{m.now, queued}
					m.sent[key] = old
				}
				first, found, err := s.Deliveries().Known(ctx, "sender", key)
				if dup != known || first != old.queued || !found || err != nil {
					t.Fatalf("delivery %s: duplicate %v, first answer %v", key, dup, first)
				}
			},
			"card": func(t *rapid.T) {
				d := dev.Draw(t, "device")
				d.newest++
				c := &modelCard{dev: d.n, seq: d.newest, expires: m.now.Add(5 * time.Minute)}
				key := fmt.Sprint(d.name, "-", d.newest)
				do(t, s, func(tx *Tx) error {
					return tx.AddCard(Card{ID: key, Device: d.n, Seq: c.seq, Body: []byte("{}"), Expires: c.expires})
				})
				m.cards[key] = c
			},
			"decide": func(t *rapid.T) {
				key, c := pickCard(t, m)
				option := rapid.SampledFrom([]string{"once", "deny"}).Draw(t, "option")
				var first bool
				do(t, s, func(tx *Tx) (err error) { first, err = tx.Decide(key, option, "", false, ""); return err })
				if first != (c.state == CardOpen) {
					t.Fatalf("decided first %v in state %v", first, c.state)
				}
				if first {
					c.state, c.option = CardDecided, option
				}
			},
			"settle": func(t *rapid.T) {
				key, c := pickCard(t, m)
				do(t, s, func(tx *Tx) error { return tx.Settle(key) })
				if c.state == CardDecided {
					c.state = CardSettled
				}
			},
			"invite": func(t *rapid.T) {
				key := id.Draw(t, "code")
				at := m.now.Add(10 * time.Minute)
				if _, known := m.bill[key]; known {
					t.Skip("no code is made twice")
				}
				do(t, s, func(tx *Tx) error { return tx.PairingCodes().Add(PairingCode{Hash: key, Expires: at}) })
				m.bill[key] = at
			},
			"redeem": func(t *rapid.T) {
				key := id.Draw(t, "code")
				dev := rapid.SampledFrom([]string{"tel-1", "tel-2"}).Draw(t, "device")
				var redeemed bool
				do(t, s, func(tx *Tx) (err error) { redeemed, err = tx.PairingCodes().Redeem(key, dev, "new", m.now); return err })
				if want := m.bill[key].After(m.now) && (m.used[key] == "" || m.used[key] == dev); redeemed != want {
					t.Fatalf("code %s of %q redeemed %v by %s", key, m.used[key], redeemed, dev)
				}
				if redeemed {
					m.used[key] = dev
				}
			},
			"wait": func(t *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.SampledFrom([]int{1, 60, 23 * 60, 25 * 60, 8 * 24 * 60}).Draw(t, "minutes")) * time.Minute)
			},
			"sweep": func(t *rapid.T) {
				ok(t, s.Sweep(ctx, keep, m.now))
				m.sweep(keep)
			},
			"reopen": func(t *rapid.T) {
				ok(t, s.Close())
				s = value[*Store](t)(Open(ctx, dir))
			},
			"": func(t *rapid.T) { m.check(t, s) },
		})
	})
}

func pickCard(t *rapid.T, m *model) (string, *modelCard) {
	if len(m.cards) == 0 {
		t.Skip("no card was shown")
	}
	key := rapid.SampledFrom(slices.Sorted(maps.Keys(m.cards))).Draw(t, "card")
	return key, m.cards[key]
}
