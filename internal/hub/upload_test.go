package hub_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent"
	"hermes-mobile/internal/hub"
)

// raw sends what no client of ours would.
func (c *client) raw(fields map[string]any) {
	c.w.t.Helper()
	data, err := json.Marshal(fields)
	ok(c.w.t, err)
	ok(c.w.t, c.ws.Write(ctx, websocket.MessageText, data))
}

// partOf is part i of a series of n, each of 4 KiB.
func partOf(id string, i, n int) map[string]any {
	return map[string]any{"t": "media", "id": id, "kind": "document", "mime": "text/plain", "filename": id + ".txt", "size": n * 4096,
		"part": i, "parts": n, "data": base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte('a' + i)}, 4096))}
}

// spoils are all ways in which a part of a series can be wrong, and the code that it is answered
// with. Part 0 of eight was sent before.
var spoils = map[string]struct {
	set  map[string]any
	code frame.Code
}{
	"a part beyond the last":   {map[string]any{"part": 8}, frame.BadFrame},
	"part 16 of 16":            {map[string]any{"part": 16, "parts": 16}, frame.BadFrame},
	"a negative part":          {map[string]any{"part": -1}, frame.BadFrame},
	"half a part":              {map[string]any{"part": 1.5}, frame.BadFrame},
	"a part in words":          {map[string]any{"part": "one"}, frame.BadFrame},
	"no parts":                 {map[string]any{"parts": 0}, frame.BadFrame},
	"too many parts":           {map[string]any{"parts": 2049}, frame.BadFrame},
	"parts in words":           {map[string]any{"parts": []int{8}}, frame.BadFrame},
	"another number of parts":  {map[string]any{"parts": 9}, frame.BadFrame},
	"one part only":            {map[string]any{"part": 0, "parts": 1}, frame.BadFrame},
	"another size":             {map[string]any{"size": 8*4096 + 1}, frame.BadFrame},
	"another name":             {map[string]any{"filename": "other.txt"}, frame.BadFrame},
	"another type":             {map[string]any{"mime": "text/html"}, frame.BadFrame},
	"another kind":             {map[string]any{"kind": "image"}, frame.BadFrame},
	"a kind that there is not": {map[string]any{"kind": "folder"}, frame.BadFrame},
	"a kind in numbers":        {map[string]any{"kind": 1}, frame.BadFrame},
	"a name in numbers":        {map[string]any{"filename": 1}, frame.BadFrame},
	"a caption in numbers":     {map[string]any{"caption": 7}, frame.BadFrame},
	"a caption without end":    {map[string]any{"caption": strings.Repeat("x", frame.MaxText+1)}, frame.TooBig},
	"no base64":                {map[string]any{"data": "!!!!"}, frame.BadFrame},
	"no data":                  {map[string]any{"data": nil}, frame.BadFrame},
	"data in numbers":          {map[string]any{"data": 5}, frame.BadFrame},
	"too little":               {map[string]any{"data": "YQ=="}, frame.BadFrame},
	"nothing":                  {map[string]any{"data": ""}, frame.BadFrame},
	"too much":                 {map[string]any{"data": base64.StdEncoding.EncodeToString(make([]byte, 1<<20+1))}, frame.TooBig},
	"a size over the limit":    {map[string]any{"size": 1<<20 + 1}, frame.TooBig},
	"the same part, changed":   {map[string]any{"part": 0, "data": base64.StdEncoding.EncodeToString(make([]byte, 4096))}, frame.BadFrame},
}

