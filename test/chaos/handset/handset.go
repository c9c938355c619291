// Package handset is what a phone of test/chaos that is a process of its own and its test tell each other: a line of JSON each.
package handset

import (
	"errors"
	"time"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// Setup is how a phone is set up.
type Setup struct {
	URL, Token, ID, Folder string
	User                   string // whose it is; empty: its own
	NoDelta                bool
}

// Config is that of the SDK, patient and quick as the tests want it.
func (s *Setup) Config() device.Config {
	return device.Config{URL: s.URL, Token: s.Token, Device: frame.Device{ID: s.ID, Name: "Phone"}, User: frame.User{ID: s.User}, NoDelta: s.NoDelta,
		Heartbeat: time.Second, PongTimeout: 2 * time.Second, DialTimeout: 3 * time.Second, AckTimeout: 5 * time.Second,
		Backoff: device.Backoff{Min: 20 * time.Millisecond, Max: time.Second, Stable: time.Second}}
}

// Order is what a phone is to do.
type Order struct {
	N        int
	Do       string
	ID, Text string // of an answer: the card, and the option
	Name     string // of a file
	Data     []byte
}

// What a phone can do.
const (
	Send      = "send"
	SendFile  = "send a file"
	Answer    = "answer"
	Reconnect = "reconnect"
)

// Said is what a phone says: that an order was obeyed, or what its app was shown.
type Said struct {
	Done    int    // number of the order
	Error   string // of the order
	Event   *Event
	Pending int  // messages without receipt, by now
	Online  bool // and so is the agent
}

// Event is an event of the SDK; one of its fields is set.
type Event struct {
	Message *device.Message
	File    *device.File
	Shown   *device.CardShown
	Done    *device.CardDone
	Echo    *device.Echo
	Lost    *device.HistoryLost
	Receipt *device.Receipt
	Status  *Status
	Problem *Problem
	Err     string // of a file or receipt
}

// Status is what is told of a device.StatusChanged.
type Status struct {
	State device.State
	Err   string
	Away  bool // the server said 1001
}

// Problem is a device.Problem; Code is that of the server's error frame.
type Problem struct {
	Code frame.Code
	Text string
}

// Pack returns an event as it is told, nil for one that is not.
func Pack(ev device.Event) *Event {
	text := func(err error) string {
		if err == nil {
			return ""
		}
		return err.Error()
	}
	switch ev := ev.(type) {
	case device.Message:
		if ev.Final {
			return &Event{Message: &ev}
		}
	case device.File:
		e := &Event{File: &ev, Err: text(ev.Err)}
		ev.Err = nil
		return e
	case device.CardShown:
		return &Event{Shown: &ev}
	case device.CardDone:
		return &Event{Done: &ev}
	case device.Echo:
		return &Event{Echo: &ev}
	case device.HistoryLost:
		return &Event{Lost: &ev}
	case device.Receipt:
		e := &Event{Receipt: &ev, Err: text(ev.Err)}
		ev.Err = nil
		return e
	case device.StatusChanged:
		return &Event{Status: &Status{State: ev.State, Err: text(ev.Err), Away: websocket.CloseStatus(ev.Err) == websocket.StatusGoingAway}}
	case device.Problem:
		p := &Problem{Text: ev.Err.Error()}
		if e := (*frame.Error)(nil); errors.As(ev.Err, &e) {
			p.Code = e.Code
		}
		return &Event{Problem: p}
	}
	return nil
}
