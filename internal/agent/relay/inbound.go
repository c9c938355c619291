package relay

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/quota"
)

const (
	// maxFrame is what an event may measure: the gateway's WebSocket library
	// closes the connection at 1 MiB a message (its default, read in its source).
	maxFrame = 1<<20 - 1024
	// mediaLife is how long a file may be fetched by the gateway, which does so
	// at once or when it comes back: long, for a clock of ours that was wrong
	// and is set right by hours must not take the file away.
	mediaLife = 24 * time.Hour
)

var (
	errTooLong  = errors.New("it is too long for the gateway, send it as a file or in parts")
	errNoFiles  = errors.New("its gateway cannot take files, being an older version on another machine")
	errFileGone = errors.New("the file is no longer on the server, send it again")
	errNoRoom   = errors.New("the server has no room for the copy of the file that this gateway needs, send it again later")
)

// hand is agent.Agent.Hand.
func (g *gateway) hand(in agent.Input, taken func(error)) {
	g.do(func() {
		tell := func(err error) { g.later(func() { taken(err) }) }
		c := g.convo(in.Device)
		switch {
		case c == nil || g.retired:
			tell(agent.ErrAway)
			return
		case in.Handed:
			g.adopt(c, in)
			tell(nil)
			return
		case isStop(&in) && c.turn != nil:
			tell(nil)
			g.stopTurn(c)
			g.post(in.Device, agent.Done{N: in.N})
			return
		case !g.online():
			tell(agent.ErrAway)
			return
		}
		if c.turn == nil && slices.Contains(c.marked, g.mid(in.N)) {
			// An earlier life of ours sent it and could not note that, on a full disk for example. A gateway that has it drops
			// it, or, when it was started anew since, does it twice.
			g.adopt(c, in)
			tell(nil)
			return
		}
		if c.turn != nil && !g.mayEnter(c, &in) {
			// The hub has given the turn up, or it would not hand this over.
			g.endTurn(c, true)
		}
		if _, err := g.pick(c); c.turn == nil && err != nil {
			tell(err)
			return
		}
		c.op = g.a.now()
		c.who = person{device: in.DeviceName, user: in.User, userName: in.UserName}
		ev := g.event(c, in.Text, "text", g.mid(in.N))
		if in.ReplyTo != "" {
			ev.ReplyToID = in.ReplyTo
			if in.Quote != "" {
				own := ownID.MatchString(in.ReplyTo)
				author := ev.Source.UserName
				if own {
					author = "Hermes"
				}
				ev.ReplyTo = &quoted{Text: in.Quote, Author: author, IsOwn: own}
				if g.version == Older && c.turn == nil {
					ev.Text = withQuote(ev.Text, ev.ReplyTo)
				}
			}
		}
		if in.Kind == agent.Text || in.File == nil {
			g.send(c, in, ev, tell)
			return
		}
		g.handFile(c, in, ev, tell)
	})
}

// ownID is the form of the ids that this agent gave its messages.
var ownID = regexp.MustCompile(`^[0-9a-f]{18}$`)

// mid is the message_id of an input: the same whenever it is sent, so that a
// newer gateway drops repeats (relay-facts §1).
func (g *gateway) mid(n int64) string { return fmt.Sprintf("m%d-%s", n, g.a.opt.Instance) }

func (g *gateway) event(c *convo, text, kind, mid string) event {
	name := c.who.device
	if name == "" {
		name = c.device
	}
	user := c.who.user
	if user == "" {
		user = c.device
	}
	userName := c.who.userName
	if userName == "" {
		userName = name
	}
	return event{Text: text, MessageType: kind, MessageID: mid, Source: source{
		Platform: g.platform(), ChatID: c.device, ChatType: "dm", ChatName: name, UserID: user, UserName: userName,
		Profile: g.speaksTo(c), Verified: true,
	}}
}

// handFile adds the file of an input to its event. It becomes a copy on this
// machine under its own name, or an address of ours that only this gateway may
// read; never anything that the device said.
func (g *gateway) handFile(c *convo, in agent.Input, ev event, tell func(error)) {
	f := in.File
	kind := f.Kind
	if in.Kind == agent.Voice {
		kind = "voice"
	}
	switch kind {
	case "image", "animation":
		ev.MessageType = "photo"
	case "voice", "audio", "video":
		ev.MessageType = kind
	default:
		ev.MessageType = "document"
	}
	add := func(url string) {
		ev.MediaURLs = []string{url}
		ev.Media = []wireMedia{{URL: url, Mime: f.Mime, Filename: f.Name}}
		g.send(c, in, ev, tell)
	}
	address := func() { add(g.mediaBase() + g.a.fileDown(g.config().ID, f)) }
	by, l := g.filesBy(), g.link
	switch by {
	case ByNothing:
		tell(errNoFiles)
		return
	case ByAddress:
		address()
		return
	}
	ok := g.a.goDo(func(context.Context) {
		sees := func(string) bool { return true }
		if by == ByEither {
			near, found := l.near()
			if !found {
				g.do(func() { g.ifOnline(address, tell) })
				return
			}
			sees = near.Sees
		}
		path, err := g.a.files.LocalCopy(f.Hash, f.Name)
		whole := err == nil && sees(path)
		g.do(func() {
			switch {
			case whole:
				g.ifOnline(func() { add(path) }, tell)
			case by == ByEither:
				g.log.Info("relay: the gateway fetches a file, it cannot be handed a copy", "input", in.N, "err", err)
				g.ifOnline(address, tell)
			case quota.Why(err) != "":
				g.log.Error("relay: no room for a copy of a file for the gateway", "input", in.N, "err", err)
				tell(errNoRoom)
			default:
				g.log.Error("relay: no copy of a file for the gateway", "input", in.N, "err", err)
				tell(errFileGone)
			}
		})
	})
	if !ok {
		tell(agent.ErrAway)
	}
}

