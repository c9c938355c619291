package hub

import (
	"slices"

	"hermes-mobile/frame"
	"hermes-mobile/internal/chat"
)

func agentState(st chat.Status) frame.AgentState {
	if st.Online {
		return frame.Online
	}
	return frame.Away
}

// capabilities says what the device can do with the agent as it is now.
func (s *session) capabilities(st chat.Status) frame.Capabilities {
	h := s.hub
	var kinds []string
	if st.Images && !st.FilesIn {
		kinds = []string{"image"}
	}
	return frame.Capabilities{
		Text: true, Audio: st.FilesIn, Media: st.FilesIn || st.Images, MediaKinds: kinds, Prompt: st.Prompt, Edit: st.Edit, Typing: st.Typing, Avatar: true, Deliver: true,
		Resume: true, Accepted: true, Stop: st.Stop, Delta: st.Edit, Tool: st.Tool, MediaURL: st.Files, Push: h.Push != nil, Shared: s.shares(), Call: s.offered,
		MaxMediaBytes: h.MaxMedia, MaxFrameBytes: frame.MaxFrame, ChunkBytes: frame.ChunkBytes, MaxParts: frame.MaxParts,
		MinChunkBytes: frame.MinChunk, MaxUploads: frame.MaxUploads, PromptSeconds: int(h.PromptLife.Seconds()),
	}
}

// look takes in what the agent can do for the device now. It reports whether the device was told something else.
func (s *session) look() bool {
	st, calls := s.hub.Agent.Status(s.dev.Talks()), s.hub.calls(s.dev.Talks())
	before := s.shown
	before.Detail = st.Detail // is for the owner
	changed := st != before || !slices.Equal(calls, s.offered)
	s.shown, s.offered = st, calls
	return changed
}

// statusChanged: the agent may be able to do other things than before.
type statusChanged struct{}

func (statusChanged) apply(s *session, b *batch) {
	b.then(func() {
		if s.dev == nil {
			return
		}
		if s.look() && s.conn != nil {
			s.conn.send(&frame.CapabilitiesChanged{Capabilities: s.capabilities(s.shown), Agent: agentState(s.shown)})
		}
		if s.shown.Online {
			s.next()
			s.admit()
			s.tellDecisions()
		}
	})
}
