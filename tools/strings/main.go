// Command strings writes the sentences in a project's string literals, one file of text for each file of source, so that a prose
// linter can read help, errors, log lines and messages of the UI. A sentence keeps its line number.
//
//	go run ./strings FOLDER FILE…
//
// FILE is Go or TypeScript; FOLDER receives FILE.txt for each that has any.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: strings FOLDER FILE…")
		os.Exit(2)
	}
	for _, file := range os.Args[2:] {
		if err := extract(os.Args[1], file); err != nil {
			fmt.Fprintf(os.Stderr, "strings: %v\n", err)
			os.Exit(1)
		}
	}
}

// literal is a string of source, with the line it begins in.
type literal struct {
	line int
	text string
}

func extract(folder, file string) error {
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var found []literal
	if strings.HasSuffix(file, ".go") {
		found, err = goStrings(file, source)
	} else {
		found = scriptStrings(string(source))
	}
	if err != nil {
		return err
	}
	var out strings.Builder
	line := 1
	for _, l := range found {
		if !sentence(l.text) {
			continue
		}
		for ; line < l.line; line++ {
			out.WriteByte('\n')
		}
		out.WriteString(l.text)
		out.WriteByte(' ')
		line += strings.Count(l.text, "\n")
	}
	if out.Len() == 0 {
		return nil
	}
	to := filepath.Join(folder, file+".txt")
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(out.String()), 0o644)
}

// sentence reports whether a string is prose: three words at least, and not the text of a program.
func sentence(s string) bool {
	return len(strings.Fields(s)) >= 3 && !statement.MatchString(s)
}

var statement = regexp.MustCompile(`(?i)^\s*(?:select|insert|update|delete|create|alter|drop|pragma|with|begin)\s|[{};]\s*\n|</`)

func goStrings(file string, source []byte) ([]literal, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, file, source, 0)
	if err != nil {
		return nil, err
	}
	var found []literal
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				found = append(found, literal{set.Position(l.Pos()).Line, text})
			}
		}
		return true
	})
	return found, nil
}

var quoted = regexp.MustCompile("'(?:[^'\\\\\n]|\\\\.)*'|\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")

func scriptStrings(source string) []literal {
	var found []literal
	for _, at := range quoted.FindAllStringIndex(source, -1) {
		found = append(found, literal{1 + strings.Count(source[:at[0]], "\n"), source[at[0]+1 : at[1]-1]})
	}
	return found
}
