package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"hermes-mobile/gateway"
)

// Follow a turn to its end and answer what it asks.
func ExampleClient_StartTurn() {
	follow := func(ctx context.Context, client *gateway.Client, session string, allow func(gateway.Approval) string) error {
		turn, err := client.StartTurn(ctx, gateway.TurnRequest{SessionID: session, Text: "What is new?"})
		if err != nil {
			return err
		}
		defer turn.Close()
		var reply gateway.Reply
		for event, err := range turn.Events(ctx) {
			if err != nil {
				return err
			}
			reply.Apply(event)
			switch e := event.(type) {
			case gateway.ApprovalRequested:
				if err := turn.Answer(ctx, gateway.ApprovalAnswer{RequestID: e.Approval.ID, Choice: allow(e.Approval)}); err != nil {
					fmt.Println(err)
				}
			case gateway.Ended:
				fmt.Println(e.Outcome.State, e.Outcome.Text())
			}
		}
		return nil
	}
	_ = follow
}

// Come back to a turn after the program was started anew: the lease is stored whenever it changes, and the position with
// each event that was handled.
func ExampleClient_ResumeTurn() {
	var storedLease []byte
	var storedPosition string
	begin := func(ctx context.Context, client *gateway.Client) (*gateway.Turn, error) {
		return client.StartTurn(ctx, gateway.TurnRequest{SessionID: "s", Text: "hello", OnLease: func(l gateway.Lease) {
			storedLease, _ = json.Marshal(l)
		}})
	}
	comeBack := func(ctx context.Context, client *gateway.Client) (*gateway.Turn, error) {
		var lease gateway.Lease
		if err := json.Unmarshal(storedLease, &lease); err != nil {
			return nil, err
		}
		return client.ResumeTurn(ctx, lease, storedPosition)
	}
	_, _ = begin, comeBack
}

// A stream is read event by event, wherever it is cut.
func ExampleEventReader() {
	r := gateway.NewEventReader(strings.NewReader(": open\n\nevent: greeting\nid: 1\ndata: hello\ndata: world\n\n"), 0)
	for {
		ev, err := r.Next()
		if err != nil {
			break
		}
		fmt.Printf("%s %s %q\n", ev.Name, ev.ID, ev.Data)
	}
	// Output: greeting 1 "hello\nworld"
}

// The text of a reply is put together from its events.
func ExampleReply() {
	var reply gateway.Reply
	for _, event := range []gateway.Event{
		gateway.Delta{Text: "Let me "}, gateway.Delta{Text: "look. "},
		gateway.Commentary{Text: "Let me look."}, // the same text again, whole
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
