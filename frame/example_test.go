package frame_test

import (
	"errors"
	"fmt"

	"hermes-mobile/frame"
)

// A server answers a bad frame with the error itself and keeps the connection open.
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

// A client accepts every frame and ignores what it does not know.
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
			fmt.Println(f.ID, "waits while the agent is offline:", f.Queued)
		case *frame.Unknown:
			fmt.Println("ignored:", f.Type)
		}
	}
	// Output:
	// r1 Counting… true
	// m1 waits while the agent is offline: true
	// ignored: weather
}

func ExampleEncodeUp() {
	fmt.Println(string(frame.EncodeUp(&frame.Answer{PromptID: "5f6a", OptionID: "once"})))
	// Output: {"t":"prompt","prompt_id":"5f6a","option_id":"once"}
}

func ExampleEncodeDown() {
	fmt.Println(string(frame.EncodeDown(&frame.Error{Code: frame.TooBig, Message: "the text exceeds the limit of 1 MiB: send it as a file", Ref: "m1"})))
	// Output: {"t":"error","code":"too_big","message":"the text exceeds the limit of 1 MiB: send it as a file","ref":"m1"}
}

// A command can hide what it does. Show the result, and tell the user why it needs a closer look.
func ExampleVisibleCommand() {
	shown := frame.VisibleCommand("ls\u202e fr mr-")
	fmt.Println(shown, shown.Hidden)
	// Output: ls[U+202E] fr mr- true
}

// An app enables the options that grant something only after the user saw the whole card.
func ExampleGrants() {
	for _, option := range []string{"once", "always", frame.DenyOption} {
		fmt.Println(option, frame.Grants(frame.ExecApproval, option))
	}
	// Output:
	// once true
	// always true
	// deny false
}

// A name comes from a stranger: remove what does not show, before it reaches a list.
func ExampleCleanName() {
	fmt.Printf("%q\n", frame.CleanName("Anna's\u202e phone\n"))
	// Output: "Anna's phone"
}
