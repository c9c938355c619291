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

// standing is what an id is to a user.
type standing int

const (
	others standing = iota // somebody else's, or of Hermes itself
	own
	free // there is nothing by this id
)

// deepest bounds how far a session is followed to those that it came from.
const deepest = 32

// sessionID reports whether an id can be one of a session. Hermes does not check everywhere, and takes blanks off in some
// places only: what is checked here and what it makes of it must be the same.
func sessionID(id string) bool {
	return id != "" && strings.TrimSpace(id) == id && len(id) <= 256 && utf8.ValidString(id) && !strings.ContainsAny(id, "/\\") && !strings.Contains(id, "..") && id != "." &&
		!strings.ContainsFunc(id, func(r rune) bool { return r < ' ' || r == 0x7f })
}

func sessionPath(id string) string { return "/api/sessions/" + url.PathEscape(id) }

var errNoName = errors.New("its answer does not say what it made")

func (f *Proxy) claim(kind, id, user string) error {
	if id == "" {
		return errNoName
	}
	if err := f.o.Store.Do(func(tx *store.Tx) error { return tx.ClaimFront(kind, id, user, f.o.Now()) }); err != nil {
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// take is claim for what was just made.
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

// session says what a session is to a user. One that Hermes has made out of another, when that became too long or for a part
// of its work, belongs to whom that belongs.
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

// run reports whether a run is a user's: it was started here, or it is that of a turn in an own session.
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

// sessionOf returns the session of a run, empty where Hermes knows no such run.
func (f *Proxy) sessionOf(ctx context.Context, run string) (string, error) {
	var s struct {
		Session string `json:"session_id"`
	}
	_, err := f.ask(ctx, "/v1/runs/"+url.PathEscape(run), "", &s)
	return s.Session, err
}

// trouble answers where it could not be found out whose something is.
func (f *Proxy) trouble(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		err = errors.New("unknown")
	}
	f.failed(w, r, err)
}
