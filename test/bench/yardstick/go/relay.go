package main

import (
	"bytes"

	"github.com/go-json-experiment/json"
)

// relay is the connection of a gateway.
type relay struct {
	y    *yard
	peer peer
}

func (y *yard) relay(p peer) reader { return &relay{y, p} }

func (r *relay) end() {}

type action struct {
	Op      string `json:"op"`
	ChatID  string `json:"chat_id"`
	Content string `json:"content"`
}

// text is one or more lines of a gateway.
func (r *relay) text(p []byte) error {
	for line := range bytes.Lines(p) {
		var f struct {
			Type      string `json:"type"`
			RequestID string `json:"requestId"`
			Action    action `json:"action"`
		}
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		switch f.Type {
		case "hello":
			r.y.mu.Lock()
			r.y.gateway = r.peer
			r.y.mu.Unlock()
			if err := r.peer.send([]byte(`{"type":"descriptor","descriptor":{"platform":"relay"}}` + "\n")); err != nil {
				return err
			}
		case "outbound":
			said := "false"
			if d := r.y.find(f.Action.ChatID); d != nil && d.apply(&f.Action) == nil {
				said = "true"
			}
			if err := r.peer.send([]byte(`{"type":"outbound_result","requestId":"` + f.RequestID + `","result":{"success":` + said + "}}\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// apply shows the device what the gateway did. Marks and repeated typing are not shown.
func (d *device) apply(a *action) error {
	switch a.Op {
	case "draft":
		d.mu.Lock()
		d.steps++
		first := d.steps == 1
		d.mu.Unlock()
		if first {
			if err := d.peer.send([]byte(`{"t":"avatar","state":"speaking"}`)); err != nil {
				return err
			}
		}
		return d.say(a.Content, true, false)
	case "send":
		if err := d.say(a.Content, true, true); err != nil {
			return err
		}
		return d.peer.send([]byte(`{"t":"typing","stop":true}`))
	}
	return nil
}
