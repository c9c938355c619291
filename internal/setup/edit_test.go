package setup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus returns the config.yaml files of testdata, by name.
func corpus(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(paths) < 20 {
		t.Fatalf("%d files in testdata, %v", len(paths), err)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(path), ".yaml")] = text
	}
	return files
}

const testURL = "http://127.0.0.1:8787"

// edit applies all wants, as a plan does.
func edit(text []byte, list []want) (out []byte, changes []Change, err error) {
	var errs []error
	for _, w := range list {
		next, c, err := apply(text, w)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if text = next; c != nil {
			changes = append(changes, *c)
		}
	}
	return text, changes, errors.Join(errs...)
}

// TestCorpus writes all values to each file. Each file keeps its other settings, a second run changes
// nothing, and every key can be reverted alone. Setup rejects the files named broken-*, and leaves a
// part of the files named hand-* to the owner.
func TestCorpus(t *testing.T) {
	for file, text := range corpus(t) {
		for form, list := range map[string][]want{"new": wants(Version{0, 22}, testURL, true), "old": wants(Version{0, 19}, testURL, false)} {
			t.Run(file+"/"+form, func(t *testing.T) {
				out, changes, err := edit(text, list)
				var b *Broken
				var hand *ByHand
				switch {
				case strings.HasPrefix(file, "broken-"):
					if !errors.As(err, &b) || b.Line < 1 || b.Problem == "" {
						t.Fatalf("a broken file is answered with %v", err)
					}
					return
				case strings.HasPrefix(file, "hand-"):
					if !errors.As(err, &hand) || hand.Line < 1 {
						t.Fatalf("want a key that is to be written by hand, got %v", err)
					}
				case err != nil:
					t.Fatalf("%v in\n%s", err, text)
				}
				checkKept(t, text, out)
				if again, more, _ := edit(out, list); len(more) > 0 || !bytes.Equal(again, out) {
					t.Errorf("the second time %+v changed\n%s", more, again)
				}
				back := out
				for i := len(changes) - 1; i >= 0; i-- {
					next, ok := revert(back, changes[i])
					if !ok {
						t.Fatalf("%+v cannot be taken back in\n%s", changes[i], back)
					}
					back = next
				}
				if !bytes.Equal(back, text) && file != "null-values" && file != "comments-only" && !strings.HasPrefix(file, "double-") {
					t.Errorf("taken back it is\n%s\nand was\n%s", back, text)
				}
			})
		}
	}
}

// checkKept checks that every line that was not changed in place is still there, in the same order and
// with the same line break.
func checkKept(t *testing.T, before, after []byte) {
	t.Helper()
	if bytes.Contains(before, []byte("\r\n")) && !bytes.Contains(before, []byte("mixed")) && bytes.Count(after, []byte("\n")) != bytes.Count(after, []byte("\r\n")) {
		t.Errorf("line ends are mixed:\n%q", after)
	}
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) && bytes.HasSuffix(after, []byte("\n")) {
		t.Errorf("a line end came to the end:\n%q", after)
	}
	rest := string(after)
	for l := range strings.Lines(string(before)) {
		comment := l
		if i := strings.Index(l, "#"); i >= 0 {
			comment = l[i:]
		}
		comment = strings.TrimSpace(comment)
		if !strings.HasPrefix(comment, "#") {
			continue
		}
		i := strings.Index(rest, comment)
		if i < 0 {
			t.Fatalf("the comment %q is gone, or out of its order, in\n%s", comment, after)
		}
		rest = rest[i+len(comment):]
	}
}
