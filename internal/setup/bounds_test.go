package setup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml/lexer"
)

// bomb returns aliases that expand to nine times as much with each line.
func bomb(lines int) string {
	text := "a0: &a0 [x,x,x,x,x,x,x,x,x]\n"
	for i := 1; i < lines; i++ {
		text += fmt.Sprintf("a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 9), ","))
	}
	return text
}

// work measures the time and memory of parsing a text.
func work(t *testing.T, text string) (took time.Duration, bytes uint64, err error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	_, err = parse([]byte(text))
	took = time.Since(begin)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc, err
}

// Parsing any file of Hermes costs bounded time and memory.
func TestBoundedWork(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		huge bool
	}{
		"a bomb of 7 lines": {bomb(7), true}, "a bomb of 30 lines": {bomb(30), true}, "a small one": {bomb(4), false},
		"a bomb by merges":    {"a: &a {x: 1}\n" + strings.Repeat("b: &b {<<: [*a,*a,*a,*a,*a,*a,*a,*a], y: *a}\n", 20000), true},
		"deep lists":          {"a: " + strings.Repeat("[", 500_000), true},
		"deep dashes":         {"a:\n  " + strings.Repeat("- ", 500_000) + "x\n", true},
		"deep maps":           {strings.Repeat("{a: ", 300_000), true},
		"many keys below one": {"a:\n" + strings.Repeat("  b: 1\n", 60_000), true},
		"very many keys":      {strings.Repeat("a: 1\n", 1_500_000), true},
		"a long line":         {"a: \"" + strings.Repeat("x y, ", 20_000) + "\"\n", false},
		"a very long scalar":  {"a: " + strings.Repeat("x", 2_000_000) + "\n", false},
		"many comments":       {strings.Repeat("# nothing\n", 100_000) + "a: 1\n", false},
		"a long block":        {"a: |\n" + strings.Repeat("  text\n", 4000) + "b: 1\n", false},
	} {
		took, bytes, err := work(t, tc.text)
		if b := (*Broken)(nil); (err != nil) != tc.huge || tc.huge && (!errors.As(err, &b) || !b.Huge || strings.Contains(err.Error(), "repair")) {
			t.Errorf("%s: %v", name, err)
		}
		if bytes > 512<<20 || took > 20*time.Second {
			t.Errorf("%s takes %v and %d MiB", name, took, bytes>>20)
		}
	}
}

// Setup parses, edits, and restores a file of 20,000 keys quickly, and keeps all of it.
func TestManyKeys(t *testing.T) {
	for name, text := range map[string]string{"flat": "", "with ours in the middle": "display:\n  skin: a # mine\nplatforms: {telegram: {enabled: true}}\n"} {
		var b strings.Builder
		for i := range 20_000 {
			if fmt.Fprintf(&b, "key%d: value\n", i); i == 10_000 {
				b.WriteString(text)
			}
		}
		home, data := install(t, []byte(b.String()), nil)
		before := files(t, home)
		begin := time.Now()
		p := plan(t, options(home))
		took := time.Since(begin)
		if took > 10*time.Second { // a second on a machine that does nothing else
			t.Errorf("%s: the plan takes %v", name, took)
		}
		t.Logf("%s: %v", name, took)
		write(t, p, data)
		if again := plan(t, options(home)); !again.Done() {
			t.Errorf("%s: the second time there is to do %+v", name, again.Show())
		}
		after := string(read(t, filepath.Join(home, configFile)))
		checkKept(t, []byte(b.String()), []byte(after))
		for _, key := range []string{"key0: value\n", "key10000: value\n", "key19999: value\n", "relay_url: \"" + testURL + "\"\n"} {
			if !strings.Contains(after, key) {
				t.Errorf("%s: %q is missing", name, key)
			}
		}
		if text != "" && (!strings.Contains(after, "skin: a # mine\n  busy_ack_enabled: false\n") || strings.Count(after, "\ndisplay:") != 1) {
			t.Errorf("%s: display became\n%s", name, after[strings.Index(after, "\ndisplay:"):][:300])
		}
		if _, err := Undo(data, home); err != nil {
			t.Fatal(err)
		}
		sameFiles(t, files(t, home), before)
	}
}

