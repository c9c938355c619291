package hub

import (
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
		Resume: true, Accepted: true, Stop: st.Stop, Delta: st.Edit, Tool: st.Tool, MediaURL: st.Files, Push: h.Push != nil, Shared: s.shares(), Call: h.calls(),
		MaxMediaBytes: h.MaxMedia, MaxFrameBytes: frame.MaxFrame, ChunkBytes: frame.ChunkBytes, MaxParts: frame.MaxParts,
		MinChunkBytes: frame.MinChunk, MaxUploads: frame.MaxUploads, PromptSeconds: int(h.PromptLife.Seconds()),
	}
}

// calls are the methods that there are.
func (h *Hub) calls() []string {
	if h.Push == nil {
		return []string{callDevices}
	}
	return []string{callDevices, callPushKey, callPushRegister, callPushUnregister, callPushTest}
}

// statusChanged: the agent may be able to do other things than before.
type statusChanged struct{}

func (statusChanged) apply(s *session, b *batch) {
	b.then(func() {
		if s.dev == nil {
			return
		}
		st := s.hub.Agent.Status(s.dev.Talks())
		changed := st
		changed.Detail = s.shown.Detail
		if s.conn != nil && changed != s.shown {
			s.conn.send(&frame.CapabilitiesChanged{Capabilities: s.capabilities(st), Agent: agentState(st)})
		}
		s.shown = st
		if st.Online {
			s.next()
			s.admit()
			s.tellDecisions()
		}
	})
}
