package main

import (
	"context"
	"log"
	"net/http"
	"time"

	"github.com/centrifugal/centrifuge"
)

// centrifugal is centrifugal/centrifuge, a hub with a protocol of its own: the load wraps the frames of devices in it. What
// goes to all is published in a channel, which every device gets with its connection. It pings by itself. A gateway
// speaks no such protocol, so gorilla serves it.
type centrifugal struct {
	gorilla
	node *centrifuge.Node
}

const channel = "all"

type centrifugePeer struct {
	ready     []byte        // the answer to hello goes out within that of centrifuge
	connected chan struct{} // closed when there is a client
	client    *centrifuge.Client
}

func (p *centrifugePeer) send(b []byte) error {
	if p.ready == nil {
		p.ready = b
		return nil
	}
	<-p.connected
	return p.client.Send(b)
}

func (*centrifugePeer) ping() {}

// session is what belongs to a client, in its context.
type session struct {
	peer *centrifugePeer
	to   reader
}

type sessionKey struct{}

func (c *centrifugal) devices(open opener) http.Handler {
	var err error
	c.node, err = centrifuge.New(centrifuge.Config{
		LogLevel: centrifuge.LogLevelError, LogHandler: func(e centrifuge.LogEntry) { log.Println(e.Message, e.Fields) },
	})
	if err != nil {
		log.Fatal(err)
	}
	c.node.OnConnecting(func(ctx context.Context, e centrifuge.ConnectEvent) (centrifuge.ConnectReply, error) {
		s := session{peer: &centrifugePeer{connected: make(chan struct{})}}
		s.to = open(s.peer)
		if err := s.to.text(e.Data); err != nil {
			return centrifuge.ConnectReply{}, err
		}
		return centrifuge.ConnectReply{
			Context: context.WithValue(ctx, sessionKey{}, s), Data: s.peer.ready,
			Credentials:   &centrifuge.Credentials{UserID: e.ClientID},
			Subscriptions: map[string]centrifuge.SubscribeOptions{channel: {}},
		}, nil
	})
	c.node.OnConnect(func(client *centrifuge.Client) {
		s := client.Context().Value(sessionKey{}).(session)
		client.OnMessage(func(e centrifuge.MessageEvent) {
			if s.to.text(e.Data) != nil {
				client.Disconnect(centrifuge.DisconnectBadRequest)
			}
		})
		client.OnDisconnect(func(centrifuge.DisconnectEvent) { s.to.end() })
		s.peer.client = client
		close(s.peer.connected)
	})
	if err := c.node.Run(); err != nil {
		log.Fatal(err)
	}
	return centrifuge.NewWebsocketHandler(c.node, centrifuge.WebsocketConfig{
		CheckOrigin: func(*http.Request) bool { return true }, MessageSizeLimit: frameLimit,
		ReadBufferSize: 256, WriteBufferSize: 1024, UseWriteBufferPool: true,
		PingPongConfig: centrifuge.PingPongConfig{PingInterval: pingEvery, PongTimeout: 10 * time.Second},
	})
}

func (c *centrifugal) all(_ []peer, b []byte) {
	_, _ = c.node.Publish(channel, b)
}
