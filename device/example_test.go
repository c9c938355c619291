package device_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/device/devicetest"
	"hermes-mobile/frame"
)

// A whole chat: send a message, show the reply, and leave.
func Example() {
	url := echoServer()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	dev, err := device.Open(ctx, device.Config{URL: url, Token: "secret", Device: frame.Device{ID: "tel-1", Name: "Phone"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close(ctx)
	if _, err := dev.Send(ctx, "hello"); err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range dev.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if m, ok := ev.(device.Message); ok && m.Final {
			fmt.Println(m.Text)
			return
		}
	}
	// Output: You said: hello
}

// A script that sends one message and needs to know that it arrived.
func ExampleOutgoing_Wait() {
	url := echoServer()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	dev, err := device.Open(ctx, device.Config{URL: url, Token: "secret", Device: frame.Device{ID: "cron-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close(ctx)
	msg, err := dev.Send(ctx, "the backup is done")
	if err != nil {
		fmt.Println(err)
		return
	}
	receipt, err := msg.Wait(ctx)
	fmt.Println(receipt.Queued, err)
	// Output: false <nil>
}

// A bot that denies every command of the agent, and stops when the server does.
func ExampleDevice_Answer() {
	url := cardServer()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	dev, err := device.Open(ctx, device.Config{URL: url, Token: "secret", Device: frame.Device{ID: "bot-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close(ctx)
	for ev, err := range dev.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch ev := ev.(type) {
		case device.CardShown:
			fmt.Println("May I run", frame.VisibleCommand(ev.Command))
			if _, err := dev.Answer(ctx, ev.ID, frame.DenyOption, ""); err != nil {
				fmt.Println(err)
			}
		case device.CardDone:
			fmt.Println("The card ended with", ev.OptionID)
			return
		}
	}
	// Output:
	// May I run rm -rf build
	// The card ended with deny
}

// An app tells the user why the server rejects the device.
func ExampleDevice_WaitOnline() {
	url := closedServer()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()

	dev, err := device.Open(ctx, device.Config{URL: url, Token: "wrong", Device: frame.Device{ID: "tel-1"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer dev.Close(ctx)
	var denied *device.NoAccessError
	if err := dev.WaitOnline(ctx); errors.As(err, &denied) {
		fmt.Println(denied.Code, denied.Message)
	}
	// Output: auth_failed the token is wrong
}

// cardServer stands in for an agent that asks to run a command.
func cardServer() string {
	srv := devicetest.New(exampleT{})
	go func() {
		defer srv.Close()
		c := srv.Accept(nil)
		c.Send(&frame.Prompt{ID: "p1", Kind: frame.ExecApproval, Command: "rm -rf build",
			Options: []frame.Option{{ID: "once", Label: "Allow once"}, {ID: frame.DenyOption, Label: "Deny"}}})
		a := devicetest.Expect[*frame.Answer](c)
		c.Send(&frame.PromptDone{PromptID: a.PromptID, ID: a.PromptID, OptionID: a.OptionID, Seq: 1})
		c.Gone()
	}()
	return srv.URL
}

// closedServer stands in for a server that rejects the token.
func closedServer() string {
	srv := devicetest.New(exampleT{})
	go func() {
		defer srv.Close()
		c := srv.Next()
		c.Send(&frame.Error{Code: frame.AuthFailed, Message: "the token is wrong"})
		c.Close(frame.CloseNoAccess, "")
	}()
	return srv.URL
}

// echoServer stands in for `hermes-mobile serve`.
func echoServer() string {
	srv := devicetest.New(exampleT{})
	go func() {
		defer srv.Close()
		c := srv.Accept(nil)
		m := devicetest.Expect[*frame.Text](c)
		c.Send(&frame.Accepted{ID: m.ID}, &frame.Message{ID: "r1", Text: "You said: " + m.Text, Final: true, ReplyTo: m.ID, Seq: 1})
		c.Gone()
	}()
	return srv.URL
}

// exampleT lets an example use the test server, where a client that leaves early is not a failure.
type exampleT struct{ testing.TB }

func (exampleT) Helper()               {}
func (exampleT) Cleanup(func())        {}
func (exampleT) Fatal(...any)          { runtime.Goexit() }
func (exampleT) Fatalf(string, ...any) { runtime.Goexit() }
func (exampleT) Errorf(string, ...any) {}
