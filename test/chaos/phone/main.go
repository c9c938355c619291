//go:build unix

// Program phone is a phone of test/chaos as a process of its own, so that it can be killed like one: it keeps what it has to
// in a store of device.NewFileStore, does what it is told on its standard input, and says on its standard output what its app was shown.
// An event counts as handled when it is said: then the SDK moves its cursor.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"hermes-mobile/device"
	"hermes-mobile/frame"
	"hermes-mobile/test/chaos/handset"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run is a life of the phone: it ends with its input.
func run(setup string) error {
	var s handset.Setup
	if err := json.Unmarshal([]byte(setup), &s); err != nil {
		return err
	}
	store, err := device.NewFileStore(s.Folder)
	if err != nil {
		return err
	}
	cfg := s.Config()
	cfg.Store = store
	ctx := context.Background()
	dev, err := device.Open(ctx, cfg)
	if err != nil {
		return err
	}
	out := &output{enc: json.NewEncoder(os.Stdout), dev: dev}
	var loop sync.WaitGroup
	loop.Go(func() {
		for ev, err := range dev.Events(ctx) {
			if err != nil {
				return // closed
			}
			out.say(handset.Said{Event: handset.Pack(ev)})
		}
	})
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 4<<20)
	for in.Scan() {
		var o handset.Order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			return err
		}
		said := handset.Said{Done: o.N}
		if err := obey(ctx, dev, &o); err != nil {
			said.Error = err.Error()
		}
		out.say(said)
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	err = dev.Close(ctx)
	loop.Wait()
	return err
}

func obey(ctx context.Context, dev *device.Device, o *handset.Order) error {
	var err error
	switch o.Do {
	case handset.Send:
		_, err = dev.Send(ctx, o.Text, device.WithID(o.ID))
	case handset.SendFile:
		_, err = dev.SendFile(ctx, device.FileOptions{Name: o.Name, Mime: "application/octet-stream", Data: o.Data, Caption: o.Text}, device.WithID(o.ID))
	case handset.Answer:
		_, err = dev.Answer(ctx, o.ID, o.Text, "")
	case handset.Reconnect:
		dev.Reconnect()
	}
	return err
}

// output says one thing after the other.
type output struct {
	mu  sync.Mutex
	enc *json.Encoder
	dev *device.Device
}

func (o *output) say(s handset.Said) {
	o.mu.Lock()
	defer o.mu.Unlock()
	st := o.dev.Status()
	s.Pending, s.Online = len(o.dev.Pending()), st.State == device.Online && st.Agent == frame.Online
	_ = o.enc.Encode(s)
}
