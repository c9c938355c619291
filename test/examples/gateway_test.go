package examples

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exampleFunction is an example of a package: its name, and its lines without the frame.
var exampleFunction = regexp.MustCompile(`(?ms)^func (Example\w+)\(\) \{\n(.*?)^\}`)

// The examples in doc/gateway.md are those that the tests of the package run.
func TestGatewayExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "gateway", "*example_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	code := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range exampleFunction.FindAllStringSubmatch(string(text), -1) {
			lines := strings.ReplaceAll("\n"+m[2], "\n\t", "\n")
			code[m[1]] = "```go" + lines + "```\n"
		}
	}
	if *update {
		rewrite(t, "gateway.md", "example", func(name string) string { return code[name] })
	}
	shown := blocks(t, "gateway.md", "example")
	for name, text := range shown {
		if code[name] == "" {
			t.Errorf("doc/gateway.md shows %s, which package gateway has not", name)
		} else if text != code[name] {
			t.Errorf("doc/gateway.md does not show %s as it is; write it anew with -update", name)
		}
	}
	for _, name := range []string{"ExampleClient_Connect", "ExampleSessionService_All", "ExampleClient_StartTurn", "ExampleClient_ResumeTurn", "ExampleClient_StartTurn_openAI"} {
		if shown[name] == "" {
			t.Errorf("doc/gateway.md does not show %s", name)
		}
	}
}
