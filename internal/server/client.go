package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"hermes-mobile/internal/asowner"
)

// AdminSocket is the name of the admin socket in the data folder. Whoever may open it controls the
// server.
const AdminSocket = "admin.sock"

// ErrNotRunning reports that no server answers on the data folder.
var ErrNotRunning = errors.New("no server is running on this data folder")

// Client is a client of the admin API of a running server.
type Client struct {
	data string
	http *http.Client
}

// NewClient returns a client for the server that runs on a data folder.
func NewClient(data string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		path := filepath.Join(data, AdminSocket)
		var c net.Conn
		err := asowner.Do(path, func() (err error) { // so root follows no link of another user
			c, err = d.DialContext(ctx, "unix", path)
			return err
		})
		return c, err
	}
	return &Client{data: data, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Refused is the server's reason for rejecting a request.
type Refused struct{ Code, Message string }

// Error returns the server's message.
func (e *Refused) Error() string { return e.Message }

// Get requests a path and decodes the answer into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// Text requests a path whose answer isn't JSON.
func (c *Client) Text(ctx context.Context, path string) (string, error) {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("read the running server's answer: %w", err)
	}
	return string(text), nil
}

// Post sends a command. out may be nil.
func (c *Client) Post(ctx context.Context, path string, in Command, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(body), out)
}

// Lines requests a path that answers in lines, and passes each to f. f must not keep the line.
func (c *Client) Lines(ctx context.Context, path string, f func(line []byte) error) error {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if err := f(lines.Bytes()); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the running server's answer: %w", err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, body io.Reader, out any) error {
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("read the running server's answer: %w", err)
	}
	return nil
}

// send makes a request and returns an answer with status 200. The caller closes its body.
func (c *Client) send(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://admin"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("%w (%s)", ErrNotRunning, c.data)
		}
		return nil, fmt.Errorf("ask the running server: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var f failure
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil {
		return nil, fmt.Errorf("the running server answered %s", resp.Status)
	}
	return nil, &Refused{f.Code, f.Message}
}
