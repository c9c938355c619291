package examples

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"hermes-mobile/frame"
)

var update = flag.Bool("update", false, "write the examples and tables of the documents anew")

// block is a part of a document between <!-- NAME: … --> and <!-- end -->.
var block = regexp.MustCompile(`(?s)(<!-- ([a-z]+): ?([^>]*?) ?-->\n)(.*?)(<!-- end -->)`)

// document reads a document of the folder doc.
func document(t *testing.T, name string) (path, text string) {
	t.Helper()
	path = filepath.Join("..", "..", "doc", name)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(b)
}

// rewrite replaces the blocks of a kind by what f makes of their argument, and writes the document where that changed it.
func rewrite(t *testing.T, name, kind string, f func(argument string) string) {
	t.Helper()
	path, text := document(t, name)
	next := block.ReplaceAllStringFunc(text, func(whole string) string {
		m := block.FindStringSubmatch(whole)
		if m[2] != kind {
			return whole
		}
		return m[1] + f(m[3]) + m[5]
	})
	if next != text {
		if err := os.WriteFile(path, []byte(next), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// blocks returns the contents of the blocks of a kind, by argument.
func blocks(t *testing.T, name, kind string) map[string]string {
	t.Helper()
	_, text := document(t, name)
	found := map[string]string{}
	for _, m := range block.FindAllStringSubmatch(text, -1) {
		if m[2] != kind {
			continue
		}
		if _, twice := found[m[3]]; twice {
			t.Errorf("doc/%s: the block %q stands twice", name, m[3])
		}
		found[m[3]] = m[4]
	}
	if len(found) == 0 {
		t.Fatalf("doc/%s has no block <!-- %s: … -->", name, kind)
	}
	return found
}

// An example stands in a block whose argument is the names of its frames, in order.
func TestExamples(t *testing.T) {
	rec := record(t)
	if *update {
		rewrite(t, "protocol.md", "example", func(names string) string {
			var b strings.Builder
			b.WriteString("```json\n")
			for _, name := range strings.Fields(names) {
				raw, ok := rec.frames[name]
				if !ok {
					t.Errorf("doc/protocol.md wants the example %q, which the script does not record", name)
				}
				b.WriteString(wrap(clean(raw)) + "\n")
			}
			b.WriteString("```\n")
			return b.String()
		})
	}
	missing := maps.Clone(rec.frames)
	for names, text := range blocks(t, "protocol.md", "example") {
		fence := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(text), "```json"), "```")
		frames := json.NewDecoder(strings.NewReader(fence))
		for _, name := range strings.Fields(names) {
			var there any
			if err := frames.Decode(&there); err != nil {
				t.Errorf("doc/protocol.md: the example %q: %v", name, err)
				break
			}
			delete(missing, name)
			var fresh any
			if err := json.Unmarshal(rec.frames[name], &fresh); err != nil {
				t.Errorf("doc/protocol.md: the example %q is not recorded by the script", name)
				continue
			}
			if d := difference(shape(there), shape(fresh)); d != "" {
				t.Errorf("doc/protocol.md: the example %q is not what the server sends or takes now:\n%s", name, d)
			}
		}
		if err := frames.Decode(new(any)); !errors.Is(err, io.EOF) {
			t.Errorf("doc/protocol.md: the example %q holds more frames than it names", names)
		}
	}
	for name := range missing {
		t.Errorf("doc/protocol.md has no example %q", name)
	}
	everyType(t, rec)
}

// everyType checks that each type of the package frame has an example, in the direction it is sent.
func everyType(t *testing.T, rec *recording) {
	t.Helper()
	types := map[string]bool{}
	for _, raw := range rec.frames {
		var o object
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		types[o.text("t")] = true
	}
	var names []string
	for _, f := range frame.UpTypes() {
		names = append(names, frame.UpName(f))
	}
	for _, f := range frame.DownTypes() {
		names = append(names, frame.DownName(f))
	}
	for _, name := range names {
		if !types[name] {
			t.Errorf("the script records no frame of type %q", name)
		}
	}
}

// shape is the set of a frame's members with the kinds of their values.
func shape(v any) []string {
	set := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			set[path+" object"] = true
			for name, member := range v {
				walk(path+"."+name, member)
			}
		case []any:
			set[path+" list"] = true
			for _, item := range v {
				walk(path+"[]", item)
			}
		default:
			set[fmt.Sprintf("%s %T", path, v)] = true
		}
	}
	walk("", v)
	return slices.Sorted(maps.Keys(set))
}

