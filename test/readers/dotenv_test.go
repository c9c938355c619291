package readers

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"hermes-mobile/test/hermes"
)

var update = flag.Bool("update", false, "write down what the real readers answer")

// python runs a script in the environment of a Hermes with JSON on its standard input, and decodes what it prints.
func python(t *testing.T, v hermes.Version, script string, in, out any) {
	t.Helper()
	if err := hermes.Available(v); err != nil {
		t.Skip(err)
	}
	program, err := hermes.Python(v)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-c", script)
	cmd.Stdin = bytes.NewReader(data)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	answer, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, errs.String())
	}
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatalf("%v: %.200s", err, answer)
	}
}

// compare compares what was answered with what is written down.
func compare(t *testing.T, path string, answer any) {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(answer); err != nil {
		t.Fatal(err)
	}
	// Line ends and marks of a file would not survive every editor.
	text := []byte(strings.NewReplacer("\u2028", `\u2028`, "\u2029", `\u2029`, "\ufeff", `\ufeff`, "\u00a0", `\u00a0`, "\u0085", `\u0085`, "\x7f", `\u007f`).Replace(b.String()))
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, text) {
		t.Errorf("%s is not what the real readers answer now: look at the difference, then: go test ./test/readers -update", path)
	}
}

// dotenvTexts are texts of .env files: the forms of key, sign, value and end in all combinations that matter, and whole files.
func dotenvTexts() []string {
	list := []string{"", "\n", "# only\n  # comments\n\n", "A", "A\n", "export A\n", "A=", "A=\n", "=1\n", "A B=1\nC=2\n", "A=1\r\nB=2\rC=3", "export  A = b c # d", "export\u00a0A=1",
		"\u00a0A=1\n", "A\u00a0=\u00a01\n", "A=1\u00a0# c\n", "A=1 \u2028# c\n", "A=1\x1c# c\n", "A=b\u2003\n", "A=b\u0085\n", "'A B'=1", "'A'=1", "'A=1\nB=2\n", "''=1\n", "\"A\"=1\n",
		"A=#c\nB= #c", "A=1\n\n\nB=2\n", "A=\"x\ny\"\nB=1\n", "A='x\ny'\nB=1\n", "A='b\nB=1", "A=\"b\nB=1", "A=\"b\" c\nB=1", "A='b' # c\nB=1", "A='b'# c\nB=1", "A='b'c # d\nB=1\n",
		`A="b\n\"c\\d\q"`, `A='b\n\'c'`, `A="a\\"` + "\nB=\"b\"", `A='a\'` + "\nB=1\n", `A='a\'` + "\nB='b'\n", `A="a\"` + "\nB=1\n", `A='\\'`, `A="\a\b\f\n\r\t\v\\\'\""`, `A='\a\"\\'`, `A=a\nb`,
		"A=${B}\nB=1\nC=${B}\nD=\"${B}x${NONE:-y}\"\nE='${B}'\nF=${NONE}\nG=${OUTER}\nH=${B:-z}\nI=$B\nJ=${B\nK=${}\n", "A=1\nA=2\nA\n", "A=1\nA=\nA=${A}x\n", "A==b\n", "A=b=c\n", "A='b'='c'\n",
		"export=1\n", "exportA=1\n", "export export A=1\n", "A=1 export B=2\n", "A: 1\n", "A=[1, 2]\n", "{\"A\": 1}\n", "A=1;B=2\n", "A=`b`\n", "A=$(b)\n", "A=ä€😀\n", "Ä=1\n", "A\x00B=1\n", "A=1\x00\n",
		"A='", "A=\"", "A='\n", "\"", "'", "export", "export ", "#A=1", "A#=1\n", "A=1#\n", "A=1 #\n", "A= \n", "A=\t1\t\n", "\tA=1\n", "A=\v1\n", "A=1\f# c\n"}
	for _, key := range []string{"A", "export A", "'A'"} {
		for _, sign := range []string{"=", " = "} {
			for _, value := range []string{"b", "b c", "'b'", `"b"`, `'b\'c'`, `"b\"c"`, "'b # c'", "b#c", "'b\nc'", ""} {
				for _, end := range []string{"", " # d", "# d", " d"} {
					list = append(list, key+sign+value+end+"\nZ=1\n")
				}
			}
		}
	}
	return list
}

// dotenvEntry is one binding, as python-dotenv gives it.
type dotenvEntry struct {
	Key   *string `json:"key"`
	Value *string `json:"value"`
	Error bool    `json:"error,omitempty"`
	Line  int     `json:"line"`
}

type dotenvAnswer struct {
	Text    string             `json:"text"`
	Entries []dotenvEntry      `json:"entries"`
	Values  map[string]*string `json:"values"` // with ${NAME} replaced
}

// TestDotenv: python-dotenv, of the release that both versions of Hermes want.
func TestDotenv(t *testing.T) {
	script := `
import io, json, os, sys
from dotenv.parser import parse_stream
from dotenv.main import DotEnv
os.environ.clear()
os.environ["OUTER"] = "o"
out = []
for text in json.load(sys.stdin):
    entries = [{"key": b.key, "value": b.value, "error": b.error, "line": b.original.line} for b in parse_stream(io.StringIO(text)) if b.key is not None or b.error]
    values = DotEnv(dotenv_path=None, stream=io.StringIO(text), interpolate=True, override=True).dict()
    out.append({"text": text, "entries": entries, "values": values})
json.dump(out, sys.stdout)
`
	var first []dotenvAnswer
	for _, v := range []hermes.Version{hermes.V019, hermes.V022} {
		var answer []dotenvAnswer
		python(t, v, script, dotenvTexts(), &answer)
		if first == nil {
			first = answer
		}
		compare(t, "../../internal/dotenv/testdata/python-dotenv.json", answer)
	}
}
