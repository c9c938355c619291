package sse

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hermes-mobile/internal/sse"
)

// event is one event as both readers see it.
type event struct {
	Name string `json:"name"`
	ID   string `json:"id"`
	Data string `json:"data"`
}

// pieces make up the lines of a stream: fields in all their spellings, comments, text that is cut in the middle of a
// character, and what only looks like a field.
var pieces = []string{
	"data: ", "data:", "data", "event: ", "event:", "event", "id: ", "id", "id:7", "retry: 10", ":", ": comment", "foo: bar", "Data: x", " data: x", "",
	"hello", "😀 family 👩‍👩‍👧", "日本", "a\u2028b", "\u0085", "{\"a\": \"b:c\"}", "  two blanks", "\t", "é", "\x00", "\uFEFF",
}

var ends = []string{"\n", "\n", "\n", "\r\n", "\r"}

// stream makes one stream, its bytes cut at random.
func stream(r *rand.Rand) (whole []byte, cuts [][]byte) {
	var b bytes.Buffer
	if r.IntN(5) == 0 {
		b.WriteString("\uFEFF")
	}
	for range r.IntN(40) {
		for range r.IntN(4) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		b.WriteString(ends[r.IntN(len(ends))])
		if r.IntN(3) == 0 {
			b.WriteString(ends[r.IntN(len(ends))])
		}
	}
	b.WriteString(": end\n") // the other reader waits for what follows a CR
	whole = b.Bytes()
	for rest := whole; len(rest) > 0; {
		n := 1 + r.IntN(min(len(rest), 1+r.IntN(60)))
		cuts = append(cuts, rest[:n])
		rest = rest[n:]
	}
	return whole, cuts
}

// ours reads a stream piece by piece.
func ours(t *testing.T, cuts [][]byte) (events []event) {
	in, out := io.Pipe()
	go func() {
		for _, cut := range cuts {
			_, _ = out.Write(cut)
		}
		_ = out.Close()
	}()
	r := sse.NewReader(in, 16<<20)
	for {
		ev, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, event{ev.Name, string(ev.ID), string(ev.Data)})
	}
}

// 2,000 streams are read alike.
func TestReadersAgree(t *testing.T) {
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("Node with npm is not installed: no other reader has read the streams")
	}
	install := exec.CommandContext(t.Context(), "bash", "install.sh")
	install.Stderr = os.Stderr
	out, err := install.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := strings.TrimSpace(string(out))

	const count = 2000
	r := rand.New(rand.NewPCG(1, 2))
	wholes, streams := make([][]byte, count), make([][][]byte, count)
	for i := range streams {
		wholes[i], streams[i] = stream(r)
	}
	in, err := json.Marshal(streams)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "parse.mjs"))
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err = cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var theirs [][]event
	if err := json.Unmarshal(out, &theirs); err != nil {
		t.Fatal(err)
	}
	if len(theirs) != count {
		t.Fatalf("%d streams were read", len(theirs))
	}
	total, differ := 0, 0
	for i, cuts := range streams {
		got := ours(t, cuts)
		total += len(got)
		if len(got)+len(theirs[i]) > 0 && !reflect.DeepEqual(got, theirs[i]) {
			if differ++; differ < 4 {
				t.Errorf("%q\nours   %q\ntheirs %q", wholes[i], got, theirs[i])
			}
		}
	}
	if differ > 0 || total < count {
		t.Errorf("%d of %d streams are read otherwise; %d events", differ, count, total)
	}
}
