package store

import (
	"context"
	"database/sql"
	"time"
)

// FrontUser is somebody who logs in at the front door of the API.
type FrontUser struct {
	ID, Name  string
	Password  string // its hash
	CreatedAt time.Time
	ChangedAt time.Time // of the password
	SeenAt    time.Time // the last login; zero: never
}

// FrontToken is what a cookie holds.
type FrontToken struct {
	Hash, Login string
	User, Name  string // of the one who logged in
	Refresh     bool   // it only gives new ones
	Until       time.Time
	Parent      string    // hash of the one that gave it, empty once it was used
	SpentAt     time.Time // when one that it gave was used first; zero: not yet
}

// Kinds of what belongs to a user of the front door.
const (
	FrontSession  = "session"
	FrontRun      = "run"
	FrontResponse = "response"
	FrontJob      = "job"
)

// How long it is known whose something is that Hermes itself soon forgets.
const (
	keepRuns      = 7 * 24 * time.Hour
	keepResponses = 365 * 24 * time.Hour
	keepKeys      = 30 * 24 * time.Hour // that have expired, so that their owner sees why a program fails
)

func milli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (s *Store) frontUsers(ctx context.Context, name string, args ...any) ([]*FrontUser, error) {
	var list []*FrontUser
	err := s.rows(ctx, name, func(r *sql.Rows) error {
		u := &FrontUser{}
		var created, changed, seen int64
		err := r.Scan(&u.ID, &u.Name, &u.Password, &created, &changed, &seen)
		u.CreatedAt, u.ChangedAt, u.SeenAt = milli(created), milli(changed), milli(seen)
		list = append(list, u)
		return err
	}, args...)
	return list, err
}

// FrontUsers returns all users of the front door, by name.
func (s *Store) FrontUsers(ctx context.Context) ([]*FrontUser, error) {
	return s.frontUsers(ctx, "front_user.list")
}

// FrontUser returns one by name, nil when there is none.
func (s *Store) FrontUser(ctx context.Context, name string) (*FrontUser, error) {
	list, err := s.frontUsers(ctx, "front_user.name", name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// AddFrontUser stores a new user; ok is false where the name is taken.
func (t *Tx) AddFrontUser(u *FrontUser, now time.Time) (ok bool, err error) {
	changed, _, err := t.exec("front_user.add", u.ID, u.Name, u.Password, now.UnixMilli(), now.UnixMilli())
	return changed > 0, err
}

// SetFrontPassword stores another password and ends all logins of the user.
func (t *Tx) SetFrontPassword(user, hash string, now time.Time) error {
	if err := t.must("front_token.user", user); err != nil {
		return err
	}
	return t.must("front_user.password", hash, now.UnixMilli(), user)
}

// RehashFrontPassword stores a better hash of the same password, unless it was changed meanwhile.
func (t *Tx) RehashFrontPassword(user, old, hash string) error {
	return t.must("front_user.rehash", hash, user, old)
}

// RemoveFrontUser drops a user, all logins and keys, and what is known to be the user's.
func (t *Tx) RemoveFrontUser(user string) error {
	for _, name := range []string{"front_token.user", "front_key.user", "front_owner.user", "front_user.remove"} {
		if err := t.must(name, user); err != nil {
			return err
		}
	}
	return nil
}

// SeenFrontUser notes a login.
func (t *Tx) SeenFrontUser(user string, now time.Time) error {
	return t.must("front_user.seen", now.UnixMilli(), user)
}

// FrontToken returns a token by its hash, nil when there is none.
func (s *Store) FrontToken(ctx context.Context, hash string) (*FrontToken, error) {
	var k *FrontToken
	err := s.rows(ctx, "front_token.hash", func(r *sql.Rows) error {
		k = &FrontToken{Hash: hash}
		var until, spent int64
		err := r.Scan(&k.Login, &k.User, &k.Name, &k.Refresh, &until, &k.Parent, &spent)
		k.Until, k.SpentAt = milli(until), milli(spent)
		return err
	}, hash)
	return k, err
}

// FrontLogins returns the logins of a user, the newest first.
func (s *Store) FrontLogins(ctx context.Context, user string) ([]string, error) {
	return s.strings(ctx, "front_token.logins", user)
}

// AddFrontToken stores a token.
func (t *Tx) AddFrontToken(k FrontToken, now time.Time) error {
	return t.must("front_token.add", k.Hash, k.Login, k.User, k.Refresh, now.UnixMilli(), k.Until.UnixMilli(), k.Parent)
}

// SpendFrontToken notes that a token was used which another one gave: that one has done what it was for.
func (t *Tx) SpendFrontToken(parent string, now time.Time) error {
	if err := t.must("front_token.spend", now.UnixMilli(), parent); err != nil {
		return err
	}
	return t.must("front_token.adopt", parent)
}

// EndFrontLogin drops all tokens of a login.
func (t *Tx) EndFrontLogin(login string) error { return t.must("front_token.login", login) }

// ClaimFront notes whose something is, unless it is somebody's already.
func (t *Tx) ClaimFront(kind, id, user string, now time.Time) error {
	return t.must("front_owner.claim", kind, id, user, now.UnixMilli())
}

// TakeFront notes whose something is that was just made, whatever had its id before.
func (t *Tx) TakeFront(kind, id, user string, now time.Time) error {
	return t.must("front_owner.take", kind, id, user, now.UnixMilli())
}

// ForgetFront drops what is known of something that is gone.
func (t *Tx) ForgetFront(kind, id string) error { return t.must("front_owner.forget", kind, id) }

// FrontOwner returns the id of the user whose something is, empty when it is nobody's.
func (s *Store) FrontOwner(ctx context.Context, kind, id string) (user string, err error) {
	err = s.rows(ctx, "front_owner.id", func(r *sql.Rows) error { return r.Scan(&user) }, kind, id)
	return user, err
}

// FrontOwned returns the ids of all of a kind that are a user's.
func (s *Store) FrontOwned(ctx context.Context, user, kind string) (map[string]bool, error) {
	list, err := s.strings(ctx, "front_owner.user", user, kind)
	set := make(map[string]bool, len(list))
	for _, id := range list {
		set[id] = true
	}
	return set, err
}

func (t *Tx) sweepFront(now time.Time) error {
	if err := t.must("front_token.sweep", now.UnixMilli()); err != nil {
		return err
	}
	if err := t.must("front_key.sweep", now.Add(-keepKeys).UnixMilli()); err != nil {
		return err
	}
	if err := t.must("front_owner.sweep", FrontRun, now.Add(-keepRuns).UnixMilli()); err != nil {
		return err
	}
	return t.must("front_owner.sweep", FrontResponse, now.Add(-keepResponses).UnixMilli())
}
