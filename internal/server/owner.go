package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"rsc.io/qr"

	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/hub"
)

// sharedRoutes are those of the admin interface that the admin UI uses as they are. Missing on purpose: what names files of
// this machine or sends to devices.
var sharedRoutes = []string{
	"GET /deliveries", "GET /audit", "GET /audit/export",
	"POST /devices/rename", "POST /devices/rights", "POST /devices/join", "POST /devices/leave", "POST /devices/unbind", "POST /devices/revoke",
	"POST /home/set", "POST /home/clear",
	"POST /pairing/approve", "POST /pairing/revoke",
	"POST /tokens/add", "POST /tokens/remove", "POST /devices/rotate",
	"POST /passkeys/rename",
}

// Overview is what the admin UI shows, and asks for every few seconds.
type Overview struct {
	Status  Status             `json:"status"`
	Devices []hub.DeviceInfo   `json:"devices"`
	Home    HomeChannel        `json:"home"`
	Pairing PairingList        `json:"pairing"`
	Paired  []hub.Paired       `json:"paired"` // who has redeemed codes lately
	Tokens  []TokenInfo        `json:"tokens"`
	Totals  map[string]float64 `json:"totals"` // of the metrics, since the start
	// Problems say what cannot be shown, and why.
	Problems []string `json:"problems"`
}

// Invited is an invitation that can be scanned off a screen.
type Invited struct {
	Invitation
	QR Modules `json:"qr"`
}

// Modules are the dark squares of a QR code as an SVG path, in a view box of Size by Size that has the quiet zone in it.
type Modules struct {
	Size int    `json:"size"`
	Path string `json:"path"`
}

// ownerRoutes serve the admin UI: mostly they are those of the admin interface.
func (s *Server) ownerRoutes() http.Handler {
	mux := http.NewServeMux()
	admin := s.adminHandler()
	for _, route := range sharedRoutes {
		mux.Handle(route, admin)
	}
	s.ownerPasskeys(mux)
	mux.HandleFunc("GET /overview", func(w http.ResponseWriter, r *http.Request) {
		v, err := s.overview(r.Context())
		answer(w, v, err)
	})
	mux.HandleFunc("GET /doctor", func(w http.ResponseWriter, r *http.Request) {
		v, err := s.checkUp(r.Context())
		answer(w, v, err)
	})
	mux.HandleFunc("POST /pair", func(w http.ResponseWriter, r *http.Request) {
		var c Command
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			answer(w, nil, fmt.Errorf("the request cannot be read: %w", err))
			return
		}
		v, err := s.invited(r.Context(), c)
		answer(w, v, err)
	})
	return mux
}

func (s *Server) overview(ctx context.Context) (o Overview, err error) {
	o.Problems = []string{}
	note := func(err error) {
		if err != nil {
			o.Problems = append(o.Problems, err.Error())
		}
	}
	if o.Status, err = s.status(ctx); err != nil {
		return o, err
	}
	if o.Devices, err = s.hub.Devices(ctx); err != nil {
		return o, err
	}
	if o.Home, err = s.home(ctx); err != nil {
		return o, err
	}
	o.Paired = s.hub.Paired()
	o.Pairing, err = ListPairing(s.pairing)
	note(err)
	o.Tokens, err = s.listTokens(ctx)
	note(err)
	if o.Tokens == nil {
		o.Tokens = []TokenInfo{}
	}
	o.Totals, err = s.metrics.Totals()
	note(err)
	return o, nil
}

// checkUp is all that the doctor finds: what the server knows, and its public address as it is seen from this machine.
func (s *Server) checkUp(ctx context.Context) (doctor.Report, error) {
	found, err := s.diagnose(ctx)
	if err != nil {
		return doctor.Report{}, err
	}
	f := &doctor.Facts{Now: time.Now(), Config: s.cfg, Warnings: s.cfg.Warnings}
	if found.PublicURL != "" {
		probe := s.announceProbe()
		doctor.ProbePublic(ctx, f, found.PublicURL, found.Path, &probe)
	}
	return doctor.Conclude(append(found.Issues, doctor.CheckPublic(f)...), append(found.Checked, doctor.Checked(f)...)), nil
}

func (s *Server) invited(ctx context.Context, c Command) (Invited, error) {
	of, err := c.code()
	if err != nil {
		return Invited{}, err
	}
	inv, err := s.invite(ctx, of)
	if err != nil {
		return Invited{}, err
	}
	code, err := qr.Encode(inv.Link, qr.M)
	if err != nil {
		return Invited{}, fmt.Errorf("draw the QR code: %w", err)
	}
	return Invited{inv, modules(code)}, nil
}

// quietZone is how much light a reader wants around a QR code, in modules.
const quietZone = 4

// modules draws each run of dark modules in a row as one rectangle.
func modules(code *qr.Code) Modules {
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			n := 0
			for code.Black(x+n, y) {
				n++
			}
			if n > 0 {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", x+quietZone, y+quietZone, n, n)
				x += n
			}
		}
	}
	return Modules{Size: code.Size + 2*quietZone, Path: path.String()}
}
