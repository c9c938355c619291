package device_test

import (
	"context"
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
