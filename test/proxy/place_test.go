package proxy

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"hermes-mobile/device"
	"hermes-mobile/test/e2e"
)

// place is a server with a proxy before it.
type place struct {
	t      *testing.T
	server *e2e.Server
	front  *front
}

// newPlace starts both. Settings are those of e2e.NewServer; the agent is the demo.
func newPlace(t *testing.T, f *front, settings ...string) *place {
	t.Helper()
	return open(t, f, "demo", settings...)
}

func open(t *testing.T, f *front, agent string, settings ...string) *place {
	t.Helper()
	server := e2e.NewServer(t, settings...)
	server.Agent = agent
	server.Start()
	return &place{t: t, server: server, front: f.start(server)}
}

// dial reaches the proxy wherever an address of the recipe's host leads, and nothing else.
func (f *front) dial(d net.Dialer) func(context.Context, string, string) (net.Conn, error) {
	_, want, _ := strings.Cut(f.url(), "://")
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr != want {
			return nil, &net.AddrError{Err: "not the proxy's address", Addr: addr}
		}
		return d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(f.port)))
	}
}

// phone connects a device through the proxy and waits until it is online.
func (p *place) phone(id string) *e2e.Phone {
	p.t.Helper()
	phone := e2e.NewPhone(p.t, p.server, id, p.through)
	phone.Online()
	return phone
}

// through lets a device connect by the outside address.
func (p *place) through(cfg *device.Config) {
	cfg.URL, cfg.TLS, cfg.DialContext = p.front.url(), p.front.tls(), p.front.dial(net.Dialer{})
}

// socket is a WebSocket through the proxy, without the SDK's help.
type socket struct {
	t    *testing.T
	conn *websocket.Conn
}

// object is a frame as it is on the wire.
type object map[string]any

// upgrade asks for a WebSocket from an address of this machine, with headers.
func (p *place) upgrade(from string, header http.Header, change ...func(*websocket.DialOptions)) (*websocket.Conn, *http.Response, error) {
	p.t.Helper()
	client := p.front.client(from)
	p.t.Cleanup(client.CloseIdleConnections)
	options := &websocket.DialOptions{HTTPClient: client, HTTPHeader: header}
	for _, c := range change {
		c(options)
	}
	return websocket.Dial(p.t.Context(), "wss://"+hostPort(p.front.url())+"/ws", options)
}

// connect is upgrade for what must succeed.
func (p *place) connect(from string, header http.Header, change ...func(*websocket.DialOptions)) *socket {
	p.t.Helper()
	conn, _, err := p.upgrade(from, header, change...)
	if err != nil {
		p.t.Fatalf("%s: upgrade: %v", p.front.kind, err)
	}
	conn.SetReadLimit(32 << 20)
	p.t.Cleanup(func() { _ = conn.CloseNow() })
	return &socket{p.t, conn}
}

// hello connects as a device and waits for ready.
func (p *place) hello(id, from string, header http.Header, change ...func(*websocket.DialOptions)) *socket {
	p.t.Helper()
	s := p.connect(from, header, change...)
	s.send(object{"t": "hello", "token": p.server.Token, "device": object{"id": id}})
	s.find("ready")
	return s
}

func (s *socket) send(o object) {
	s.t.Helper()
	data, err := json.Marshal(o)
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(data)
}

func (s *socket) write(data []byte) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, data); err != nil {
		s.t.Fatalf("write: %v", err)
	}
}

// next reads one frame.
func (s *socket) next() (object, error) {
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	_, data, err := s.conn.Read(ctx)
	if err != nil {
		return nil, err
	}
	var o object
	return o, json.Unmarshal(data, &o)
}

// find reads until a frame of one of the types comes.
func (s *socket) find(types ...string) object {
	s.t.Helper()
	for {
		o, err := s.next()
		if err != nil {
			s.t.Fatalf("waiting for %v: %v", types, err)
		}
		for _, want := range types {
			if o["t"] == want {
				return o
			}
		}
	}
}

// final reads until the end of a reply.
func (s *socket) final() (text string) {
	s.t.Helper()
	for {
		o := s.find("message", "error")
		if o["t"] == "error" {
			s.t.Fatalf("the server refuses: %v", o)
		}
		if o["final"] == true {
			text, _ = o["text"].(string)
			return text
		}
	}
}
