package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"hermes-mobile/internal/store"
)

// standing is the relation of a user to an id.
type standing int

const (
	others standing = iota // it belongs to somebody else, or to Hermes itself
	own
	free // nothing has this id
)

// deepest bounds how many ancestors of a session are followed.
const deepest = 32

// sessionID reports whether an id can be one of a session. Hermes doesn't check everywhere, and
// trims spaces in some places only. The id that we check and the one that Hermes uses must be the
// same.
func sessionID(id string) bool {
	return id != "" && strings.TrimSpace(id) == id && len(id) <= 256 && utf8.ValidString(id) && !strings.ContainsAny(id, "/\\") && !strings.Contains(id, "..") && id != "." &&
		!strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func sessionPath(id string) string { return "/api/sessions/" + url.PathEscape(id) }

var errNoName = errors.New("the API server's answer has no id")

func (f *Proxy) claim(kind, id, user string) error {
	if id == "" {
		return errNoName
	}
	if err := f.o.Store.Do(func(tx *store.Tx) error { return tx.ClaimFront(kind, id, user, f.o.Now()) }); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// take is claim for something that was just created.
func (f *Proxy) take(kind, id, user string) error {
	if id == "" {
		return errNoName
	}
	if err := f.o.Store.Do(func(tx *store.Tx) error { return tx.TakeFront(kind, id, user, f.o.Now()) }); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

func (f *Proxy) forget(kind, id string) error {
	if err := f.o.Store.Do(func(tx *store.Tx) error { return tx.ForgetFront(kind, id) }); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

func (f *Proxy) ownerOf(ctx context.Context, kind, id string) (string, error) {
	owner, err := f.o.Store.FrontOwner(ctx, kind, id)
	if err != nil {
		err = fmt.Errorf("%w: %w", errStore, err)
	}
	return owner, err
}

// session returns the user's standing to a session. A session that Hermes derived from another,
// because that grew too long or for a part of its work, belongs to the same user.
func (f *Proxy) session(ctx context.Context, c caller, id string) (standing, error) {
	at := id
	for range deepest {
		owner, err := f.ownerOf(ctx, store.FrontSession, at)
		switch {
		case err != nil:
			return others, err
		case owner == "":
		case at != id:
			err = f.claim(store.FrontSession, id, owner)
			fallthrough
		default:
			if owner == c.id {
				return own, err
			}
			return others, err
		}
		var s struct {
			Session struct {
				Parent string `json:"parent_session_id"`
			}
		}
		status, err := f.ask(ctx, sessionPath(at), "", &s)
		if err != nil {
			return others, err
		}
		if status == http.StatusNotFound && at == id {
			return free, nil
		}
		if at = s.Session.Parent; status != http.StatusOK || !sessionID(at) {
			return others, nil
		}
	}
	return others, nil
}

// run reports whether a run belongs to the user: it was started here, or it is a turn in one of the
// user's sessions.
func (f *Proxy) run(ctx context.Context, c caller, id string) (bool, error) {
	owner, err := f.ownerOf(ctx, store.FrontRun, id)
	if err != nil || owner != "" {
		return owner == c.id, err
	}
	session, err := f.sessionOf(ctx, id)
	if err != nil || !sessionID(session) {
		return false, err
	}
	if is, err := f.session(ctx, c, session); err != nil || is != own {
		return false, err
	}
	return true, f.claim(store.FrontRun, id, c.id)
}

// sessionOf returns the session of a run, empty if Hermes knows no such run.
func (f *Proxy) sessionOf(ctx context.Context, run string) (string, error) {
	var s struct {
		Session string `json:"session_id"`
	}
	_, err := f.ask(ctx, "/v1/runs/"+url.PathEscape(run), "", &s)
	return s.Session, err
}

// trouble answers if the owner of something can't be determined.
func (f *Proxy) trouble(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		err = errors.New("unknown")
	}
	f.failed(w, r, err)
}