func difference(document, server []string) string {
	var b strings.Builder
	for _, s := range document {
		if !slices.Contains(server, s) {
			fmt.Fprintf(&b, "  only in the document: %s\n", s)
		}
	}
	for _, s := range server {
		if !slices.Contains(document, s) {
			fmt.Fprintf(&b, "  only from the server: %s\n", s)
		}
	}
	return b.String()
}

// What differs from run to run, or is secret, is replaced.
var replacements = []struct {
	old *regexp.Regexp
	new string
}{
	{regexp.MustCompile(`"token":"[^".]*"`), `"token":"<64 hex characters>"`},
	{regexp.MustCompile(`"token":"[^"]*\.[^"]*"`), `"token":"eyJkIjoi….Vb3x…"`},
	{regexp.MustCompile(`"endpoint":"[^"]*"`), `"endpoint":"https://push.example.net/send/…"`},
	{regexp.MustCompile(`"(p256dh|auth|key)":"([^"]{6})[^"]*"`), `"$1":"$2…"`},
	{regexp.MustCompile(`"pair":"[^"]*"`), `"pair":"7KQ4-M2XD"`},
	{regexp.MustCompile(`"epoch":"[0-9a-f]+"`), `"epoch":"5e1f0c77"`},
	{regexp.MustCompile(`"data":"([^"]{24})[^"]+"`), `"data":"$1…"`},
	{regexp.MustCompile(`"url":"([^"]*/media/)[^"]*"`), `"url":"$1…"`},
	{regexp.MustCompile(`questions in \d+ seconds`), `questions in 60 seconds`},
	{regexp.MustCompile(`"(time|at|expires_at|seen_at)":"[^"]*"`), `"$1":"2026-01-02T15:04:05Z"`},
	{regexp.MustCompile(`"server":"hermes-mobile/[^"]*"`), `"server":"hermes-mobile/0.1.0"`},
	{regexp.MustCompile(`("commands":\[\{[^}]*\},\{[^}]*\}),.*\]`), `$1]`},
	{regexp.MustCompile(`"retry_after":\d+`), `"retry_after":60`},
	{code, "7KQ4M2XD"},
}

var (
	serverID = regexp.MustCompile(`"[0-9a-f]{18}"`)
	longText = regexp.MustCompile(`"text":"([^"]{60})[^"]{140,}"`)
)

// clean puts placeholders into a frame.
func clean(raw []byte) string {
	text := string(bytes.TrimSpace(raw))
	for _, r := range replacements {
		text = r.old.ReplaceAllString(text, r.new)
	}
	id := `"9d0a3c5be17f2a6c04"`
	if strings.Contains(text, `"t":"prompt`) {
		id = `"c4e81b06d9a7f35f20"`
	}
	text = serverID.ReplaceAllString(text, id)
	if !strings.Contains(text, "pairing") {
		text = longText.ReplaceAllString(text, `"text":"$1…"`)
	}
	return text
}

// wrap breaks a frame after members of objects, so that its lines can be read.
func wrap(text string) string {
	const width = 112
	var b strings.Builder
	var open []byte // brackets that are not closed yet
	start, comma, quoted := 0, -1, false
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; {
		case quoted && ch == '\\':
			i++
		case ch == '"':
			quoted = !quoted
		case quoted:
		case ch == '{', ch == '[':
			open = append(open, ch)
		case ch == '}', ch == ']':
			open = open[:len(open)-1]
		case ch == ',' && (open[len(open)-1] == '{' || text[i+1] == '{'):
			if i-start > width && comma > start {
				b.WriteString(text[start:comma+1] + "\n ")
				start = comma + 1
			}
			comma = i
		}
	}
	if len(text)-start > width && comma > start {
		b.WriteString(text[start:comma+1] + "\n ")
		start = comma + 1
	}
	return b.String() + text[start:]
}
