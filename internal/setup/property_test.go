package setup

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"pgregory.net/rapid"
)

// words are parts of files that contain some of our keys, in odd places and with odd values.
var (
	keyWords   = []string{"gateway", "relay_url", "platforms", "relay", "extra", "enabled", "display", "busy_ack_enabled", "busy_input_mode", "streaming", "plugins", "a", "\"b c\"", "ü"}
	valueWords = []string{"1", "true", "off", "queue", "\"a # b\"", "'it''s'", "x y", "é", "null", "~", "", "{}", "[]", "[a, 'b']", "\"http://127.0.0.1:8787\"", "|\n%  text\n%  # more", ">-\n%  text\n\n%  end"}
	tailWords  = []string{"", "", "", " # why", "  # ü: {"}
	lineWords  = []string{"", "", "", "\n", "# left\n", "%# here\n", "%  # right\n"}
)

// drawMap draws a map in lines or in braces.
func drawMap(t *rapid.T, indent string, depth int) string {
	var b strings.Builder
	step := rapid.SampledFrom([]string{"  ", "    "}).Draw(t, "step")
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keyWords), 1, 4, rapid.ID).Draw(t, "keys") {
		b.WriteString(strings.ReplaceAll(rapid.SampledFrom(lineWords).Draw(t, "line"), "%", indent))
		b.WriteString(indent + key + ":")
		switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
		case depth > 0 && kind < 2:
			b.WriteString(rapid.SampledFrom(tailWords).Draw(t, "tail") + "\n" + drawMap(t, indent+step, depth-1))
		case depth > 0 && kind == 2:
			b.WriteString(" " + drawBraces(t, depth-1) + rapid.SampledFrom(tailWords).Draw(t, "tail") + "\n")
		case kind == 3:
			b.WriteString("\n" + indent + "- one\n" + indent + "- {two: 3}\n")
		default:
			value := rapid.SampledFrom(valueWords).Draw(t, "value")
			if strings.Contains(value, "\n") {
				b.WriteString(" " + strings.ReplaceAll(value, "%", indent) + "\n")
				continue
			}
			b.WriteString(strings.TrimRight(" "+value, " ") + rapid.SampledFrom(tailWords).Draw(t, "tail") + "\n")
		}
	}
	return b.String()
}

func drawBraces(t *rapid.T, depth int) string {
	var parts []string
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keyWords), 0, 3, rapid.ID).Draw(t, "keys") {
		value := rapid.SampledFrom([]string{"1", "true", "off", "queue", "'x, }'", "null", "{}", "[a]"}).Draw(t, "value")
		if depth > 0 && rapid.Bool().Draw(t, "deeper") {
			value = drawBraces(t, depth-1)
		}
		parts = append(parts, key+": "+value)
	}
	pad := rapid.SampledFrom([]string{"", " "}).Draw(t, "pad")
	return "{" + pad + strings.Join(parts, ", ") + pad + "}"
}

// TestAnyFile checks any file: the result keeps every other setting, a second run changes nothing, and
// reverting our keys restores the old settings.
func TestAnyFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawMap(t, "", 2)
		if rapid.Bool().Draw(t, "CRLF") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		if rapid.Bool().Draw(t, "no end") {
			text = strings.TrimRight(text, "\r\n")
		}
		before, err := parse([]byte(text))
		if err != nil {
			t.Skip(err)
		}
		list := wants(Version{0, 22}, testURL, true)
		out, changes, err := edit([]byte(text), list)
		if hand := (*ByHand)(nil); err != nil && !errors.As(err, &hand) {
			t.Fatalf("%v in\n%s", err, text)
		}
		if err == nil {
			after, err := parse(out)
			if err != nil {
				t.Fatalf("%v in\n%s", err, out)
			}
			for _, w := range list {
				if !after.has(w) {
					t.Errorf("%s is not set in\n%s", w.key(), out)
				}
			}
			if !slices.Equal(before.comments, after.comments) {
				t.Errorf("comments are %q, were %q", after.comments, before.comments)
			}
		}
		if again, more, _ := edit(out, list); len(more) > 0 || string(again) != string(out) {
			t.Fatalf("the second time %+v changed", more)
		}
		back := out
		for _, c := range slices.Backward(changes) {
			next, ok := revert(back, c)
			if !ok {
				t.Fatalf("%+v cannot be taken back in\n%s\nof\n%s", c, back, text)
			}
			back = next
		}
		restored, err := parse(back)
		if err != nil || !reflect.DeepEqual(full(restored.value), full(before.value)) {
			t.Fatalf("taken back it is\n%s\nand was\n%s\n%v", back, text, err)
		}
	})
}

// full drops keys without a value, because an empty map that was created for such a key may stay.
func full(v any) any {
	out := map[string]any{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch x := v.(type) {
		case nil:
		case yaml.MapSlice:
			for _, e := range x {
				walk(path+"/"+fmt.Sprint(e.Key), e.Value)
			}
		case []any:
			if len(x) > 0 {
				out[path] = x
			}
		default:
			out[path] = x
		}
	}
	walk("", v)
	return out
}