// Whatever is wrong with a part, its series is dropped: the error names it, later parts get the
// same one, what it held is given back, other series go on, and the file comes whole when it is
// sent again from part 0.
func TestAWrongPartDropsItsSeries(t *testing.T) {
	w := newWorld(t, func(o *hub.Options) { o.MaxMedia = 1 << 20 }) // what is not given back is soon too much
	c := w.connect("tel-1")
	seed := rand.Uint64()
	draw := rand.New(rand.NewPCG(seed, 0))
	n := 0
	for name, spoil := range spoils {
		for range 4 {
			n++
			id, other := fmt.Sprint("f", n), fmt.Sprint("other", n)
			order := []int{1, 2, 3, 4, 5, 6, 7}
			draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
			at := draw.IntN(len(order))
			c.raw(partOf(id, 0, 8)) // without it some are no contradiction: the first part seen holds
			c.raw(partOf(other, 0, 2))
			for _, i := range order[:at] {
				c.raw(partOf(id, i, 8))
			}
			c.quiet()
			bad := partOf(id, order[at], 8)
			for field, v := range spoil.set {
				bad[field] = v
				if v == nil {
					delete(bad, field)
				}
			}
			if bad["part"] == 7 && (name == "too little" || name == "nothing") {
				bad["part"] = 0 // the last part may be small
			}
			c.raw(bad)
			first := expect[*frame.Error](c)
			if first.Code != spoil.code || first.Ref != id {
				t.Fatalf("seed %d: %s: %s", seed, name, show(first))
			}
			for _, i := range order[at:] {
				c.raw(partOf(id, i, 8))
				if e := expect[*frame.Error](c); *e != *first {
					t.Fatalf("seed %d: %s: a later part got %s, want %s", seed, name, show(e), show(first))
				}
			}
			c.raw(partOf(other, 1, 2)) // goes on
			if a := expect[*frame.Accepted](c); a.ID != other || a.Duplicate {
				t.Fatalf("seed %d: %s: %s", seed, name, show(a))
			}
			w.reply(w.take(), "other")
			c.message()
			content := sha256.New()
			for i := range 8 {
				c.raw(partOf(id, i, 8))
				content.Write(bytes.Repeat([]byte{byte('a' + i)}, 4096))
			}
			if a := expect[*frame.Accepted](c); a.ID != id || a.Duplicate {
				t.Fatalf("seed %d: %s: %s", seed, name, show(a))
			}
			h := w.take()
			if h.File == nil || h.File.Hash != hex.EncodeToString(content.Sum(nil)) || h.File.Name != id+".txt" {
				t.Fatalf("seed %d: %s: %+v", seed, name, h.File)
			}
			w.reply(h, "whole")
			c.message()
			c.raw(partOf(id, 3, 8)) // after its end a part is a repeat
			if a := expect[*frame.Accepted](c); a.ID != id || !a.Duplicate {
				t.Fatalf("seed %d: %s: %s", seed, name, show(a))
			}
		}
	}
}

// Refusals that are none of the file's drop the series, too: the agent that went away, and the
// right that was taken.
func TestARefusedPartDropsItsSeries(t *testing.T) {
	w := newWorld(t, nil)
	c := w.connect("tel-1")
	c.raw(partOf("f1", 0, 3))
	c.quiet()
	w.agent.set(func(s *agent.Status) { s.FilesIn = false })
	c.raw(partOf("f1", 1, 3))
	find(c, func(e *frame.Error) bool { return e.Code == frame.Forbidden && e.Ref == "f1" })
	w.agent.set(func(s *agent.Status) { s.FilesIn = true })
	c.raw(partOf("f1", 2, 3))
	find(c, func(e *frame.Error) bool { return e.Code == frame.Forbidden && e.Ref == "f1" })
	for i := range 3 {
		c.raw(partOf("f1", i, 3))
	}
	find(c, func(a *frame.Accepted) bool { return a.ID == "f1" && !a.Duplicate })
	// Where images alone are taken, the later parts of one need not say that they are.
	w.agent.set(func(s *agent.Status) { s.FilesIn, s.Images = false, true })
	for i := range 3 {
		p := partOf("f2", i, 3)
		p["kind"] = "image"
		if i > 0 {
			delete(p, "kind")
		}
		c.raw(p)
	}
	find(c, func(a *frame.Accepted) bool { return a.ID == "f2" && !a.Duplicate })
	p := partOf("f3", 1, 3)
	delete(p, "kind")
	c.raw(p)
	find(c, func(e *frame.Error) bool { return e.Code == frame.Forbidden && e.Ref == "f3" })
}
