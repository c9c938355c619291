package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseTokens(t *testing.T) {
	const a, b = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	for _, c := range []struct {
		list, byDefault string
		want            []Token
		err             bool
	}{
		{list: ""},
		{list: " , ,"},
		{list: a, byDefault: MainLabel, want: []Token{{Label: "main", Secret: a}}},
		{list: "tablet=" + a + " , " + b, want: []Token{{Label: "tablet", Secret: a}, {Label: hashLabel(b), Secret: b}}},
		{list: "x=" + a + "," + b, byDefault: MainLabel, want: []Token{{Label: "x", Secret: a}, {Label: "main", Secret: b}}},
		{list: a + "=", want: []Token{{Label: hashLabel(a + "="), Secret: a + "="}}},
		{list: a + "==", want: []Token{{Label: hashLabel(a + "=="), Secret: a + "=="}}},
		{list: "l=" + a + "==", want: []Token{{Label: "l", Secret: a + "=="}}},
		{list: "my label=" + a, err: true},
		{list: a + "," + a, err: true},
		{list: "l=" + a + ",l=" + b, err: true},
		{list: "l=" + a + ",m=" + a, err: true},
		{list: strings.Repeat("a", maxSecret+1), err: true},
		{list: "geheim\x00nis", err: true},
		{list: "schlüssel", err: true},
	} {
		got, err := ParseTokens(c.list, App, c.byDefault, Labels)
		if (err != nil) != c.err || !c.err && !slices.Equal(tokenFields(got), tokenFields(c.want)) {
			t.Errorf("%q: %v, %v", c.list, tokenFields(got), err)
		}
		if err != nil && (strings.Contains(err.Error(), a) || strings.Contains(err.Error(), "geheim")) {
			t.Errorf("%q: the error tells: %v", c.list, err)
		}
	}
}

func tokenFields(tokens []Token) (fields [][3]string) {
	for _, t := range tokens {
		fields = append(fields, [3]string{t.Label, t.Secret, t.Kind.String()})
	}
	return fields
}

func TestLabelsStayInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secrets := rapid.SliceOfNDistinct(rapid.StringMatching(`[0-9a-f]{64}`), 1, 6, rapid.ID).Draw(t, "secrets")
		shuffled := rapid.Permutation(secrets).Draw(t, "shuffled")
		one, err := ParseTokens(strings.Join(secrets, ","), Deliver, "", Labels)
		if err != nil {
			t.Fatal(err)
		}
		two, err := ParseTokens(strings.Join(shuffled, ", "), Deliver, "", Labels)
		if err != nil {
			t.Fatal(err)
		}
		label := map[string]string{}
		for _, x := range one {
			label[x.Secret] = x.Label
			if strings.Contains(HashSecret(x.Secret), strings.TrimPrefix(x.Label, "token-")) || !ValidLabel(x.Label) {
				t.Fatal("label", x.Label)
			}
		}
		for _, x := range two {
			if label[x.Secret] != x.Label {
				t.Fatal("labels differ")
			}
		}
	})
}

func TestParseTokensNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens, err := ParseTokens(rapid.String().Draw(t, "list"), App, "", Labels)
		if err == nil {
			for _, x := range tokens {
				if !ValidLabel(x.Label) || !validSecret(x.Secret) {
					t.Fatal("bad token")
				}
			}
		}
	})
}

func TestMatch(t *testing.T) {
	var s Tokens
	if _, ok := s.Match("x"); ok || s.Len() != 0 {
		t.Fatal("empty set matches")
	}
	s.Replace([]Token{{Label: "a", Secret: "one", Kind: App}, {Label: "b", Secret: "two", Kind: Deliver}, {Label: "none", Secret: "", Kind: App}, {Label: "c", Secret: "two", Kind: App}})
	for secret, want := range map[string]string{"one": "a app", "two": "b deliver"} {
		token, ok := s.Match(secret)
		if got := token.Label + " " + token.Kind.String(); !ok || got != want {
			t.Error(secret, got)
		}
	}
	for _, secret := range []string{"", "on", "onee", "ONE", "a=one", strings.Repeat("x", 1<<20)} {
		if _, ok := s.Match(secret); ok {
			t.Errorf("%.20q matches", secret)
		}
	}
	s.Replace(nil)
	if _, ok := s.Match("one"); ok {
		t.Error("matches after it was replaced")
	}
}

