// Command shown reads a list of texts as JSON and writes how package frame shows each, as a text and as a command: the tests of the
// TypeScript SDK compare it with what the SDK makes of them.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"hermes-mobile/frame"
)

type shown struct {
	Segments []frame.Segment `json:"segments"`
	Folded   string          `json:"folded"`
	Hidden   bool            `json:"hidden"`
	Blank    bool            `json:"blank"`
	Long     bool            `json:"long"`
}

func of(s frame.Shown) shown { return shown{s.Segments, s.Folded(), s.Hidden, s.Blank, s.Long} }

func main() {
	var texts []string
	err := json.NewDecoder(os.Stdin).Decode(&texts)
	if err == nil {
		list := make([][2]shown, len(texts))
		for i, text := range texts {
			list[i] = [2]shown{of(frame.Visible(text)), of(frame.VisibleCommand(text))}
		}
		err = json.NewEncoder(os.Stdout).Encode(list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "shown:", err)
		os.Exit(1)
	}
}
