package frame_test

import (
	"errors"
	"fmt"

	"hermes-mobile/frame"
)

// A server answers what it cannot take with the error itself, and the connection goes on.
func ExampleDecodeUp() {
	for _, raw := range []string{
		`{"t":"text","id":"m1","text":"hello"}`,
		`{"t":"text","id":"m2","text":"   "}`,
		`{"t":"hologram","id":"h1"}`,
	} {
		f, err := frame.DecodeUp([]byte(raw))
		var e *frame.Error
		if errors.As(err, &e) {
			fmt.Println(e.Code, e.Ref)
			continue
		}
		switch f := f.(type) {
		case *frame.Text:
			fmt.Printf("%s says %q\n", f.ID, f.Text)
		}
	}
	// Output:
	// m1 says "hello"
	// bad_frame m2
	// unsupported_frame h1
}

// A client takes every frame: what it does not know it ignores.
func ExampleDecodeDown() {
	for _, raw := range []string{
		`{"t":"message","id":"r1","text":"Counting…","edit":true,"chunk":{"index":0,"total":1},"final":false}`,
		`{"t":"accepted","id":"m1","duplicate":false,"queued":true,"since":"tomorrow"}`,
		`{"t":"weather","sun":true}`,
	} {
		f, err := frame.DecodeDown([]byte(raw))
		if err != nil {
			fmt.Println(err)
			continue
		}
		switch f := f.(type) {
		case *frame.Message:
			fmt.Println(f.ID, f.Text, f.Edit)
		case *frame.Accepted:
			fmt.Println(f.ID, "is kept while the agent is away:", f.Queued)
		case *frame.Unknown:
			fmt.Println("ignored:", f.Type)
		}
	}
	// Output:
	// r1 Counting… true
	// m1 is kept while the agent is away: true
	// ignored: weather
}

func ExampleEncodeUp() {
	fmt.Println(string(frame.EncodeUp(&frame.Answer{PromptID: "5f6a", OptionID: "once"})))
	// Output: {"t":"prompt","prompt_id":"5f6a","option_id":"once"}
}

func ExampleEncodeDown() {
	fmt.Println(string(frame.EncodeDown(&frame.Error{Code: frame.TooBig, Message: "the text is longer than 1 MiB: send it as a file", Ref: "m1"})))
	// Output: {"t":"error","code":"too_big","message":"the text is longer than 1 MiB: send it as a file","ref":"m1"}
}
