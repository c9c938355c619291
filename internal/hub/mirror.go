package hub

import (
	"slices"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/store"
)

// What is live only in a shared conversation: the lead passes it on to members that are connected, and tells one that
// connects how things stand.

// pass gives an event to the members whose sessions are in memory.
func (s *session) pass(e event) {
	for _, id := range s.members {
		if m := s.hub.inMemory(id); m != nil {
			m.post(e)
		}
	}
}

// reflects reports whether the device shows what happens in the conversation of another now.
func (s *session) reflects() bool { return s.conn != nil && s.joined() }

// unmirror drops what is shown of a conversation of others.
func (s *session) unmirror() {
	s.streams = slices.DeleteFunc(s.streams, func(st *stream) bool { return st.mirror })
	if s.turn == nil {
		s.typing, s.avatar = false, avatarIdle
	}
	s.leadCards = nil
}

// indicated: the lead's indicators are like this now.
type indicated struct {
	avatar string
	typing bool
}

func (s *session) passIndicators() {
	if len(s.members) > 0 {
		s.pass(indicated{s.avatar, s.typing})
	}
}

func (e indicated) apply(s *session, b *batch) {
	b.then(func() {
		if !s.reflects() {
			return
		}
		if s.avatar != e.avatar {
			s.avatar = e.avatar
			s.live(&frame.Avatar{State: e.avatar})
		}
		if s.typing != e.typing {
			s.typing = e.typing
			s.live(&frame.Typing{Stop: !e.typing})
		}
	})
}

// stepped: a message of the lead's conversation has grown.
type stepped struct{ say agent.Say }

func (e stepped) apply(s *session, b *batch) {
	b.then(func() {
		if !s.reflects() {
			return
		}
		st := s.stream(e.say.ID)
		if st == nil {
			st = &stream{mirror: true}
			s.streams = append(s.streams, st)
		}
		st.say = e.say
		s.flushStreams()
	})
}

// dropStream forgets a message that has its final.
func (s *session) dropStream(id string) (st *stream) {
	for i, st := range s.streams {
		if st.say.ID == id {
			s.streams = append(s.streams[:i:i], s.streams[i+1:]...)
			return st
		}
	}
	return nil
}

// usedTool: the agent uses a tool in the lead's conversation.
type usedTool struct{ f *frame.Tool }

func (e usedTool) apply(s *session, b *batch) {
	b.then(func() {
		if s.reflects() && s.conn.tool {
			s.overtake()
			s.live(e.f)
		}
	})
}

// catchUp: a member has connected and wants to know how things stand.
type catchUp struct{ member string }

func (e catchUp) apply(s *session, b *batch) {
	b.then(func() {
		if s.dev == nil || !slices.Contains(s.members, e.member) {
			return
		}
		var open []*frame.Prompt
		for _, k := range s.cards {
			if k.row.State == store.CardOpen {
				p := k.prompt()
				p.Session = s.dev.Session()
				open = append(open, p)
			}
		}
		s.hub.post(e.member, stands{open})
		s.hub.post(e.member, indicated{s.avatar, s.typing})
		for _, st := range s.streams {
			s.hub.post(e.member, stepped{st.say})
		}
	})
}

// stands: these cards of the lead's conversation are open.
type stands struct{ open []*frame.Prompt }

func (e stands) apply(s *session, b *batch) {
	b.flush()
	if s.dev == nil || !s.reflects() || len(e.open) == 0 {
		return
	}
	rows, err := s.hub.store.OutboxCards(s.hub.ctx, s.dev.N)
	if err != nil {
		s.hub.storeFailed("look for cards", err)
		return
	}
	for _, p := range e.open {
		again := *p
		brought := false // by the replay
		for _, row := range rows {
			if shown := readPrompt(row.Body); shown != nil && shown.ID == p.ID {
				again.Seq, brought = row.Seq, row.Seq > s.resumed
			}
		}
		if !brought {
			s.leadCards = append(s.leadCards, &again)
		}
	}
	if !s.behind {
		s.showOthersCards()
	}
}

// showOthersCards shows the open cards of the lead's conversation that the backlog did not bring.
func (s *session) showOthersCards() {
	for _, p := range s.leadCards {
		p.TimeoutSeconds = left(p.ExpiresAt)
		s.conn.send(p)
	}
	s.leadCards = nil
}