// A long file gets the same settings as a short one, whatever it contains, and an undo removes them.
func TestLongIsAsShort(t *testing.T) {
	var filler strings.Builder
	for i := range fewLines + 10 {
		fmt.Fprintf(&filler, "filler%d: 1\n", i)
	}
	for file, text := range corpus(t) {
		if strings.HasPrefix(file, "broken-") || strings.Contains(string(text), "\r") || strings.ContainsAny(string(text), "&*%") || strings.HasPrefix(file, "flow") || strings.Contains(file, "markers") ||
			file == "start-only" || file == "bom" || file == "tagged" || file == "double-keys" {
			continue
		}
		long := filler.String() + string(text)
		p := &Plan{}
		f := &File{After: []byte(long)}
		list := wants(Version{0, 22}, testURL, true)
		if err := p.apply(f, list); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		short := &Plan{}
		g := &File{After: text}
		if err := short.apply(g, list); err != nil {
			t.Fatal(err)
		}
		if len(p.ByHand) != len(short.ByHand) || len(f.Changes) != len(g.Changes) {
			t.Errorf("%s: %d by hand and %d changes, want %d and %d", file, len(p.ByHand), len(f.Changes), len(short.ByHand), len(g.Changes))
		}
		a, errA := parse(f.After)
		b, errB := parse(g.After)
		if errA != nil || errB != nil {
			t.Fatal(file, errA, errB)
		}
		for _, w := range list {
			x, _ := lookup(a.value, w.path)
			y, _ := lookup(b.value, w.path)
			if !reflect.DeepEqual(x, y) {
				t.Errorf("%s: %s is %v, want %v", file, w.key(), x, y)
			}
		}
		back := f.After
		for i := len(f.Changes) - 1; i >= 0; i-- {
			next, ok := revert(back, f.Changes[i])
			if !ok {
				t.Fatalf("%s: %+v cannot be taken back", file, f.Changes[i])
			}
			back = next
		}
		if string(back) != long && file != "null-values" && file != "comments-only" {
			t.Errorf("%s: taken back it is\n%s", file, strings.TrimPrefix(string(back), filler.String()))
		}
	}
}

// A text that is parsed in parts has the same values and positions as one that is parsed as a whole.
func TestPartsAreTheWhole(t *testing.T) {
	for file, text := range corpus(t) {
		plain := strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
		parts := topLevel(lexer.Tokenize(plain))
		n := 0
		for _, p := range parts {
			n += len(p)
		}
		if whole := len(lexer.Tokenize(plain)); n != whole {
			t.Errorf("%s: %d tokens in parts, %d in all", file, n, whole)
		}
		padded := plain
		if !strings.HasSuffix(padded, "\n") {
			padded += "\n"
		}
		short, err := parse([]byte(padded))
		long, errLong := parse([]byte(padded + strings.Repeat("# a comment\n", fewLines+1)))
		if (err == nil) != (errLong == nil) {
			t.Errorf("%s: %v as a whole, %v in parts", file, err, errLong)
			continue
		}
		if err != nil {
			continue
		}
		if !reflect.DeepEqual(short.value, long.value) {
			t.Errorf("%s: %v as a whole, %v in parts", file, short.value, long.value)
		}
		a, _ := entriesOf(short.root)
		b, _ := entriesOf(long.root)
		for i := range a {
			if line(a[i]) != line(b[i]) || column(a[i]) != column(b[i]) {
				t.Errorf("%s: %s stands at %d:%d, and in parts at %d:%d", file, name(a[i]), line(a[i]), column(a[i]), line(b[i]), column(b[i]))
			}
		}
	}
}

// Setup rejects a pipe, a folder, and an endless file as a settings file.
func TestFilesThatAreNone(t *testing.T) {
	home, _ := install(t, nil, nil)
	if err := os.Mkdir(filepath.Join(home, configFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := NewPlan(options(home)); err == nil {
		t.Error("a folder is read")
	}
	must(t, os.Remove(filepath.Join(home, configFile)))
	put(t, filepath.Join(home, envFile), make([]byte, maxFile+1), 0o600)
	if _, err := NewPlan(options(home)); err == nil || !strings.Contains(err.Error(), "8388608") {
		t.Errorf("a very large file: %v", err)
	}
	put(t, filepath.Join(home, envFile), []byte("\xff\xfeA\x00=\x001\x00"), 0o600)
	if _, err := NewPlan(options(home)); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Errorf("a file in UTF-16: %v", err)
	}
}
