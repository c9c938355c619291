package app

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"

	"hermes-mobile/gateway"
	"hermes-mobile/internal/connect"
	"hermes-mobile/internal/media"
)

// maxBody is the largest request body: the page sends two addresses and a credential.
const maxBody = 64 << 10

// routes serves the page, its WebSocket, files, and /app/. It hides all other paths of the server.
func (a *App) routes(server http.Handler) http.Handler {
	page := a.server.PagePaths()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /app/state", func(w http.ResponseWriter, _ *http.Request) { reply(w, a.machine.State(), nil) })
	mux.HandleFunc("POST /app/setup", a.act)
	mux.HandleFunc("POST /app/device", func(w http.ResponseWriter, r *http.Request) {
		inv, err := a.server.Invite(r.Context(), ownUser)
		reply(w, map[string]string{"pair": inv.Code}, err)
	})
	mux.HandleFunc("POST /app/foreground", func(w http.ResponseWriter, _ *http.Request) {
		if c := a.current(); c != nil {
			c.Foreground()
		}
		reply(w, nil, nil)
	})
	mux.HandleFunc("POST /app/reconnect", func(w http.ResponseWriter, r *http.Request) {
		if c := a.current(); c != nil {
			_, _ = c.Connect(r.Context()) // diagnostics show the result
		}
		reply(w, a.Diagnose(), nil)
	})
	mux.HandleFunc("GET /app/diagnostics", func(w http.ResponseWriter, _ *http.Request) { reply(w, a.Diagnose(), nil) })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case strings.HasPrefix(path, "/app/"):
			mux.ServeHTTP(w, r)
		case path == "/ws", strings.HasPrefix(path, media.LinkPrefix), slices.Contains(page, path):
			server.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	})
}

// request is an action from the page with its secret, which [connect.Action] itself never decodes from JSON.
type request struct {
	connect.Action
	Secret string `json:"secret"`
}

// act carries out an action of the wizard.
func (a *App) act(w http.ResponseWriter, r *http.Request) {
	var in request
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		reply(w, nil, errors.New("the request must be JSON"))
		return
	}
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil {
		reply(w, nil, errors.New("invalid request")) // the decoder's error might quote the secret
		return
	}
	in.Action.Secret = gateway.NewSecret(in.Secret)
	state, err := a.machine.Do(r.Context(), in.Action)
	if errors.Is(err, context.Canceled) {
		return // the page is gone
	}
	if err != nil {
		a.o.Log.Error("connecting the gateway failed", "component", "connect", "step", state.Step, "err", err)
	}
	reply(w, state, err)
}
