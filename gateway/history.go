package gateway

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
)

// maxHistory is the largest history that is sent with a run, in bytes. With the message it stays
// below the size limit of a request.
const maxHistory = 8_000_000

// transcript is what a gateway stored of a session.
type transcript struct {
	SessionID string      `json:"session_id"` // where the rows are; can differ from the requested session
	Rows      []storedRow `json:"data"`
}

// last returns the ID of the newest row, or 0 without rows.
func (t transcript) last() int64 {
	if len(t.Rows) == 0 {
		return 0
	}
	return t.Rows[len(t.Rows)-1].number()
}

// number returns the ID of a row, or -1.
func (r storedRow) number() int64 {
	n, err := strconv.ParseInt(string(r.ID), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// readTranscript reads the last rows of a session: at most newest if the gateway supports pages, or
// all rows with newest 0.
func readTranscript(ctx context.Context, cn *conn, session string, newest int) (transcript, error) {
	var query url.Values
	if newest > 0 && traits(cn).newer {
		query = url.Values{"limit": {strconv.Itoa(newest)}, "order": {"latest"}}
	}
	var t transcript
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := cn.request(ctx, "session_messages", []string{"session_id", session}, query, nil)
	if err != nil {
		return t, err
	}
	err = cn.call(req, &t)
	return t, err
}

// history returns the messages of a session, for a run on a gateway that does not load them itself
// (0.19, doc/hermes/api.md §5). It returns text only: the newest messages that fit into limit
// bytes, starting with one of the user.
func (t transcript) history(limit int) []ChatMessage {
	var all []ChatMessage
	for _, row := range t.Rows {
		if row.Role == "user" && row.text() != "" && row.DisplayKind != "hidden" || row.isReply() {
			all = append(all, ChatMessage{Role: row.Role, Text: row.text()})
		}
	}
	first, size := len(all), 0
	for first > 0 {
		data, err := json.Marshal(all[first-1])
		if size += len(data) + 1; err != nil || size > limit {
			break
		}
		first--
	}
	if first > 0 {
		for first < len(all) && all[first].Role != "user" {
			first++
		}
	}
	return all[first:]
}
