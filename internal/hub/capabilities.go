package hub

import (
	"slices"
	"time"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
)

func agentState(st agent.Status) frame.AgentState {
	if st.Online {
		return frame.Online
	}
	return frame.Away
}

// capabilities says what the device can do with the agent as it is now.
func (s *session) capabilities(st agent.Status) frame.Capabilities {
	h, may := s.hub, s.dev.Rights
	var kinds []string
	if may.Write && st.Images && !st.FilesIn && !st.AnyFile {
		kinds = []string{"image"}
	}
	var at time.Time
	in := 0
	if wait := s.patient(time.Now()); wait > 0 && may.Answer {
		at, in = time.Now().Add(wait).UTC().Add(time.Second-1).Truncate(time.Second), seconds(wait)
	}
	return frame.Capabilities{
		Text: may.Write, Audio: may.Write && st.FilesIn, Media: may.Write && (st.FilesIn || st.AnyFile || st.Images), MediaKinds: kinds,
		Prompt:    may.Answer && in == 0 && (st.Prompt || !st.Online), // an answer is taken while the agent is away, too
		AnswersAt: at, AnswersIn: in,
		Edit: st.Edit, Typing: st.Typing, Avatar: true, Deliver: may.Write,
		Resume: true, Accepted: true, Stop: may.Write && st.Stop, Steer: may.Write && st.Steer, Delta: st.Edit, Tool: st.Tool, MediaURL: st.Files, Push: h.Push != nil, Shared: s.shares(), Call: s.offered,
		MaxMediaBytes: h.MaxMedia, MaxFrameBytes: frame.MaxFrame, ChunkBytes: frame.ChunkBytes, MaxParts: frame.MaxParts,
		MinChunkBytes: frame.MinChunk, MaxUploads: frame.MaxUploads, PromptSeconds: int(h.PromptLife.Seconds()),
	}
}

// look takes in what the agent can do for the device now. It reports whether the device was told something else.
func (s *session) look() bool {
	st, calls := s.hub.Agent.Status(s.dev.Talks()), s.calls()
	before := s.shown
	before.Detail = st.Detail // is for the owner
	changed := st != before || !slices.Equal(calls, s.offered)
	s.shown, s.offered = st, calls
	return changed
}

// tellCapabilities tells the device, where it is connected, what it can do now.
func (s *session) tellCapabilities() {
	if s.conn != nil {
		s.conn.send(&frame.CapabilitiesChanged{Capabilities: s.capabilities(s.shown), Agent: agentState(s.shown)})
	}
}

// statusChanged: the agent may be able to do other things than before.
type statusChanged struct{}

func (statusChanged) apply(s *session, b *batch) {
	b.then(func() {
		if s.dev == nil {
			return
		}
		if s.look() {
			s.tellCapabilities()
		}
		s.next() // also where it went away: it may have to be woken
		if s.shown.Online {
			s.admit()
			s.tellDecisions()
		}
	})
}
