package readers

import (
	"strings"
	"testing"

	"hermes-mobile/test/hermes"
)

// yamlTexts are config.yaml files that readers of YAML take for different things.
func yamlTexts() []string {
	list := []string{
		"", "\n", "# only a comment\n", "---\n", "...\n", "---\n...\n", "a: 1\n...\n", "a: 1\n...\nb: 2\n", "---\na: 1\n---\n", "a: 1\n---\nb: 2\n", "%YAML 1.1\n---\na: 1\n", "%YAML 1.2\n---\na: 1\n", "%YAML 2.0\n---\na: 1\n", "%TAG ! tag:x,2000:\n---\na: 1\n", "%FOO bar\n---\na: 1\n",
		"null\n", "~\n", "text\n", "1\n", "- a\n", "[]\n", "{}\n", "{a: 1}\n", "\"a\": 1\n", "a\n", "a:\n", "a: b: c\n", "a: 'b\n", "a: \"b\n", "a: [1\n", "a: {b: 1\n", "a: ]\n",
		// Keys twice.
		"a: 1\na: 2\n", "a: 1\n\"a\": 2\n", "a: 1\n'a': 2\n", "a: {b: 1, b: 2}\n", "a:\n  b: 1\n  b: 2\n", "a:\n  - {b: 1, b: 2}\n", "x: &x {a: 1}\ny:\n  <<: *x\n  a: 2\n", "x: &x {a: 1}\ny:\n  a: 2\n  <<: *x\n", "x: &x {a: 1}\ny:\n  <<: *x\n  <<: *x\n",
		"x: &x {a: 1}\ny: {<<: [*x, *x]}\n", "1: a\n1: b\n", "1: a\n0x1: b\n", "yes: a\ntrue: b\n", "~: a\nnull: b\n", "? a\n: 1\n? a\n: 2\n", "a: 1\nA: 2\n", "a: 1\nb: 2\na : 3\n", "1: a\n\"1\": b\n", "1.0: a\n1: b\n", "!!str a: 1\na: 2\n", "&k a: 1\na: 2\n",
		// Tags.
		"a: !secret x\n", "a: !include f.yaml\n", "a: !env_var X\n", "a: !!python/object:os.system x\n", "a: !!str 1\n", "a: !!int \"1\"\n", "a: !!int x\n", "a: !!float 1\n", "a: !!bool yes\n", "a: !!null ''\n", "a: !!binary aGk=\n", "a: !!binary '***'\n", "a: !!timestamp 2020-01-01\n",
		"a: !!set {b, c}\n", "a: !!omap [b: 1]\n", "a: !!map {b: 1}\n", "a: !!seq [b]\n", "a: ! x\n", "a: !<tag:yaml.org,2002:str> x\n", "a: !<x> y\n", "!!map\na: 1\n", "!x\na: 1\n", "a: !!foo x\n", "a: !x!y z\n", "a: [!secret b]\n", "!secret a: b\n",
		// Signs.
		"a: b\x01\n", "a: \"b\x01\"\n", "# \x01\na: b\n", "a: b\x7f\n", "# \x7f\na: b\n", "a: b\u0080\n", "a: b\u009f\n", "a: b\u0085c\n", "a: \"b\u0085c\"\n", "a: b\u2028c\n", "a: b\u2029c\n", "a: \"b\u2028c\"\n", "# c\u2028a: 1\nb: 2\n", "a: 1 # c\u2028b\n", "# x\u0085y\na: 1\n", "a: b\ufffe\n", "a: b\uffff\n", "a: b\ufeffc\n", "\ufeffa: 1\n", "\ufeff\ufeffa: 1\n", "a: \ufeffb\n",
		"a: b\x00\n", "a: \"\\x00\"\n", "a: \"\\ud800\"\n", "a: \"\\z\"\n", "a: \"\\u12\"\n", "a: \"\\/\"\n", "a: \"\\e\\_\\N\\L\\P\"\n", "a: 😀\n", "a: \"\\U0001F600\"\n", "a: b\x0bc\n", "a: b\x0cc\n", "a: b\x1bc\n", "a: \tb\n", "a:\tb\n", "\ta: 1\n", "a:\n\tb: 1\n", "a:\n  b: 1\t\n", "a: 1\t# c\n", "a: [1,\t2]\n", "a:\n  - 1\n\t- 2\n", "a: {\n\tb: 1}\n", "gateway:\t{a: 1}\n", "a: |\n\tb\n", "a: |\n  \tb\n", "\t\na: 1\n", "\t# c\na: 1\n", "a: 1\n\t\n", "  \t\na: 1\n",
		"a: 1\rb: 2\r", "a: 1\r\nb: 2\r\n", "a: 1\r\n\rb: 2\n", "a: b\rc\n",
		// Forms.
		"a: @x\n", "a: `x`\n", "a: %x\n", "a: *x\n", "a: &x\n", "a: &x 1\nb: *x\n", "a: *x\nb: &x 1\n", "a: &x [*x]\n", "&x a: *x\n", "a: &x 1\nb: &x 2\nc: *x\n", "a: -\n", "a: - b\n", "a: ? b\n", "- a: 1\n  b\n", "a: 1\n b: 2\n", " a: 1\nb: 2\n", "a:\n   b: 1\n  c: 2\n", "a:\n- b\n- c\n", "a:\n - b\n- c\n", "a:\n  b\n  c\n", "a: b\n  c\n", "a: b\nc\n", "a: b #c\n", "a: b#c\n", "a: #c\n  b\n", "a: 'b''c'\n", "a: 'b' c\n", "a: \"b\" c\n", "a: 'b'#c\n",
		"a: [1, 2,]\n", "a: [1,,2]\n", "a: [,1]\n", "a: {b: 1,}\n", "a: {b}\n", "a: {b: }\n", "a: {b:1}\n", "a: {\"b\":1}\n", "a: {? b : 1}\n", "a: [b: 1]\n", "a: [b: 1, c: 2]\n", "a: {b: 1} c\n", "a: [1] # c\n", "a: [1]#c\n", "a: {b: http://x}\n", "a: [{url: http://h}]\n", "a: {b: x:y}\n", "a: [x:y]\n", "{\n\"a\": 1\n}\n", "{\"a\": 1,\n\"b\": [1, 2]}\n", "a: {b: 1\n}\n", "a: {b: 1\n  }\n", "a: [\n1\n]\n", "a: [\n  1\n]\n",
		"a: |\n  b\n c\n", "a: |2\n   b\n", "a: |+\n  b\n\n", "a: >-\n  b\n  c\n", "a: |x\n  b\n", "a: | # c\n  b\n", "a: |\nb: 1\n", "a: |-1\n b\n", "a: >\n\n  b\n", "? a\n: b\n", "? a\n", "? [a, b]\n: c\n", "? {a: b}\n: c\n", "[a, b]: c\n", "{a: b}: c\n", "a b: c\n", "a:b: c\n", "a::b: c\n", ": a\n", "- : a\n", "'': a\n", "a: 1: 2\n", "a: \"b\": c\n", "\"a\" : 1\n", "\"a\nb\": 1\n", "a\nb: 1\n", strings.Repeat("k", 1100) + ": 1\n", "? " + strings.Repeat("k", 1100) + "\n: 1\n",
		"a: 012\n", "a: 0o12\n", "a: 0b1\n", "a: 1_000\n", "a: 1:30\n", "a: .inf\n", "a: .nan\n", "a: 1e3\n", "a: 1.e+3\n", "a: yes\n", "a: y\n", "a: on\n", "a: Off\n", "a: ~\n", "a: NULL\n", "a: 2020-01-01\n", "a: 2020-13-45\n", "a: 2020-01-01t25:61:00\n", "a: =\n", "a: <<\n", "<<: {a: 1}\n", "<<: 1\n", "<<: [1]\n", "a: !!merge b\n",
		"a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]\n", strings.Repeat("[", 60) + strings.Repeat("]", 60) + "\n", "a: " + strings.Repeat("[", 200) + strings.Repeat("]", 200) + "\n",
	}
	return list
}

