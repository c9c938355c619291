package e2e

import (
	"testing"

	"hermes-mobile/test/hermes"
)

// TestChat has many devices talk to one gateway at the same time.
func TestChat(t *testing.T) {
	both(t, func(t *testing.T, v hermes.Version) {
		w := newWorld(t, v)
		talk := map[string]func(*testing.T, *world){
			"away":      away,
			"clarify":   clarify,
			"files up":  filesUp,
			"home":      home,
			"long":      long,
			"new":       startAfresh,
			"order":     order,
			"share":     share,
			"steer":     steer,
			"stop":      stopTurn,
			"stop word": stopWord,
			"stream":    stream,
			"text":      text,
		}
		measure := map[string]func(*testing.T, *world){"busy": busy}
		if w.newer() {
			talk["approve"] = approve
			talk["card elsewhere"] = cardElsewhere
			talk["card stopped"] = cardStopped
			talk["files down"] = filesDown
		} else {
			talk["no cards"] = noCards
			talk["files as text"] = filesAsText
		}
		w.run(talk, measure)
	})
}
