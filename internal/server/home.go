package server

import (
	"context"
	"fmt"
	"strings"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/hub"
)

// HomeChannel is a device that is the home channel, or is asked about.
type HomeChannel struct {
	Device *hub.DeviceInfo `json:"device"` // nil: no device is
	// Gateway serves the device, where the agent has gateways.
	Gateway *relay.GatewayState `json:"gateway,omitempty"`
}

// Delivery tells what became of a delivery.
type Delivery struct {
	frame.Delivered
	Device string `json:"device"` // to whom it went
}

func (s *Server) home(ctx context.Context) (HomeChannel, error) {
	d, err := s.hub.Owner().Home(ctx)
	if err != nil || d == nil {
		return HomeChannel{}, err
	}
	return s.withGateway(d), nil
}

func (s *Server) withGateway(d *hub.DeviceInfo) HomeChannel {
	c := HomeChannel{Device: d}
	if r, ok := s.agent.(*relay.Agent); ok {
		c.Gateway = r.GatewayOf(d.ID)
	}
	return c
}

// candidate describes the device that becomes the home channel when this one is named: a conversation that several share
// goes by one of them, under whose id Hermes knows it.
func (s *Server) candidate(ctx context.Context, id string) (HomeChannel, error) {
	list, err := s.hub.Owner().Devices(ctx)
	if err != nil {
		return HomeChannel{}, err
	}
	id = strings.TrimPrefix(id, frame.SessionPrefix)
	for _, d := range list {
		if d.ID == id && d.Conversation != "" {
			return s.candidate(ctx, d.Conversation)
		}
		if d.ID == id {
			return s.withGateway(&d), nil
		}
	}
	return HomeChannel{}, hub.ErrUnknownDevice
}

func (s *Server) setHome(ctx context.Context, id string) (HomeChannel, error) {
	c, err := s.candidate(ctx, id)
	if err == nil {
		err = s.hub.Owner().SetHome(ctx, c.Device.ID)
	}
	if err != nil {
		return HomeChannel{}, err
	}
	return s.home(ctx)
}

// deliver sends what the owner has for a device. The audit log names the device and nothing of what was sent.
func (s *Server) deliver(ctx context.Context, f *frame.Deliver) (any, error) {
	var answer frame.Down
	err := s.attempt(ctx, "delivery.sent", f.To, func() (err error) {
		answer, err = s.hub.Owner().Deliver(ctx, "hermes-mobile deliver", f)
		if refused, is := answer.(*frame.Error); is {
			return refused
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	delivered, is := answer.(*frame.Delivered)
	if !is {
		return nil, fmt.Errorf("a delivery was answered with %T", answer)
	}
	return Delivery{*delivered, f.To}, nil
}
