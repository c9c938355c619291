package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// maxEvent is the limit for tests that do not test the limit.
const maxEvent = 16 << 20

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// recorded returns a stream that a Hermes gateway sent.
func recorded(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "gateway", "testdata", "api", name))
	must(t, err)
	return data
}

// read returns all events of a stream, one per line, and the error that ended it.
func read(r *Reader) (string, error) {
	var b strings.Builder
	for {
		ev, err := r.Next()
		if err != nil {
			return b.String(), err
		}
		fmt.Fprintf(&b, "%q %q %q\n", ev.Name, ev.ID, ev.Data)
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"one":                            {"data: a\n\n", `"" "" "a"`},
		"all fields":                     {"event: e\nid: 1\ndata: a\n\n", `"e" "1" "a"`},
		"CR":                             {"event: e\rdata: a\r\rdata: b\r\r", `"e" "" "a"|"" "" "b"`},
		"CRLF":                           {"data: a\r\ndata: b\r\n\r\n", `"" "" "a\nb"`},
		"mixed ends":                     {"data: a\rdata: b\ndata: c\r\n\n", `"" "" "a\nb\nc"`},
		"byte-order mark":                {"\uFEFFdata: a\n\n", `"" "" "a"`},
		"a mark later is text":           {"data: \uFEFFa\n\n\uFEFFdata: b\n\n", `"" "" "\ufeffa"`},
		"comments":                       {": hello\n:\ndata: a\n: in between\ndata: b\n\n", `"" "" "a\nb"`},
		"one blank is dropped":           {"data:  a\ndata:b\n\n", `"" "" " a\nb"`},
		"empty data":                     {"data\n\ndata:\n\n", `"" "" ""|"" "" ""`},
		"two empty lines of data":        {"data\ndata\n\n", `"" "" "\n"`},
		"no data is no event":            {"event: e\nid: 5\n\ndata: a\n\n", `"" "" "a"`},
		"id with NUL":                    {"id: 1\x00\ndata: a\n\n", `"" "" "a"`},
		"unknown fields":                 {"foo: x\nfoo\ndata: a\n\n", `"" "" "a"`},
		"open at the end":                {"data: a\n\ndata: b\n", `"" "" "a"`},
		"separators of text":             {"data: a\u2028b\u2029c\u0085d\n\n", `"" "" "a\u2028b\u2029c\u0085d"`},
		"nothing":                        {"", ""},
		"only half a mark":               {"\xEF\xBB", ""},
		"a mark and nothing":             {"\uFEFF", ""},
		"a CR is an end by itself":       {"data: a\r\r", `"" "" "a"`},
		"a LF after that CR is not two":  {"data: a\r\n\r\ndata: b\n\n", `"" "" "a"|"" "" "b"`},
		"fields are told by their case":  {"Data: x\nDATA: y\n\ndata: a\n\n", `"" "" "a"`},
		"an empty name is the usual one": {"event\ndata: a\n\n", `"" "" "a"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for kind, source := range map[string]io.Reader{"whole": strings.NewReader(tc.in), "by bytes": iotest.OneByteReader(strings.NewReader(tc.in)),
				"with the end": iotest.DataErrReader(strings.NewReader(tc.in)), "halves": iotest.HalfReader(strings.NewReader(tc.in))} {
				got, err := read(NewReader(source, maxEvent))
				if got = strings.ReplaceAll(strings.TrimSuffix(got, "\n"), "\n", "|"); got != tc.want || !errors.Is(err, io.EOF) {
					t.Errorf("%s: %s, %v; want %s", kind, got, err, tc.want)
				}
			}
		})
	}
}

// The reader returns an event when its last byte arrives, not when the next event begins.
func TestReaderDoesNotWait(t *testing.T) {
	t.Parallel()
	for _, frame := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r\n"} {
		in, out := io.Pipe()
		go func() { _, _ = io.WriteString(out, frame) }()
		ev, err := NewReader(in, maxEvent).Next()
		if err != nil || string(ev.Data) != "a" {
			t.Errorf("%q: %q, %v", frame, ev.Data, err)
		}
		must(t, in.Close())
	}
}

func TestReaderRemembers(t *testing.T) {
	t.Parallel()
	var comments []string
	r := NewReader(strings.NewReader("retry: 1500\nid: 7\n\n: alive\n:x\nretry: -1\nretry: soon\ndata: a\n\nid\ndata: b\n\n"), maxEvent)
	r.OnComment = func(text []byte) { comments = append(comments, string(text)) }
	ev, err := r.Next()
	must(t, err)
	if len(ev.ID) != 0 || r.LastEventID() != "7" || r.Retry() != 1500*time.Millisecond || fmt.Sprint(comments) != "[alive x]" {
		t.Errorf("event %+v, last id %q, retry %s, comments %q", ev, r.LastEventID(), r.Retry(), comments)
	}
	if _, err := r.Next(); err != nil || r.LastEventID() != "" {
		t.Errorf("an empty id gives %q, %v", r.LastEventID(), err)
	}
}

// The reader returns an event up to the limit completely. It rejects a stream with a larger one, and
// its memory stays bounded.
func TestReaderLimit(t *testing.T) {
	t.Parallel()
	const limit = 100
	long := strings.Repeat("x", limit)
	for name, tc := range map[string]struct {
		in string
		ok bool
	}{
		"just":              {"data: " + long + "\n\n", true},
		"one more":          {"data: " + long + "x\n\n", false},
		"in two lines":      {"data: " + long[:50] + "\ndata: " + long[:49] + "\n\n", true},
		"in two lines, one": {"data: " + long[:50] + "\ndata: " + long[:50] + "\n\n", false},
		"a line for ever":   {"data: " + strings.Repeat(long, 100), false},
		"a comment":         {": " + strings.Repeat(long, 100) + "\n\n", false},
	} {
		r := NewReader(iotest.OneByteReader(strings.NewReader(tc.in)), limit)
		_, err := r.Next()
		if (err == nil) != tc.ok || !tc.ok && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if _, again := r.Next(); !tc.ok && !errors.Is(again, ErrTooLarge) {
			t.Errorf("%s: then %v", name, again)
		}
		if cap(r.buf) > 4096+2*limit+1024 {
			t.Errorf("%s: %d bytes are held", name, cap(r.buf))
		}
	}
	huge := strings.Repeat("y", 7<<20)
	ev, err := NewReader(strings.NewReader("data: "+huge+"\n\n"), maxEvent).Next()
	if err != nil || string(ev.Data) != huge {
		t.Errorf("an event of 7 MB: %d bytes, %v", len(ev.Data), err)
	}
}

func TestReaderFails(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), maxEvent)
	got, err := read(r)
	if got != "\"\" \"\" \"a\"\n" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := NewReader(silent{}, maxEvent).Next(); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a source that gives nothing: %v", err)
	}
}

type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// An event costs few allocations, however its bytes arrive.
func TestReaderAllocations(t *testing.T) {
	data := recorded(t, "0.22.2/run_tool_events.sse")
	many := bytes.Repeat(data, 100)
	events := 0
	allocs := testing.AllocsPerRun(5, func() {
		r := NewReader(bytes.NewReader(many), maxEvent)
		events = 0
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			events++
		}
	})
	if per := allocs / float64(events); events != 1100 || per > 3 {
		t.Errorf("%.2f allocations an event, %d events", per, events)
	}
}

func BenchmarkReader(b *testing.B) {
	data := recorded(b, "0.22.2/chat_stream_two_tools_multiline.sse")
	many := bytes.Repeat(data, 50)
	b.SetBytes(int64(len(many)))
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		r := NewReader(bytes.NewReader(many), maxEvent)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
			events++
		}
	}
	b.ReportMetric(float64(events)/float64(b.N), "events/op")
}
