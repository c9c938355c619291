package relay

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// routes say which gateway serves which device. They are replaced as a whole.
type routes struct {
	byID     map[string]*gateway
	list     []*gateway
	device   map[string]*gateway // by device id, or "user:<id>"
	fallback *gateway            // the first with "*"
	byUser   bool                // there is a "user:<id>"
}

// newRoutes returns the routes of a list of gateways. open returns the gateway of each.
func newRoutes(list []Gateway, open func(cfg Gateway) *gateway) *routes {
	r := &routes{byID: map[string]*gateway{}, device: map[string]*gateway{}}
	for _, cfg := range list {
		if cfg.ID == "" || r.byID[cfg.ID] != nil {
			continue
		}
		if cfg.Name == "" {
			cfg.Name = cfg.ID
		}
		cfg.Devices = slices.Clone(cfg.Devices)
		g := open(cfg)
		r.byID[cfg.ID] = g
		r.list = append(r.list, g)
		devices := cfg.Devices
		if len(devices) == 0 {
			devices = []string{"*"}
		}
		for _, d := range devices {
			if d == "*" {
				if r.fallback == nil {
					r.fallback = g
				}
			} else if r.device[d] == nil {
				r.device[d] = g
				r.byUser = r.byUser || strings.HasPrefix(d, "user:")
			}
		}
	}
	return r
}

// of returns the gateway of a device, or nil.
func (r *routes) of(device string, users *owners) *gateway {
	if g := r.device[device]; g != nil {
		return g
	}
	if r.byUser {
		if u := users.of(device); u != "" {
			if g := r.device["user:"+u]; g != nil {
				return g
			}
		}
	}
	return r.fallback
}

const (
	keepOwner = 10 * time.Second
	maxOwners = 10_000
)

// owners knows the users of devices. It remembers them for a moment, because it is asked for every op
// of a gateway. It is safe for concurrent use.
type owners struct {
	ask func(device string) string // may be nil
	now func() time.Time

	known sync.Map // owner by device
	asked atomic.Int64
}

type owner struct {
	user string
	at   time.Time
}

// of returns the user of a device, or "".
func (o *owners) of(device string) string {
	if o.ask == nil {
		return ""
	}
	now := o.now()
	if known, ok := o.known.Load(device); ok && now.Sub(known.(owner).at).Abs() < keepOwner {
		return known.(owner).user
	}
	user := o.ask(device)
	if o.asked.Add(1) > maxOwners {
		o.asked.Store(0)
		o.known.Clear()
	}
	o.known.Store(device, owner{user, now})
	return user
}
