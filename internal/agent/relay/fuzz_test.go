package relay

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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

// FuzzBearer: no bearer is accepted but one that the secret made, and no refusal repeats what was sent.
func FuzzBearer(f *testing.F) {
	now := time.Unix(1_800_000_000, 0)
	good := func(id string) string {
		signed := fmt.Sprintf("%s:%d", id, now.Unix()+60)
		m := hmac.New(sha256.New, []byte("the secret"))
		m.Write([]byte(signed))
		return "Bearer " + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s:%x", signed, m.Sum(nil)))
	}
	for _, header := range []string{"", "Bearer", "Bearer ", good("gw"), good("gw") + "==", good("gw")[:60], good("other"), good(""), good("a:b"), "Basic x", "bearer Og", "Bearer " + strings.Repeat("A", 5000)} {
		f.Add(header)
	}
	if _, no := verify(good("gw"), func(string) (string, bool) { return "the secret", true }, now); no != nil {
		f.Fatalf("the right one is refused: %+v", no)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, no := verify(header, func(id string) (string, bool) { return "the secret", id == "gw" }, now)
		if no == nil {
			token := strings.TrimRight(strings.TrimSpace(header[strings.Index(strings.TrimSpace(header), " ")+1:]), "=")
			if id != "gw" || len(token) < 60 {
				t.Fatalf("%q is accepted as %q", header, id)
			}
			return
		}
		if no.Gateway != "" && no.Gateway != "gw" || len(header) > 40 && strings.Contains(no.Reason, header) {
			t.Fatalf("%q is refused with %+v", header, no)
		}
	})
}

// FuzzCardState: what is stored with a card is read or refused.
func FuzzCardState(f *testing.F) {
	for _, text := range []string{"", "null", "{}", `{"g":"gw","c":"tel","n":"a","k":"exec"}`, `{"g":7}`, "[]"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if st, err := parseCardState(b); err == nil && (st.Gateway == "" || st.Chat == "") {
			t.Fatalf("%q is a card of %+v", b, st)
		}
	})
}
