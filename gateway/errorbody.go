package gateway

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// Limits for the bodies of errors: a server may send a whole page, or nest without end.
const (
	maxReason      = 2000 // bytes
	maxReasonDepth = 5
	maxReasonItems = 3 // per list
)

// reasonKeys are the fields in which servers put an error text, the most helpful first. "error"
// comes early, because a "message" beside it is often only the name of a class.
var reasonKeys = []string{"error", "error_message", "message", "detail", "details", "msg", "refusal", "error_description", "reason", "title", "description"}

// codeKeys are the fields that hold an error code.
var codeKeys = []string{"code", "error_code", "error_type", "type"}

// findReason finds the error text and code in a JSON value of any known form: OpenAI's envelope, a
// bare string, FastAPI's list of details, RFC 9457 problem details, an Anthropic-style
// {"type":"error"}, or fields named error_message and error_type. Both are empty if it finds
// nothing.
func findReason(raw json.RawMessage) (message, code string) {
	message, code = reasonIn(raw, maxReasonDepth)
	return shorten(message), shorten(code)
}

func reasonIn(raw json.RawMessage, depth int) (message, code string) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || depth == 0 {
		return "", ""
	}
	switch raw[0] {
	case '"':
		return strings.TrimSpace(text(raw)), ""
	case '[':
		return reasonInList(raw, depth), ""
	case '{':
		return reasonInObject(raw, depth)
	}
	return "", ""
}

func reasonInList(raw json.RawMessage, depth int) string {
	var items []json.RawMessage
	if json.Unmarshal(raw, &items) != nil {
		return ""
	}
	var found []string
	for _, item := range items[:min(len(items), maxReasonItems)] {
		if message, _ := reasonIn(item, depth-1); message != "" {
			found = append(found, message)
		}
	}
	return strings.Join(found, "; ")
}

func reasonInObject(raw json.RawMessage, depth int) (message, code string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return "", ""
	}
	for _, key := range codeKeys {
		if code = text(members[key]); code != "" {
			break
		}
	}
	for _, key := range reasonKeys {
		found, inner := reasonIn(members[key], depth-1)
		if inner != "" {
			code = inner
		}
		if found == "" {
			continue
		}
		// Hermes' dashboard sends {"error":"code_word","detail":"A sentence."}.
		if detail := text(members["detail"]); key == "error" && detail != "" && text(members["error"]) != "" {
			return detail, found
		}
		if where := location(members["loc"]); where != "" {
			found = where + ": " + found
		}
		return found, code
	}
	return "", code
}

// location returns the path to the field that a validator rejected, such as body.model.
func location(raw json.RawMessage) string {
	var path []any
	if json.Unmarshal(raw, &path) != nil {
		return ""
	}
	var parts []string
	for _, p := range path[:min(len(path), 8)] {
		if s, ok := p.(string); ok {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ".")
}

// shorten limits a text to maxReason bytes without splitting a character.
func shorten(s string) string {
	if len(s) <= maxReason {
		return s
	}
	end := maxReason
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
