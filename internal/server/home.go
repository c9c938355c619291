package server

import (
	"context"
	"strings"

	"hermes-mobile/frame"
	"hermes-mobile/internal/agent/relay"
	"hermes-mobile/internal/hub"
)

// home returns the home channel.
func (a *adminAPI) home(ctx context.Context) (HomeChannel, error) {
	d, err := a.hub.Owner().Home(ctx)
	if err != nil || d == nil {
		return HomeChannel{}, err
	}
	return a.withGateway(d), nil
}

func (a *adminAPI) withGateway(d *hub.DeviceInfo) HomeChannel {
	c := HomeChannel{Device: d}
	if r, ok := a.agent.(*relay.Agent); ok {
		c.Gateway = r.GatewayOf(d.ID)
	}
	return c
}

// candidate returns the device that becomes the home channel for an id. For a shared conversation
// that is its primary device, under whose id Hermes knows the conversation.
func (a *adminAPI) candidate(ctx context.Context, id string) (HomeChannel, error) {
	list, err := a.hub.Owner().Devices(ctx)
	if err != nil {
		return HomeChannel{}, err
	}
	id = strings.TrimPrefix(id, frame.SessionPrefix)
	for _, d := range list {
		if d.ID == id && d.Conversation != "" {
			return a.candidate(ctx, d.Conversation)
		}
		if d.ID == id {
			return a.withGateway(&d), nil
		}
	}
	return HomeChannel{}, hub.ErrUnknownDevice
}

// setHome makes a device the home channel.
func (a *adminAPI) setHome(ctx context.Context, id string) (HomeChannel, error) {
	c, err := a.candidate(ctx, id)
	if err == nil {
		err = a.hub.Owner().SetHome(ctx, c.Device.ID)
	}
	if err != nil {
		return HomeChannel{}, err
	}
	return a.home(ctx)
}
