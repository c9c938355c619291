package hub

import "fmt"

// Sessions is the number of sessions in memory.
func (h *Hub) Sessions() int {
	n := 0
	h.each(func(*session) { n++ })
	return n
}

func (h *Hub) DebugState() (out []string) {
	h.each(func(s *session) {
		s.mu.Lock()
		out = append(out, fmt.Sprintf("%s run=%v mail=%d conn=%v turn=%v waiting=%d aside=%d streams=%d cards=%d pending=%d timers=%v behind=%v", s.id, s.running, len(s.mail), s.conn != nil, s.turn != nil, len(s.waiting), len(s.aside), len(s.streams), len(s.cards), s.pending, s.timers.any(), s.behind))
		s.mu.Unlock()
	})
	return
}
