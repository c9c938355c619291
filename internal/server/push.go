package server

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"strings"

	"hermes-mobile/internal/access"
	"hermes-mobile/internal/config"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/notify"
	"hermes-mobile/internal/push"
)

// openPush returns the sender of notifications, nil if they are off. off is the reason if that
// isn't the owner's choice. The server works without notifications, so a problem with them doesn't
// stop its start.
func openPush(cfg *config.Config, log *slog.Logger) (sender *push.Sender, off string) {
	subject, why := cfg.PushSubject()
	if subject == "" {
		if cfg.Push == "off" {
			return nil, ""
		}
		log.Info("notifications are off", "reason", why)
		return nil, why
	}
	keys, err := push.OpenKeys(cfg.Data)
	if err != nil {
		log.Error("notifications are off", "err", err)
		return nil, err.Error()
	}
	return push.NewSender(push.Options{Keys: keys, Subject: subject, Hosts: cfg.PushHosts}), ""
}

// pushActionPath receives the answer of a notification's button.
const pushActionPath = "/push/action"

const maxAction = 4 << 10

// actionAnswer is the response to a button.
type actionAnswer struct {
	Done     bool   `json:"done"` // this request decided the card
	OptionID string `json:"option_id,omitempty"`
	Message  string `json:"message,omitempty"`
}

// pushActions decides cards by the token of a notification. Only the token counts: there are no
// cookies, and pages of other origins are rejected.
type pushActions struct {
	hub    *hub.Hub
	filter *requestFilter
}

// ServeHTTP implements http.Handler.
func (p *pushActions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	addr := p.filter.addresses.client(r)
	if !access.OriginAllowed(r, p.filter.origins) {
		p.filter.reject(w, addr, http.StatusForbidden, "origin not allowed", "Pages of this origin may not answer questions: the owner can add it to MOBILE_ALLOWED_ORIGINS.")
		return
	}
	if p.filter.rejectBlocked(w, addr) {
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		answerAction(w, http.StatusUnsupportedMediaType, actionAnswer{Message: "Send JSON, as application/json."})
		return
	}
	var body struct {
		Token string `json:"token"`
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAction))
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil || body.Token == "" {
		answerAction(w, http.StatusBadRequest, actionAnswer{Message: `Send an object with the "token" of the button.`})
		return
	}
	outcome, err := p.hub.Act(r.Context(), body.Token)
	switch {
	case errors.Is(err, notify.ErrForged):
		p.filter.guard.Wrong(addr)
		answerAction(w, http.StatusForbidden, actionAnswer{Message: sentence(err)})
	case errors.Is(err, notify.ErrRejected), errors.Is(err, notify.ErrCut), errors.Is(err, notify.ErrTooNew):
		answerAction(w, http.StatusForbidden, actionAnswer{Message: sentence(err)})
	case errors.Is(err, notify.ErrExpired):
		answerAction(w, http.StatusGone, actionAnswer{Message: sentence(err)})
	case err != nil:
		answerAction(w, http.StatusServiceUnavailable, actionAnswer{Message: "The server can't use its store right now, so nothing was decided: try again."})
	case outcome.Expired:
		answerAction(w, http.StatusGone, actionAnswer{OptionID: outcome.OptionID, Message: "Nobody answered in time, so this was decided: " + outcome.OptionID + "."})
	case outcome.Before:
		answerAction(w, http.StatusConflict, actionAnswer{OptionID: outcome.OptionID, Message: "This was already decided: " + outcome.OptionID + "."})
	default:
		answerAction(w, http.StatusOK, actionAnswer{Done: true, OptionID: outcome.OptionID})
	}
}

// sentence returns an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func answerAction(w http.ResponseWriter, status int, a actionAnswer) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a)
}
