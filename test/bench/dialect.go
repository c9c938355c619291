package main

import (
	"bytes"
	"encoding/json"
)

// dialect is how a server with a protocol of its own wraps the frames of devices. Frames themselves stay the same.
type dialect struct {
	up   func(p []byte) []byte
	down func(line []byte) []byte // nil: the line is no frame
	ping []byte                   // is answered with itself
}

// centrifugal is the JSON protocol of centrifuge: hello goes with the command that connects, and ready comes with its
// answer; other frames are messages. A message of the WebSocket may hold several, each in a line.
var centrifugal = &dialect{
	up: func(p []byte) []byte {
		if bytes.HasPrefix(p, []byte(`{"t":"hello"`)) {
			return wrap(`{"id":1,"connect":{"data":`, p, `}}`)
		}
		return wrap(`{"send":{"data":`, p, `}}`)
	},
	down: func(line []byte) []byte {
		_, rest, ok := bytes.Cut(line, []byte(`"data":`))
		if !ok {
			return nil
		}
		if bytes.HasPrefix(line, []byte(`{"push"`)) {
			return bytes.TrimSuffix(rest, []byte(`}}}`))
		}
		var p json.RawMessage // members of the answer come after it
		if json.NewDecoder(bytes.NewReader(rest)).Decode(&p) != nil {
			return nil
		}
		return p
	},
	ping: []byte(`{}`),
}

func wrap(before string, p []byte, after string) []byte {
	b := make([]byte, 0, len(before)+len(p)+len(after))
	return append(append(append(b, before...), p...), after...)
}
