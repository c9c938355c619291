package setup

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
)

// answer is a config.yaml with the errors of the YAML readers of the real Hermes, which test/readers
// records. An error is empty if that version accepts the file.
type answer struct {
	Text  string `json:"text"`
	Older string `json:"0.19"`
	Newer string `json:"0.22"`
}

func answers(t testing.TB) (list []answer) {
	t.Helper()
	data, err := os.ReadFile("testdata/readers.json")
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil || len(list) < 200 {
		t.Fatal(len(list), err)
	}
	return list
}

// reads returns the result of our reader for a text and a version.
func reads(text string, v Version, strict bool) error {
	d, err := parse([]byte(text))
	if err == nil {
		err = d.readable(v, strict)
	}
	return err
}

// cautious are texts that Hermes accepts, but setup does not edit.
var cautious = map[string]string{
	"null\n": "a file that says nothing in this way", "~\n": "the same", "[]\n": "a list, which Hermes takes for nothing", "a: \"\\ud800\"\n": "half of a character",
	"a: 1\rb: 2\r": "line ends of old Macs", "a: 1\r\n\rb: 2\n": "the same", "a: &x\n": "an anchor of nothing", "a: &x [*x]\n": "a circle", "&x a: *x\n": "an anchor on a key",
	"# c\u2028a: 1\nb: 2\n": "a comment that YAML 1.1 ends in its middle",
	"? [a, b]\n: c\n":       "a key that is a list", "[a, b]: c\n": "the same", "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n": "200 lists in one another",
}

// Setup rejects exactly the files that a version of Hermes rejects, with a line and a reason.
func TestReadable(t *testing.T) {
	for _, a := range answers(t) {
		for name, tc := range map[string]struct {
			v       Version
			strict  bool
			refused bool
		}{
			"0.19": {Version{0, 19}, true, a.Older != ""}, "0.22": {Version{0, 22}, true, a.Newer != ""},
			"any": {Version{}, true, a.Older != "" || a.Newer != ""}, "both": {Version{}, false, a.Older != "" && a.Newer != ""},
		} {
			err := reads(a.Text, tc.v, tc.strict)
			b := (*Broken)(nil)
			switch {
			case err != nil && (!errors.As(err, &b) || b.Line < 1 || b.Problem == ""):
				t.Errorf("%q for %s: %v", a.Text, name, err)
			case tc.refused && err == nil:
				t.Errorf("%.60q is read for %s, and Hermes refuses it: %s / %s", a.Text, name, a.Older, a.Newer)
			case !tc.refused && err != nil && cautious[a.Text] == "":
				t.Errorf("%.60q is refused for %s, and Hermes reads it: %v", a.Text, name, err)
			}
		}
	}
}
