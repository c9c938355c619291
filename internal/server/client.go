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

// ErrNotRunning: no server answers on the data folder.
var ErrNotRunning = errors.New("no server is running on this data folder")

// Client speaks to the admin interface of a running server.
type Client struct {
	data string
	http *http.Client
}

// NewClient makes a client for the server that runs on a data folder.
func NewClient(data string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		path := filepath.Join(data, AdminSocket)
		var c net.Conn
		err := asowner.Do(path, func() (err error) { // root does not speak to whatever a link leads to
			c, err = d.DialContext(ctx, "unix", path)
			return err
		})
		return c, err
	}
	return &Client{data: data, http: &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// Refused is why the server did not do what was asked.
type Refused struct{ Code, Message string }

// Error returns the server's sentence.
func (e *Refused) Error() string { return e.Message }

// Get asks for something and decodes the answer into out.
func (c *Client) Get(ctx context.Context, path string, out any) error {
	return c.do(ctx, http.MethodGet, path, nil, out)
}

// Text asks for something that is not JSON.
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

// Post has something done. out may be nil.
func (c *Client) Post(ctx context.Context, path string, in Command, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, path, bytes.NewReader(body), out)
}

// Lines asks for something that is answered in lines, and gives each to f, which may use it until it returns.
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

// send makes a request and returns a good answer, whose body the caller closes.
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
