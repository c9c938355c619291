package examples

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the repository, seen from this package.
var root = filepath.Join("..", "..")

// citation is a section of a document as comments cite it: doc/protocol.md §7, or §3 and §4.1.
var (
	citation = regexp.MustCompile(`doc/([\w/.-]+\.md)((?:(?:,| and| to)?\s+(?:(?://|#|\*)\s*)?§\d+(?:\.\d+)?)*)`)
	section  = regexp.MustCompile(`§(\d+)(?:\.(\d+))?`)
)

// TestCitations checks that each section of a document that the code cites exists. A section is a heading that begins with
// its number. The second number of §12.11 is a heading or an item of a numbered list in that section.
func TestCitations(t *testing.T) {
	cited := 0
	eachFile(t, []string{".go", ".ts", ".tsx", ".mjs", ".py", ".sh", ".kt", ".css"}, func(path, text string) {
		for _, m := range citation.FindAllStringSubmatch(text, -1) {
			cited++
			document, err := os.ReadFile(filepath.Join(root, "doc", m[1]))
			if err != nil {
				t.Errorf("%s cites doc/%s, which does not exist", path, m[1])
				continue
			}
			for _, s := range section.FindAllStringSubmatch(m[2], -1) {
				if !hasSection(string(document), s[1], s[2]) {
					t.Errorf("%s cites doc/%s %s, which does not exist", path, m[1], s[0])
				}
			}
		}
	})
	if cited < 50 {
		t.Errorf("found only %d citations: has their form changed?", cited)
	}
}

// TestConformanceCitations checks the sections that the cases of test/conformance name.
func TestConformanceCitations(t *testing.T) {
	protocol := source(t, "doc", "protocol.md")
	about := regexp.MustCompile(`(?s)"""(§.*?)"""`)
	cases, err := filepath.Glob(filepath.Join(root, "test", "conformance", "case_*.py"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, path := range cases {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range about.FindAllStringSubmatch(string(text), -1) {
			sections, _, _ := strings.Cut(m[1], ":")
			sections, _, _ = strings.Cut(sections, "RFC")
			for _, s := range section.FindAllStringSubmatch(sections, -1) {
				if !hasSection(protocol, s[1], s[2]) {
					t.Errorf("%s cites doc/protocol.md %s, which does not exist", path, s[0])
				}
			}
		}
	}
}

func hasSection(document, number, part string) bool {
	heading := regexp.MustCompile(`(?m)^##+ ` + number + `\. .*$`)
	at := heading.FindStringIndex(document)
	if at == nil {
		return false
	}
	if part == "" {
		return true
	}
	if regexp.MustCompile(`(?m)^##+ ` + number + `\.` + part + ` `).MatchString(document) {
		return true
	}
	rest, _, _ := strings.Cut(document[at[1]:], "\n## ")
	return regexp.MustCompile(`(?m)^` + part + `\. `).MatchString(rest)
}

var (
	link        = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	headings    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	fence       = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	notInAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// TestLinks checks that each link between the documents leads to a file, and its fragment to a heading.
func TestLinks(t *testing.T) {
	eachFile(t, []string{".md"}, func(path, text string) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			target, err := url.Parse(m[1])
			if err != nil || target.Scheme != "" || target.Host != "" {
				continue
			}
			to := filepath.Join(root, path)
			if target.Path != "" {
				to = filepath.Join(root, filepath.Dir(path), target.Path)
			}
			info, err := os.Stat(to)
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", path, m[1])
				continue
			}
			if target.Fragment == "" || info.IsDir() || filepath.Ext(to) != ".md" {
				continue
			}
			document, err := os.ReadFile(to)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(anchors(string(document)), target.Fragment) {
				t.Errorf("%s links to %s, where no heading has that anchor", path, m[1])
			}
		}
	})
}

// anchors are those that GitHub gives the headings of a document.
func anchors(document string) []string {
	var found []string
	for _, m := range headings.FindAllStringSubmatch(fence.ReplaceAllString(document, ""), -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		anchor := strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(text), ""), " ", "-")
		found = append(found, anchor)
	}
	return found
}

// pageLink is a document with a heading as code and messages name it: doc/internet.md#dns.
var pageLink = regexp.MustCompile(`doc/([\w/-]+\.md)#([\w-]+)`)

// TestNamedPages checks the headings that code and messages name.
func TestNamedPages(t *testing.T) {
	eachFile(t, []string{".go", ".ts", ".sh", ".py", ".kt"}, func(path, text string) {
		for _, m := range pageLink.FindAllStringSubmatch(text, -1) {
			document, err := os.ReadFile(filepath.Join(root, "doc", m[1]))
			if err != nil {
				t.Errorf("%s names doc/%s, which does not exist", path, m[1])
			} else if !slices.Contains(anchors(string(document)), m[2]) {
				t.Errorf("%s names doc/%s#%s, where no heading has that anchor", path, m[1], m[2])
			}
		}
	})
}

// eachFile calls f for each file of the repository with one of the extensions, generated and downloaded ones aside.
func eachFile(t *testing.T, extensions []string, f func(path, text string)) {
	t.Helper()
	skipped := []string{".git", ".cache", "bin", "dist", "node_modules", "testdata", "docs"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != root && slices.Contains(skipped, entry.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !slices.Contains(extensions, filepath.Ext(path)) || strings.HasSuffix(path, "citations_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f(relative, string(text))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestGlossary checks that the places in the code exist that doc/glossary.md names.
func TestGlossary(t *testing.T) {
	places := regexp.MustCompile("`((?:internal|frame|device|gateway|web|testdata|sdk|test)(?:/[\\w/.-]*)?)`").FindAllStringSubmatch(source(t, "doc", "glossary.md"), -1)
	if len(places) < 50 {
		t.Fatalf("doc/glossary.md names only %d places", len(places))
	}
	for _, m := range places {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			t.Errorf("doc/glossary.md names %s, which does not exist", m[1])
		}
	}
}
