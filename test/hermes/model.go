//go:build unix

package hermes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// modelName is the one model that the fake serves.
const modelName = "fake-1"

// FakeModel is a running fake_model.py. What it answers is picked by words such as FM:text(abc) in
// the user's message; fake_model.py lists them.
type FakeModel struct {
	// URL is its base address, without /v1.
	URL string
	log string
	t   testing.TB
}

// Request is one line of the model's log.
type Request struct {
	Kind     string    `json:"kind"` // chat, transcription, or aborted: the answer to ID was cut off
	ID       string    `json:"id"`
	Stream   bool      `json:"stream"`
	Tools    []string  `json:"tools"`
	Messages []Message `json:"messages"`
	Reply    string    `json:"reply"` // the text it was answered with
	Call     string    `json:"call"`  // or the tool that was called
}

// Message is one message of a request. Parts that are not text are in it as
// "[image_url image/png 70 bytes sha256=<hex>]".
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// LastUser is the text of the newest user message.
func (r Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return r.Messages[i].Text
		}
	}
	return ""
}

// Model starts a fake model on a free port; it stops when the test ends.
func Model(t testing.TB) *FakeModel {
	t.Helper()
	python, err := program(V022, "python")
	if err != nil {
		var err019 error
		if python, err019 = program(V019, "python"); err019 != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	script := filepath.Join(dir, "fake_model.py")
	writeEmbedded(t, "fake_model.py", script)
	m := &FakeModel{log: filepath.Join(dir, "requests.jsonl"), t: t}

	stderr, err := openLog(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(stderr)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer closeQuietly(read)
	cmd := exec.Command(python, "-I", script, "--log", m.log)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}, write, stderr
	p, err := startProcess(cmd)
	closeQuietly(write)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)

	_ = read.SetReadDeadline(time.Now().Add(30 * time.Second))
	port, err := bufio.NewReader(read).ReadString('\n')
	if err != nil {
		text, _ := os.ReadFile(stderr.Name())
		t.Fatalf("hermes: the fake model did not start: %v\n%s", err, text)
	}
	m.URL = "http://127.0.0.1:" + strings.TrimSpace(port)
	return m
}

// Requests returns what the model was asked so far, oldest first.
func (m *FakeModel) Requests() []Request {
	m.t.Helper()
	text, err := os.ReadFile(m.log)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.t.Fatal(err)
	}
	// A line that is still being written has no line feed yet.
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	var all []Request
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var r Request
		if err := d.Decode(&r); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			m.t.Fatalf("hermes: the model's log: %v", err)
		}
		all = append(all, r)
	}
}

// writeEmbedded copies a file of this package to path.
func writeEmbedded(t testing.TB, name, path string) {
	t.Helper()
	text, err := files.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
