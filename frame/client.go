package frame

import (
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// DecodeDown reads one text message of a server, as a client must: unknown fields are ignored and an unknown type gives
// an *Unknown. The error is for what no server of this protocol sends.
func DecodeDown(data []byte) (Down, error) {
	var head struct {
		T string `json:"t"`
	}
	options := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := json.Unmarshal(data, &head, options); err != nil {
		return nil, fmt.Errorf("frame: read type: %w", err)
	}
	f := newDown(head.T)
	switch f := f.(type) {
	case *Unknown:
		return f, nil
	case *Result:
		var r struct {
			ID     string         `json:"id"`
			Result jsontext.Value `json:"result"`
			Err    *CallError     `json:"error"`
		}
		if err := json.Unmarshal(data, &r, options); err != nil {
			return nil, fmt.Errorf("frame: read result: %w", err)
		}
		f.ID, f.Result, f.Err = r.ID, []byte(r.Result), r.Err
		return f, nil
	}
	if err := json.Unmarshal(data, f, options); err != nil {
		return nil, fmt.Errorf("frame: read %s: %w", head.T, err)
	}
	return f, nil
}

func newDown(t string) Down {
	switch t {
	case "ready":
		return &Ready{}
	case "capabilities":
		return &CapabilitiesChanged{}
	case "approved":
		return &Approved{}
	case "accepted":
		return &Accepted{}
	case "delivered":
		return &Delivered{}
	case "message":
		return &Message{}
	case "media":
		return &Media{}
	case "prompt":
		return &Prompt{}
	case "prompt_done":
		return &PromptDone{}
	case "echo":
		return &Echo{}
	case "notice":
		return &Notice{}
	case "typing":
		return &Typing{}
	case "avatar":
		return &Avatar{}
	case "tool":
		return &Tool{}
	case "pong":
		return &Pong{}
	case "result":
		return &Result{}
	case "error":
		return &Error{}
	}
	return &Unknown{Type: t}
}