func TestMatchWhileReplaced(t *testing.T) {
	var s Tokens
	s.Replace([]Token{{Label: "a", Secret: "one", Kind: App}})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				s.Replace([]Token{{Label: "a", Secret: "one", Kind: App}, {Label: "b", Secret: fmt.Sprint(i), Kind: App}})
				if token, ok := s.Match("one"); !ok || token.Label != "a" {
					t.Error("lost")
				}
			}
		})
	}
	wg.Wait()
}

func TestTokenKeepsItsSecret(t *testing.T) {
	x := Token{Label: "a", Secret: "geheimnis", Kind: App}
	j, _ := json.Marshal(x)
	for _, s := range []string{fmt.Sprint(x), fmt.Sprintf("%+v %#v %s %q", x, x, x, []Token{x}), string(j)} {
		if strings.Contains(s, "geheimnis") {
			t.Error(s)
		}
	}
}

func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	if tokens := must[[]Token](t)(LoadFile(path)); len(tokens) != 0 {
		t.Fatal(tokens)
	}
	write(t, path, "# ours\r\n\nold=aaaaaaaa")
	os.Chmod(path, 0o644)
	secret := must[string](t)(AddToFile(path, "new", time.Time{}))
	if len(secret) != 64 {
		t.Error("length", len(secret))
	}
	if _, err := AddToFile(path, "new", time.Time{}); !errors.Is(err, ErrDuplicate) {
		t.Error(err)
	}
	if _, err := AddToFile(path, "a b", time.Time{}); err == nil {
		t.Error("a label with a space")
	}
	got := must[[]Token](t)(LoadFile(path))
	if len(got) != 2 || got[1] != (Token{Label: "new", Secret: secret, Kind: App}) {
		t.Error(got)
	}
	if info := must[fs.FileInfo](t)(os.Stat(path)); info.Mode().Perm() != 0o600 {
		t.Error(info.Mode())
	}
	if err := RemoveFromFile(path, "old"); err != nil {
		t.Error(err)
	}
	if err := RemoveFromFile(path, "old"); !errors.Is(err, ErrUnknownLabel) {
		t.Error(err)
	}
	if text := string(must[[]byte](t)(os.ReadFile(path))); text != "# ours\n\nnew="+secret+"\n" {
		t.Errorf("%q", text)
	}
	at := time.Date(2030, 1, 31, 12, 0, 0, 0, time.UTC)
	guest := must[string](t)(AddToFile(path, "guest", at))
	got = must[[]Token](t)(LoadFile(path))
	if len(got) != 2 || got[1] != (Token{Label: "guest", Secret: guest, Kind: App, Expires: at}) {
		t.Error(got)
	}
	if got[1].Expired(at.Add(-1)) || !got[1].Expired(at) || got[0].Expired(at.AddDate(100, 0, 0)) {
		t.Error("the end of a token is not where it was set")
	}
	for _, bad := range []string{"a=geheimnis expires=tomorrow\n", "a=geheimnis expires=\n", "a=geheimnis until=2030-01-31T12:00:00Z\n",
		"a=geheimnis expires=2030-01-31T12:00:00Z x\n", "geheimnis\n", "a=geheimnis\na=b\n", "=geheimnis\n", "a=ge heimnis\n"} {
		write(t, path, bad)
		if _, err := LoadFile(path); err == nil || strings.Contains(err.Error(), "heimnis") {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := AddToFile(path, "other", time.Time{}); err == nil {
			t.Errorf("%q: added to a damaged file", bad)
		}
	}
}

func TestTokenFileManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := AddToFile(path, fmt.Sprint("l", i), time.Time{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := must[[]Token](t)(LoadFile(path)); len(got) != 8 {
		t.Error(got)
	}
}

func TestParseList(t *testing.T) {
	l := ParseList(" tel-1 ,tel-2,, ")
	if !l.Has("tel-1") || !l.Has("tel-2") || l.Has("TEL-1") || l.Has("tel-") || l.Has("") || len(l) != 2 || !l.Set() || ParseList(" ,").Set() {
		t.Error(l)
	}
}

func TestCodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		code := NewCode()
		if !ValidCode(code) || len(code) != 8 || strings.ContainsAny(code, "O0I1") {
			t.Fatal("form of a code")
		}
		shown := FormatCode(code)
		if NormalizeCode(" "+strings.ToLower(shown)+"\n") != code || NormalizeCode(code[:3]+" \u2013"+code[3:]) != code {
			t.Fatal("not understood")
		}
	})
	for _, s := range []string{"", "ABCDEFG", "ABCDEFGO", "ABCDEFGHJ", "abcdefgh"} {
		if ValidCode(s) {
			t.Error(s)
		}
	}
	if FormatCode("X") != "X" {
		t.Error("a short one")
	}
}

// The mark that editors on Windows put before a text is no part of it, and another encoding is
// named.
func TestTokenFileWithMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	write(t, path, "\ufeffold=aaaaaaaa\r\n")
	secret := must[string](t)(AddToFile(path, "new", time.Time{}))
	got := must[[]Token](t)(LoadFile(path))
	if len(got) != 2 || got[0].Label != "old" || got[0].Secret != "aaaaaaaa" || got[1].Secret != secret {
		t.Error(got)
	}
	write(t, path, "\xff\xfeo\x00=\x00")
	if _, err := LoadFile(path); err == nil || !strings.Contains(err.Error(), "UTF-16") {
		t.Error(err)
	}
}

func TestTokensOfDevices(t *testing.T) {
	const a, b = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	type token struct{ label, secret, device string }
	for _, c := range []struct {
		list  string
		names Names
		want  []token
		err   bool
	}{
		{list: "device:tel-1=" + a, want: []token{{"tel-1", a, "tel-1"}}},
		{list: "tel-1=" + a, want: []token{{"tel-1", a, ""}}},
		{list: "tel-1=" + a, names: Devices, want: []token{{"tel-1", a, "tel-1"}}},
		{list: "device:tel-1=" + a, names: Devices, want: []token{{"tel-1", a, "tel-1"}}},
		{list: "tablet=" + a + ",device:user@x:1=" + b, want: []token{{"tablet", a, ""}, {hashLabel(b), b, "user@x:1"}}},
		{list: "user@x:1=" + a + "," + b, names: Devices, want: []token{{hashLabel(a), a, "user@x:1"}, {hashLabel(b), b, ""}}},
		{list: "device:x=" + a + "==", want: []token{{"x", a + "==", "x"}}},
		{list: a + "==", names: Devices, want: []token{{hashLabel(a + "=="), a + "==", ""}}},
		{list: "device:=" + a, err: true},
		{list: "=" + a, names: Devices, err: true},
		{list: "device:a/b=" + a, err: true},
		{list: "a/b=" + a, names: Devices, err: true},
		{list: "device:" + strings.Repeat("d", 129) + "=" + a, err: true},
		{list: "device:x=" + a + ",device:x=" + b, err: true},
		{list: "device:x=" + a + ",x=" + b, err: true},
		{list: "device:x=" + a + ",device:y=" + a, err: true},
	} {
		tokens, err := ParseTokens(c.list, App, "", c.names)
		var got []token
		for _, x := range tokens {
			got = append(got, token{x.Label, x.Secret, x.Device})
		}
		if (err != nil) != c.err || !c.err && !slices.Equal(got, c.want) {
			t.Errorf("%q, %d: %v, %v", c.list, c.names, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "aaaa") {
			t.Errorf("%q: the error tells: %v", c.list, err)
		}
		var set Tokens
		set.Replace(tokens)
		for _, x := range c.want {
			if found, ok := set.Match(x.secret); !ok || found.Device != x.device || found.Label != x.label || found.Secret != "" {
				t.Errorf("%q: found %#v", c.list, found)
			}
		}
	}
	if _, err := ParseTokens("device:x="+a, Deliver, "", Labels); err == nil {
		t.Error("a token of senders is bound to a device")
	}
}
