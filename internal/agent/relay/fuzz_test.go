package relay

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// FuzzFrame: whatever a line holds, reading it ends, and the texts of it can be
// taken apart. The seeds are what real gateways sent.
func FuzzFrame(f *testing.F) {
	files, _ := filepath.Glob("testdata/*/*.jsonl")
	n := 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for i, line := range bytes.Split(b, []byte("\n")) {
			if at := bytes.Index(line, []byte(`"^",`)); at >= 0 && i%11 == 0 {
				f.Add(line[at+4 : len(line)-1])
				n++
			}
		}
	}
	if n < 100 {
		f.Fatalf("only %d seeds", n)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var env envelope
		if decode(b, &env) != nil {
			return
		}
		a := readAction(&env)
		text, _ := cutCursor(string(a.Content))
		if len(interimText(text)) > len(text) {
			t.Error("a step grew")
		}
		if _, inner := unwrapCron(text, string(a.Metadata.JobID)); len(inner) > len(text) {
			t.Error("a cron text grew")
		}
		splitApproval(text)
		nonceOf(string(a.PromptID))
		c := &convo{finals: []*final{{replyID: "m", text: "x"}}}
		c.repeat(a, c.op)
	})
}
