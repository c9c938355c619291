package hub_test

import (
	"bytes"
	"fmt"
	"sync"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/hub"
)

// Many devices that send large files at once: all of them arrive, those included that had to come
// back, and nobody who only writes waits for it.
func TestManyUploadsShareOneRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *hub.Options) { o.Room = 3 << 20 })
	writer := w.connect("writer")
	const many, size = 16, 700 << 10
	var wg sync.WaitGroup
	for i := range many {
		id := fmt.Sprint("d", i)
		file := &frame.Media{ID: "f", Kind: "document", Mime: "application/octet-stream", Filename: "x.bin", Data: bytes.Repeat([]byte{byte(i)}, size), Parts: 1}
		wg.Go(func() {
			for c := w.connect(id); ; c = w.connect(id) {
				_ = c.ws.Write(ctx, websocket.MessageText, frame.EncodeUp(file)) // it may be cut off in the middle
				for {
					f, err := c.any()
					if a, is := f.(*frame.Accepted); is && a.ID == "f" {
						_ = c.ws.CloseNow()
						return
					}
					if e, is := f.(*frame.Error); is && e.Code != frame.RateLimited {
						t.Errorf("%s got %s", id, show(f))
					}
					if err != nil {
						if code := websocket.CloseStatus(err); code != websocket.StatusTryAgainLater {
							t.Errorf("%s was cut off with %v", id, err)
						}
						break
					}
				}
			}
		})
	}
	for i := range 20 {
		writer.send(&frame.Text{ID: fmt.Sprint("m", i), Text: "short"})
		expect[*frame.Accepted](writer)
	}
	wg.Wait()
	hashes := value[map[string]bool](t)(w.store.Hashes(ctx))
	if len(hashes) != many {
		t.Errorf("%d files of %d", len(hashes), many)
	}
}
