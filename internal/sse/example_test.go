package sse_test

import (
	"fmt"
	"strings"

	"hermes-mobile/internal/sse"
)

func ExampleReader() {
	r := sse.NewReader(strings.NewReader(": open\n\nevent: greeting\nid: 1\ndata: hello\ndata: world\n\n"), 1<<20)
	for {
		ev, err := r.Next()
		if err != nil {
			break
		}
		fmt.Printf("%s %s %q\n", ev.Name, ev.ID, ev.Data)
	}
	// Output: greeting 1 "hello\nworld"
}
