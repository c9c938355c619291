// Command client sends one message and prints the reply.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

func main() {
	ctx := context.Background()
	store, err := device.NewFileStore("my-device") // cursor, unsent messages and the device's token
	if err != nil {
		log.Fatal(err)
	}
	dev, err := device.Open(ctx, device.Config{
		URL:      os.Getenv("HERMES_URL"),  // wss://agent.example.com/ws
		PairCode: os.Getenv("HERMES_PAIR"), // the first time only
		Device:   frame.Device{ID: "bot-1", Name: "Bot"},
		Store:    store,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close(ctx) }()
	if err := dev.WaitOnline(ctx); err != nil {
		log.Fatal(err) // holds a message for the user
	}
	if _, err := dev.Send(ctx, "What is the weather?"); err != nil {
		log.Fatal(err)
	}
	for ev, err := range dev.Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		switch ev := ev.(type) {
		case device.Message:
			if ev.Final {
				fmt.Println(ev.Text)
				return
			}
		case device.CardShown:
			fmt.Println(ev.Text, ev.Command) // ask the user; this example always denies
			if ev.Kind == frame.ExecApproval {
				if _, err := dev.Answer(ctx, ev.ID, "deny", ""); err != nil {
					log.Print(err)
				}
			}
		}
	}
}
