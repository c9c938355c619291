package frame

import (
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"
)

// text draws what people and agents write: any runes, characters that JSON escapes or that once
// broke JavaScript, and invalid UTF-8.
var text = rapid.Custom(func(t *rapid.T) string {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"\u2028", "\u2029", "\x00", "\x1f", "\x7f", "\"", "\\", "\\u0041", "/", "</script>", "\ufffd", "\ufeff", "👩‍👩‍👧‍👦", "e\u0301", "\U0010ffff",
		"\xff", "\xed\xa0\x80", "\xc3", "\xf0\x9f\x98", "\r\n",
	}))
	return strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "")
})

var moment = rapid.Custom(func(t *rapid.T) time.Time {
	return time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
})

// random fills a frame of the given type. It fails the test for a field of an unknown kind.
func random(t *rapid.T, v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(moment.Draw(t, "time")))
		return
	case []byte:
		v.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "bytes"))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text.Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			random(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			random(t, v.Field(i))
		}
	case reflect.Slice:
		n := rapid.IntRange(0, 3).Draw(t, "length")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			random(t, v.Index(i))
		}
	default:
		t.Fatalf("a field of kind %s: teach random about it", v.Kind())
	}
}

// repaired returns a value as a reader sees it, with invalid UTF-8 replaced. A run of such bytes
// may give any number of replacement characters, so repaired folds each run into one.
func repaired(v any) any {
	switch v := v.(type) {
	case string:
		s := strings.ToValidUTF8(v, "\ufffd")
		for strings.Contains(s, "\ufffd\ufffd") {
			s = strings.ReplaceAll(s, "\ufffd\ufffd", "\ufffd")
		}
		return s
	case map[string]any:
		for name := range v {
			v[name] = repaired(v[name])
		}
	case []any:
		for i := range v {
			v[i] = repaired(v[i])
		}
	}
	return v
}

func TestEveryDownFrameIsReadBack(t *testing.T) {
	for _, zero := range DownTypes() {
		t.Run(DownName(zero), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := reflect.New(reflect.TypeOf(zero).Elem())
				if r, ok := v.Interface().(*Result); ok {
					r.ID = text.Draw(t, "id")
					r.Result = rapid.SampledFrom([][]byte{nil, []byte("{}"), []byte(`{"a":[1,null,"\u2028"]}`), []byte("null"), []byte("[]")}).Draw(t, "result")
					random(t, v.Elem().FieldByName("Err"))
				} else {
					random(t, v.Elem())
				}
				f := v.Interface().(Down)
				settle(f)
				checkWritten(t, f, EncodeDown(f))
			})
		})
	}
}

func checkWritten(t *rapid.T, f Down, written []byte) {
	var generic map[string]any
	if err := json.Unmarshal(written, &generic); err != nil {
		t.Fatalf("encoding/json rejects %q: %v", written, err)
	}
	if !utf8.Valid(written) {
		t.Fatalf("not UTF-8: %q", written)
	}
	if generic["t"] != DownName(f) {
		t.Fatalf("t is %v, want %s", generic["t"], DownName(f))
	}
	back, err := DecodeDown(written)
	if err != nil {
		t.Fatalf("%q is rejected: %v", written, err)
	}
	got, want := show(repaired(meaning(back))), show(repaired(meaning(f)))
	if reflect.TypeOf(back) != reflect.TypeOf(f) || got != want {
		t.Fatalf("written as %q\n got %s\nwant %s", written, got, want)
	}
	// The decoder of a device may be strict about keys. Our frames must pass our own strict
	// decoder.
	if err := raw(written).walk(func(string, jsontext.Value) {}); err != nil {
		t.Fatalf("our own strict decoder rejects %q: %v", written, err)
	}
}

// The frames that a server sends must have the fields that the reference client reads, even when
// they are empty: its sketches read them unconditionally (getBoolean("final"), getString("text")).
func TestFieldsThatTheReferenceReadsAreAlwaysThere(t *testing.T) {
	for _, c := range []struct {
		frame  Down
		fields string
	}{
		{&Message{}, "id text chunk final"}, {&Media{}, "part parts"}, {&Ready{}, "session capabilities protocol server approved agent resume"},
		{&Prompt{}, "id kind text options session timeout_seconds"}, {&PromptDone{}, "prompt_id id expired"}, {&Avatar{}, "state"},
		{&Accepted{}, "duplicate queued"}, {&Delivered{}, "queued"}, {&Error{}, "code message"}, {&Result{}, "id result"},
	} {
		var m map[string]any
		if err := json.Unmarshal(EncodeDown(c.frame), &m); err != nil {
			t.Fatal(err)
		}
		for name := range strings.FieldsSeq(c.fields) {
			if v, ok := m[name]; !ok || v == nil {
				t.Errorf("%s lacks %s", EncodeDown(c.frame), name)
			}
		}
	}
}

func TestAppendJSONAppends(t *testing.T) {
	m := &Message{ID: "r1", Text: "x", Chunk: Chunk{Total: 1}, Final: true}
	if got, want := string(m.AppendJSON([]byte("before"))), "before"+string(EncodeDown(m)); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestBase64InAllSpellings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOf(rapid.Byte()).Draw(t, "data")
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			got, ok := decodeBase64([]byte(enc.EncodeToString(data)))
			if !ok || string(got) != string(data) {
				t.Fatalf("%s: got %x, %v", enc.EncodeToString(data), got, ok)
			}
		}
	})
}

func TestCleanName(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "name")
		got := CleanName(s)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > MaxName || strings.ContainsAny(got, "\x00\x1b\n\x7f\u0085") || CleanName(got) != got {
			t.Fatalf("CleanName(%q) = %q", s, got)
		}
	})
}

func TestDecodeDownSaysWhatIsWrong(t *testing.T) {
	for _, raw := range []string{"", "null x", "[]", "7", `{"t":7}`, `{"t":"message","id":7}`, `{"t":"pong","time":"yesterday"}`, `{"t":"result","id":[]}`, `{"t":"media","data":"@"}`} {
		if f, err := DecodeDown([]byte(raw)); err == nil || f != nil || !strings.HasPrefix(err.Error(), "frame: ") {
			t.Errorf("%s: got %#v, %v", raw, f, err)
		}
	}
}

func TestWhatToDoAfterAnError(t *testing.T) {
	for code, want := range map[Code]bool{AuthFailed: false, Unsupported: false, Forbidden: false, TooBig: false, BadFrame: false, DeviceOffline: true, RateLimited: true, NoSpace: true, Internal: true} {
		if code.Retry() != want {
			t.Errorf("%s: Retry is %v", code, !want)
		}
	}
	for code, want := range map[CloseCode]bool{CloseGoingAway: true, CloseNoAccess: false, CloseTooBig: true, CloseTryLater: true, CloseReplaced: false, 1000: true, 1006: true, 1011: true} {
		if code.Reconnect() != want {
			t.Errorf("%d: Reconnect is %v", code, !want)
		}
	}
	if got := (&Error{Code: TooBig, Message: "send less"}).Error(); got != "too_big: send less" {
		t.Errorf("Error() = %q", got)
	}
}