type yamlAnswer struct {
	Text string `json:"text"`
	// Old and New are why Hermes 0.19 and 0.22 refuse it; empty: they read it.
	Old string `json:"0.19"`
	New string `json:"0.22"`
}

// TestConfig: what the gateways of both versions make of a config.yaml.
func TestConfig(t *testing.T) {
	texts := yamlTexts()
	const common = `
import json, pathlib, sys, tempfile, logging
logging.disable(logging.CRITICAL)
home = pathlib.Path(tempfile.mkdtemp())
def answer(text):
    (home / "config.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        value = read(home)
    except RecursionError:
        return "RecursionError"
    except Exception as e:
        return type(e).__name__ + ": " + (str(e).splitlines() or [""])[0]
    return "" if isinstance(value, dict) else "it is a " + type(value).__name__
`
	var old, newer []string
	python(t, hermes.V019, common+`
import yaml
def read(home):
    with open(home / "config.yaml", encoding="utf-8") as f:
        return yaml.safe_load(f) or {}
json.dump([answer(t) for t in json.load(sys.stdin)], sys.stdout)
`, texts, &old)
	python(t, hermes.V022, common+`
from gateway.config_loader import read_yaml_layers
def read(home):
    return read_yaml_layers(home) or {}
json.dump([answer(t) for t in json.load(sys.stdin)], sys.stdout)
`, texts, &newer)
	answers := make([]yamlAnswer, len(texts))
	for i, text := range texts {
		answers[i] = yamlAnswer{text, old[i], newer[i]}
	}
	compare(t, "../../internal/setup/testdata/readers.json", answers)
}
