package hub

// Sessions is the number of sessions in memory.
func (h *Hub) Sessions() int {
	n := 0
	h.each(func(*session) { n++ })
	return n
}
