package relay

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
		sameOp(t, b)
		var env envelope
		if decode(b, &env) != nil {
			return
		}
		a := decodeAction(&env)
		text, _ := cutCursor(a.Content)
		if len(interimText(text)) > len(text) {
			t.Error("a step grew")
		}
		if _, inner := unwrapCron(text, a.Metadata.JobID); len(inner) > len(text) {
			t.Error("a cron text grew")
		}
		splitApproval(text)
		nonceOf(a.PromptID)
		fs := finals{list: []*final{{replyID: "m", text: "x"}}}
		fs.repeated(a, time.Time{})
	})
}

// sameOp checks that an op that is read in one pass is what decoding makes of it.
func sameOp(t *testing.T, line []byte) (quick bool) {
	t.Helper()
	env, a, quick := new(opReader).read(line)
	if !quick {
		return false
	}
	var want envelope
	if err := decode(line, &want); err != nil {
		t.Fatalf("%s was read, and decoding it says %v", line, err)
	}
	wantAction := decodeAction(&want)
	want.Action = nil // it is read already
	if !reflect.DeepEqual(env, want) || !reflect.DeepEqual(a, wantAction) {
		t.Fatalf("%s\nwas read as %+v %+v\nand decodes to %+v %+v", line, env, *a, want, *wantAction)
	}
	return true
}

// Most of what real gateways send is read in one pass, and as it is decoded.
func TestOpRecordings(t *testing.T) {
	files, _ := filepath.Glob("testdata/*/*.jsonl")
	ops, quick := 0, 0
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			at := bytes.Index(line, []byte(`"^",`))
			if at < 0 {
				continue
			}
			frame := bytes.TrimSuffix(bytes.TrimSpace(line[at+4:]), []byte("]"))
			taken := sameOp(t, frame)
			if bytes.Contains(frame, []byte(`"draft"`)) || bytes.Contains(frame, []byte(`"edit"`)) {
				ops++
				if taken {
					quick++
				}
			}
		}
	}
	if ops < 50 || quick < ops*9/10 {
		t.Errorf("%d of %d steps were read in one pass", quick, ops)
	}
}

func TestOpShapes(t *testing.T) {
	frame := func(action string) string {
		return `{"type":"outbound","requestId":"r","action":` + action + `}`
	}
	for line, quick := range map[string]bool{
		frame(`{"op":"draft","chat_id":"d","draft_id":1001,"content":"a\n\u00e9","final":false,"metadata":{"user_id":"d","reply_to_message_id":"m"}}`): true,
		frame(`{"op":"edit","chat_id":"d","message_id":null,"content":"a","final":null,"finalize":true,"metadata":null}`):                              true,
		frame(`{"op":"send","chat_id":7,"content":"a","content":"b","metadata":{"notify":true},"metadata":{"job_id":"j"}}`):                            true,
		frame(` {"op":"typing","chat_id":"d"} `):                           true,
		frame(`{"op":"draft","chat_id":"d","content":"a","final":1}`):      false,
		frame(`{"op":"draft","chat_id":"","content":"a"}`):                 false,
		frame(`{"op":"draft","chat_id":"d","content":true}`):               false,
		frame(`{"op":"draft","chat_id":"d","content":"\ud83d"}`):           false,
		frame("{\"op\":\"draft\",\"chat_id\":\"d\",\"content\":\"\xff\"}"): false,
		frame(`{"op":"prompt","chat_id":"d","prompt_id":"p"}`):             false,
		frame(`{"op":"draft","chat_id":"d","options":[]}`):                 false,
		frame(`{"op":"draft","chat_id":"d","more":{}}`):                    false,
		frame(`{"op":"draft","chat_id":"d"`):                               false,
		frame(`{"op":"draft","chat_id":"d"}`) + "x":                        false,
		frame(`null`): false,
		frame(`{"op":"draft","chat_id":"d"}`)[:20]:                false,
		`{"type":"inbound_ack","bufferId":"b"}`:                   false,
		`{"requestId":"r","action":{"op":"draft","chat_id":"d"}}`: false,
	} {
		if got := sameOp(t, []byte(line)); got != quick {
			t.Errorf("%s: read in one pass %v, want %v", line, got, quick)
		}
	}
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
