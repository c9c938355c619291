package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"
)

// FileOf returns the content of the file that "file N" asks for: some bytes up to 300 KiB that follow from N.
func FileOf(n string) []byte {
	h := fnv.New64a()
	_, _ = io.WriteString(h, n)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	b := make([]byte, 1+r.IntN(300<<10))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// SHA returns the SHA-256 of some bytes in hex.
func SHA(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// sendFile uploads a file and sends it. When that fails a stock gateway sends a notice instead, and never the file again.
func (g *Gateway) sendFile(in *Input, n string) {
	data := FileOf(n)
	r := &Reply{Chat: in.Chat, Text: "file " + n, File: SHA(data), ReplyTo: in.MessageID}
	g.mu.Lock()
	g.rec.replies = append(g.rec.replies, r)
	g.mu.Unlock()
	name := n + ".bin"
	ref, err := g.Upload(name, data)
	if err == nil {
		res, out := g.op(map[string]any{"op": "send_media", "chat_id": in.Chat, "media_kind": "document", "source_url": ref, "content": r.Text,
			"filename": name, "reply_to": nil, "metadata": map[string]any{}})
		g.mu.Lock()
		r.Sent++
		r.Confirmed = out == done
		if out == refused {
			r.Refusals = append(r.Refusals, res.Error)
		}
		g.mu.Unlock()
	}
	if !r.Confirmed {
		g.mu.Lock()
		r.Given = true
		g.mu.Unlock()
		g.reply(&Reply{Chat: in.Chat, Text: "undelivered " + n, ReplyTo: in.MessageID})
	}
}

// Upload puts a file on the server (doc/hermes/relay.md §5) and returns its address.
func (g *Gateway) Upload(name string, data []byte) (string, error) {
	g.cfg.OnOp("upload")
	req, err := http.NewRequestWithContext(g.ctx, http.MethodPost, g.cfg.URL+"/relay/media", bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+g.token())
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("X-Media-Filename", name)
	resp, err := g.client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var answer struct {
		ID string `json:"id"`
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("upload: HTTP %d", resp.StatusCode)
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", fmt.Errorf("upload: %w", err)
	}
	return g.cfg.URL + "/relay/media/" + answer.ID, nil
}

// fetchWithin is how long a file is tried for.
const fetchWithin = 20 * time.Second

// fetch reads the file of an input and returns its hash, "none" when there is none.
func (g *Gateway) fetch(in *Input) string {
	if in.url == "" {
		g.fault("input " + in.MessageID + " has no file")
		return "none"
	}
	g.cfg.OnOp("download")
	var err error
	within := fetchWithin
	if g.cfg.Patient {
		within *= 4
	}
	for end := time.Now().Add(within); time.Now().Before(end) && g.ctx.Err() == nil; g.sleep(50 * time.Millisecond) {
		var data []byte
		if data, err = g.download(in.url); err == nil {
			sha := SHA(data)
			g.mu.Lock()
			in.SHA = sha
			g.mu.Unlock()
			return sha
		}
	}
	if g.ctx.Err() == nil {
		g.fault(fmt.Sprintf("the file of input %s in chat %s could not be fetched: %v", in.MessageID, in.Chat, err))
	}
	return "none"
}

// download reads a path of this machine or an address of the server.
func (g *Gateway) download(url string) ([]byte, error) {
	if strings.HasPrefix(url, "/") {
		return os.ReadFile(url)
	}
	req, err := http.NewRequestWithContext(g.ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "HermesAgent-Relay/1.0")
	if strings.Contains(url, "/relay/media/") {
		req.Header.Set("Authorization", "Bearer "+g.token())
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return io.ReadAll(resp.Body)
}