// ifOnline does what needs the connection, which may have ended meanwhile.
func (g *gateway) ifOnline(do func(), tell func(error)) {
	if !g.online() {
		tell(agent.ErrAway)
		return
	}
	do()
}

// send queues an event. It begins a turn, unless one runs: then it is an input
// that was admitted, whose part is done when the gateway has it.
func (g *gateway) send(c *convo, in agent.Input, ev event, tell func(error)) {
	it := &item{id: ev.MessageID, device: c.device, given: agent.Given{N: in.N}}
	it.frame = encode(inboundFrame{Type: "inbound", BufferID: it.id, Event: ev})
	if len(it.frame) > maxFrame {
		tell(errTooLong)
		return
	}
	home := func() {
		if setsHome(&in) {
			g.post(c.device, agent.Home{})
		}
	}
	if c.turn != nil && g.mayJoin(c, &in) {
		g.join(c, in, it, tell)
		return
	}
	if c.turn != nil {
		c.question, c.plainLast = false, time.Time{}
		c.turn.sign = g.a.now()
		it.acked = func() {
			tell(nil)
			home()
			g.post(c.device, agent.Done{N: in.N})
		}
		it.refused = tell
		it.lost = func() {
			it.acked()
			g.tellDoubt(c, &turn{n: in.N, inputID: in.ID}, messageInDoubt)
		}
		g.enqueue(it)
		return
	}
	t := &turn{n: in.N, inputID: in.ID, mid: ev.MessageID, profile: ev.Source.Profile, home: setsHome(&in)}
	g.begin(c, t)
	it.acked = func() {
		t.acked = true
		t.began, t.sign = g.a.now(), g.a.now()
		tell(nil)
		home()
	}
	it.refused = func(err error) {
		if c.turn == t {
			c.turn = nil
		}
		tell(err)
	}
	it.lost = func() {
		t.acked, t.doubt, t.sign = true, messageInDoubt, g.a.now()
		tell(nil)
	}
	it.command = in.Kind == agent.Text && command(in.Text) != ""
	if g.version != Older && (g.a.now().Sub(c.stray) < strayTyping || g.mayResume(c)) || g.holds(c, it) {
		c.parked = it
		if g.lagging(c) {
			g.ping()
		}
		return
	}
	g.enqueue(it)
}

// adopt takes an input that was acknowledged in an earlier life of this process.
// It is not sent again (relay-facts §10): its turn goes on until its end is seen
// or nothing is heard of it.
func (g *gateway) adopt(c *convo, in agent.Input) {
	if c.turn != nil && c.turn.n == in.N {
		return
	}
	if c.turn != nil {
		g.endTurn(c, true)
	}
	c.who = person{device: in.DeviceName, user: in.User, userName: in.UserName}
	profile, _ := g.pick(c) // most likely still the one that it began with
	t := &turn{n: in.N, inputID: in.ID, mid: g.mid(in.N), profile: profile, home: setsHome(&in), acked: true, handed: true, texts: in.Texts, content: true}
	if !g.version.dropsRepeats() && in.Texts == 0 {
		t.doubt = messageInDoubt
	}
	g.begin(c, t)
	if slices.Contains(c.marked, t.mid) { // it ended before we knew of it again
		t.endAt = g.a.now().Add(lingerMark)
	}
	for _, card := range in.Cards {
		if st, err := parseCardState(card.State); err == nil && st.Gateway == g.config().ID && !g.stale(st.Nonce) {
			c.cards[card.ID] = st.Nonce
			t.waitsFor(card.ID, st.Kind)
		}
	}
}

// FilesBy says how files of devices reach a gateway.
type FilesBy string

// The ways.
const (
	ByAddress FilesBy = "address" // of ours, signed, that the gateway fetches
	ByCopy    FilesBy = "copy"    // a path on this machine
	ByEither  FilesBy = "either"  // a path where the gateway is known to see the copy, else an address
	ByNothing FilesBy = ""        // an older gateway on another machine takes none
)

// filesBy says how files reach the gateway (relay-facts §5). An older one takes copies only. A newer one gets them where its owner says
// that it is on this machine, or where it is seen to be: what merely dials from here may be a container with a disk of its own.
func (g *gateway) filesBy() FilesBy {
	told := g.config().Local
	switch {
	case !g.local() && g.version == Older:
		return ByNothing
	case !g.local():
		return ByAddress
	case g.version != Older && told == nil:
		return ByEither
	}
	return ByCopy
}

// local reports whether the gateway can read our files.
func (g *gateway) local() bool {
	if l := g.config().Local; l != nil {
		return *l
	}
	return g.link != nil && g.link.local
}

func (g *gateway) mediaBase() string {
	if u := g.config().PublicURL; u != "" {
		return strings.TrimRight(u, "/")
	}
	if g.link != nil {
		return g.link.base
	}
	return ""
}
