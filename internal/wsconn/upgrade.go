package wsconn

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/gobwas/ws"
)

// upgradeTimeout bounds the write of the answer to the upgrade request.
const upgradeTimeout = 10 * time.Second

// Upgrade upgrades a request to a WebSocket (RFC 6455 §4.2). It accepts no extensions and no
// subprotocols. A peer that offers some goes on without them. If it returns an error, it has
// answered the request with 400, 405, 426, 500 or 505. The caller must check the Origin and
// everything else before.
//
// Upgrade keeps nothing of w and r, including the buffers of the HTTP server. It keeps the options,
// which must not change any more. All connections of a kind may share them.
func Upgrade(w http.ResponseWriter, r *http.Request, o *Options) (*Conn, error) {
	key, refusal, status := checkUpgrade(r)
	if status != 0 {
		switch status {
		case http.StatusBadRequest:
			w.Header().Set("Connection", "close")
		case http.StatusMethodNotAllowed:
			w.Header().Set("Allow", http.MethodGet)
		case http.StatusUpgradeRequired:
			w.Header().Set("Upgrade", "websocket")
			w.Header().Set("Connection", "Upgrade")
			w.Header().Set("Sec-WebSocket-Version", "13")
		}
		http.Error(w, refusal, status)
		return nil, errors.New("wsconn: " + refusal)
	}
	// gobwas/ws would look only at the first line of each of the headers checked above.
	plain := &http.Request{
		Method: r.Method, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Host: r.Host,
		Header: http.Header{
			"Upgrade":               {"websocket"},
			"Connection":            {"Upgrade"},
			"Sec-Websocket-Key":     {key},
			"Sec-Websocket-Version": {"13"},
		},
	}
	nc, rw, _, err := ws.HTTPUpgrader{Timeout: upgradeTimeout}.Upgrade(plain, w)
	if err != nil {
		if nc != nil {
			_ = nc.Close()
		}
		return nil, err
	}
	// A peer may send at once. Then the data is in the HTTP server's buffer.
	var first []byte
	if n := rw.Reader.Buffered(); n > 0 {
		p, _ := rw.Reader.Peek(n) // can't fail for buffered data
		first = append(first, p...)
	}
	return newConn(nc, first, o), nil
}

// checkUpgrade returns the peer's key, or why and with which status to reject the request.
func checkUpgrade(r *http.Request) (key, refusal string, status int) {
	key = strings.TrimSpace(r.Header.Get("Sec-WebSocket-Key"))
	nonce, err := base64.StdEncoding.DecodeString(key)
	switch {
	case r.Method != http.MethodGet:
		return "", "a WebSocket is opened with GET", http.StatusMethodNotAllowed
	case r.ProtoMajor != 1 || r.ProtoMinor < 1:
		return "", "a WebSocket is opened with HTTP/1.1", http.StatusHTTPVersionNotSupported
	case !hasToken(r.Header["Upgrade"], "websocket"):
		return "", "this address speaks WebSocket", http.StatusUpgradeRequired
	case !hasToken(r.Header["Connection"], "upgrade"):
		return "", "no Connection: Upgrade", http.StatusBadRequest
	case r.Header.Get("Sec-WebSocket-Version") != "13":
		return "", "this server speaks WebSocket version 13", http.StatusUpgradeRequired
	case err != nil || len(nonce) != 16 || len(r.Header.Values("Sec-WebSocket-Key")) != 1:
		return "", "bad Sec-WebSocket-Key", http.StatusBadRequest
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return "", "an upgrade has no body", http.StatusBadRequest // its bytes would look like frames
	case r.Host == "":
		return "", "no Host", http.StatusBadRequest
	}
	return key, "", 0
}

// hasToken reports whether a comma-separated list, possibly over several header lines, contains the
// token, ignoring case.
func hasToken(lines []string, token string) bool {
	for _, line := range lines {
		for item := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(item), token) {
				return true
			}
		}
	}
	return false
}
