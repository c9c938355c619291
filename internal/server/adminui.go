package server

import (
	"context"
	"encoding/json"
	"fmt"
	"hermes-mobile/internal/access"
	"mime"
	"net/http"
	"strings"

	"rsc.io/qr"

	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/web"
)

// sharedRoutes are the routes of the admin API that the admin UI uses as they are. Routes that name
// files of this machine or send to devices are missing on purpose.
var sharedRoutes = []string{
	"GET /deliveries", "GET /audit", "GET /audit/export",
	"POST /devices/rename", "POST /devices/rights", "POST /devices/join", "POST /devices/leave", "POST /devices/unbind", "POST /devices/revoke",
	"POST /home/set", "POST /home/clear",
	"POST /pairing/approve", "POST /pairing/revoke",
	"POST /tokens/add", "POST /tokens/remove", "POST /devices/rotate",
	"POST /passkeys/rename",
}

// Overview is the state that the admin UI requests every few seconds.
type Overview struct {
	Status  Status             `json:"status"`
	Devices []hub.DeviceInfo   `json:"devices"`
	Home    HomeChannel        `json:"home"`
	Pairing PairingList        `json:"pairing"`
	Paired  []access.Paired    `json:"paired"` // devices that redeemed a code lately
	Tokens  []TokenInfo        `json:"tokens"`
	Totals  map[string]float64 `json:"totals"` // of the metrics, since the start
	// Problems say what is missing here, and why.
	Problems []string `json:"problems"`
}

// Invited is an invitation with a QR code.
type Invited struct {
	Invitation
	QR Modules `json:"qr"`
}

// Modules are the dark squares of a QR code as an SVG path, in a view box of Size by Size that
// includes the quiet zone.
type Modules struct {
	Size int    `json:"size"`
	Path string `json:"path"`
}

// adminUI serves the admin UI and its part of the admin API.
type adminUI struct {
	page   *web.Page
	logins *logins
	api    *adminAPI
}

// handler serves the paths below web.OwnerPath.
func (u *adminUI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+web.OwnerPath, u.page)
	mux.HandleFunc("GET "+web.OwnerPath+"/{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, web.OwnerPath, http.StatusPermanentRedirect)
	})
	mux.HandleFunc(adminEnterPath, u.logins.enter)
	mux.Handle(web.OwnerPath+"/api/", http.StripPrefix(web.OwnerPath+"/api", u.guarded()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := u.logins.way(r); !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Cache-Control", "no-store")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		mux.ServeHTTP(w, r)
	})
}

// guarded lets only the owner in the admin UI reach the admin API.
func (u *adminUI) guarded() http.Handler {
	open := http.NewServeMux()
	open.HandleFunc("GET /session", u.logins.session)
	open.HandleFunc("POST /login", u.logins.login)
	open.HandleFunc("POST /logout", u.logins.logout)
	open.HandleFunc("POST /passkey/ask", u.logins.passkeyAsk)
	open.HandleFunc("POST /passkey/login", u.logins.passkeyLogin)
	open.Handle("/", u.logins.required(u.routes()))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(ownerHeader) == "" || !u.logins.fromOwnPage(r, false) {
			refuse(w, http.StatusForbidden, "foreign", "Only the admin UI may use this. A proxy must pass on Host and X-Forwarded-Proto.")
			return
		}
		if r.Method != http.MethodGet {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				refuse(w, http.StatusForbidden, "foreign", "Send changes as application/json.")
				return
			}
		}
		r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
		open.ServeHTTP(w, r)
	})
}

// routes returns the API of the admin UI, most of which is the admin API.
func (u *adminUI) routes() http.Handler {
	mux := http.NewServeMux()
	admin := u.api.handler()
	for _, route := range sharedRoutes {
		mux.Handle(route, admin)
	}
	u.logins.mountPasskeys(mux)
	mux.HandleFunc("GET /overview", func(w http.ResponseWriter, r *http.Request) {
		v, err := u.overview(r.Context())
		answer(w, v, err)
	})
	mux.HandleFunc("GET /doctor", func(w http.ResponseWriter, r *http.Request) {
		answer(w, u.api.health.report(r.Context()), nil)
	})
	mux.HandleFunc("POST /pair", func(w http.ResponseWriter, r *http.Request) {
		var c Command
		if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
			answer(w, nil, fmt.Errorf("the request isn't valid JSON: %w", err))
			return
		}
		v, err := u.invited(r.Context(), c)
		answer(w, v, err)
	})
	return mux
}

func (u *adminUI) overview(ctx context.Context) (o Overview, err error) {
	o.Problems = []string{}
	note := func(err error) {
		if err != nil {
			o.Problems = append(o.Problems, err.Error())
		}
	}
	if o.Status, err = u.api.status(ctx); err != nil {
		return o, err
	}
	if o.Devices, err = u.api.hub.Owner().Devices(ctx); err != nil {
		return o, err
	}
	if o.Home, err = u.api.home(ctx); err != nil {
		return o, err
	}
	o.Paired = u.api.hub.Owner().Paired()
	o.Pairing, err = ListPairing(u.api.pairing)
	note(err)
	o.Tokens, err = u.api.listTokens(ctx)
	note(err)
	if o.Tokens == nil {
		o.Tokens = []TokenInfo{}
	}
	o.Totals, err = u.api.metrics.Totals()
	note(err)
	return o, nil
}

// invited creates a pairing code with its QR code.
func (u *adminUI) invited(ctx context.Context, c Command) (Invited, error) {
	of, err := c.code()
	if err != nil {
		return Invited{}, err
	}
	inv, err := u.api.invite(ctx, of)
	if err != nil {
		return Invited{}, err
	}
	code, err := qr.Encode(inv.Link, qr.M)
	if err != nil {
		return Invited{}, fmt.Errorf("draw the QR code: %w", err)
	}
	return Invited{inv, modules(code)}, nil
}

// quietZone is the light margin that readers need around a QR code, in modules.
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
