package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"

	"hermes-mobile/gateway"
)

// Follow a turn to its end and answer its approvals.
func ExampleClient_StartTurn() {
	server, client := connected()
	defer server.Close()
	defer client.Close()
	ctx := context.Background()
	turn, err := client.StartTurn(ctx, gateway.TurnRequest{SessionID: "a", Text: "Tidy up, please."})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer turn.Close()
	for event, err := range turn.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := event.(type) {
		case gateway.Delta:
			fmt.Printf("%q\n", e.Text)
		case gateway.ApprovalRequested:
			fmt.Println("may it run", e.Approval.Command, e.Approval.Choices)
			if err := turn.Answer(ctx, gateway.ApprovalAnswer{RequestID: e.Approval.ID, Choice: "once"}); err != nil {
				fmt.Println(err)
			}
		case gateway.Ended:
			fmt.Println(e.Outcome.State, e.Outcome.Text())
		}
	}
	// Output:
	// "Let me look. "
	// may it run rm -r cache [once session always deny]
	// "All is tidy."
	// completed Let me look. All is tidy.
}

// Resume a turn after a restart of the program: store the handle whenever it changes, and the
// position of each event that was processed.
func ExampleClient_ResumeTurn() {
	server, client := connected()
	defer server.Close()
	ctx := context.Background()
	var storedHandle []byte
	var storedPosition, approval string

	turn, err := client.StartTurn(ctx, gateway.TurnRequest{SessionID: "a", Text: "Tidy up, please.", OnHandle: func(h gateway.TurnHandle) {
		storedHandle, _ = json.Marshal(h) // a handle can always be encoded
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for event, err := range turn.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		storedPosition = event.At().Position
		if e, ok := event.(gateway.ApprovalRequested); ok {
			approval = e.Approval.ID
			break
		}
	}
	turn.Close()
	client.Close() // the program ends here, and the run continues

	client = connect(server)
	defer client.Close()
	var handle gateway.TurnHandle
	if err := json.Unmarshal(storedHandle, &handle); err != nil {
		fmt.Println(err)
		return
	}
	if turn, err = client.ResumeTurn(ctx, handle, storedPosition); err != nil {
		fmt.Println(err)
		return
	}
	defer turn.Close()
	if err := turn.Answer(ctx, gateway.ApprovalAnswer{RequestID: approval, Choice: "once"}); err != nil {
		fmt.Println(err)
	}
	for event, err := range turn.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch e := event.(type) {
		case gateway.Delta:
			fmt.Printf("%q\n", e.Text)
		case gateway.Ended:
			fmt.Println(e.Outcome.State)
		}
	}
	// Output:
	// "All is tidy."
	// completed
}

// Other servers with OpenAI's API run turns too. The program sends the history.
func ExampleClient_StartTurn_openAI() {
	server := standIn()
	defer server.Close()
	client, err := gateway.New(
		gateway.Profile{Kind: gateway.OpenAI, Remote: server.URL, Auth: gateway.AuthBearer},
		gateway.Credentials{Token: gateway.NewSecret("api-server-key")},
		gateway.Options{},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	turn, err := client.StartTurn(ctx, gateway.TurnRequest{Text: "And in French?", Model: "llama", Mode: gateway.ModeCompletions, History: []gateway.ChatMessage{
		{Role: "user", Text: "What is hello in German?"}, {Role: "assistant", Text: "Hallo."},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer turn.Close()
	for event, err := range turn.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if e, ok := event.(gateway.Ended); ok {
			fmt.Println(e.Outcome.State, e.Outcome.Text())
		}
	}
	// Output: completed Bonjour.
}

// Assemble the text of a reply from its events.
func ExampleReply() {
	var reply gateway.Reply
	for _, event := range []gateway.Event{
		gateway.Delta{Text: "Let me "}, gateway.Delta{Text: "look. "},
		gateway.Commentary{Text: "Let me look."}, // the same text again, in full
		gateway.ToolStarted{Name: "terminal"},
		gateway.Delta{Segment: 1, Text: "All is well."},
	} {
		reply.Apply(event)
	}
	fmt.Println(reply.Text())
	// Output:
	// Let me look.
	//
	// All is well.
}
