package store

import (
	"context"
	"database/sql"
	"time"
)

// API reads the users of the API proxy, their logins and keys, and what belongs to them.
type API struct{ s *Store }

// API returns the data of the API proxy, for reading.
func (s *Store) API() API { return API{s} }

// APITx changes the data of the API proxy.
type APITx struct{ t *Tx }

// API returns the data of the API proxy, for changing.
func (t *Tx) API() APITx { return APITx{t} }

// APIUser is a user of the API proxy.
type APIUser struct {
	ID, Name  string
	Password  string // hash
	CreatedAt time.Time
	ChangedAt time.Time // of the password
	SeenAt    time.Time // the last login; zero: never
}

// APIToken is the token in a cookie.
type APIToken struct {
	Hash, Login string
	User, Name  string // of the user who logged in
	Refresh     bool   // it is only good for new tokens
	Until       time.Time
	Parent      string    // hash of its predecessor, empty once it was used
	SpentAt     time.Time // when a successor was first used; zero: not yet
}

// Kinds of objects that belong to a user of the API proxy.
const (
	APISession  = "session"
	APIRun      = "run"
	APIResponse = "response"
	APIJob      = "job"
)

// How long the owner of an object is remembered that Hermes itself soon forgets.
const (
	keepRuns      = 7 * 24 * time.Hour
	keepResponses = 365 * 24 * time.Hour
	keepKeys      = 30 * 24 * time.Hour // that have expired, so the owner sees why a program fails
)

func milli(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

func (a API) users(ctx context.Context, name string, args ...any) ([]*APIUser, error) {
	var list []*APIUser
	err := a.s.rows(ctx, name, func(r *sql.Rows) error {
		u := &APIUser{}
		var created, changed, seen int64
		err := r.Scan(&u.ID, &u.Name, &u.Password, &created, &changed, &seen)
		u.CreatedAt, u.ChangedAt, u.SeenAt = milli(created), milli(changed), milli(seen)
		list = append(list, u)
		return err
	}, args...)
	return list, err
}

// Users returns all users, sorted by name.
func (a API) Users(ctx context.Context) ([]*APIUser, error) {
	return a.users(ctx, "front_user.list")
}

// User returns the user with a name, nil if there is none.
func (a API) User(ctx context.Context, name string) (*APIUser, error) {
	list, err := a.users(ctx, "front_user.name", name)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return list[0], nil
}

// AddUser stores a new user. ok is false if the name is taken.
func (a APITx) AddUser(u *APIUser, now time.Time) (ok bool, err error) {
	changed, _, err := a.t.exec("front_user.add", u.ID, u.Name, u.Password, now.UnixMilli(), now.UnixMilli())
	return changed > 0, err
}

// SetPassword changes the password and ends all logins of the user.
func (a APITx) SetPassword(user, hash string, now time.Time) error {
	if err := a.t.must("front_token.user", user); err != nil {
		return err
	}
	return a.t.must("front_user.password", hash, now.UnixMilli(), user)
}

// RehashPassword stores a stronger hash of the same password, unless the password changed in the
// meantime.
func (a APITx) RehashPassword(user, old, hash string) error {
	return a.t.must("front_user.rehash", hash, user, old)
}

// RemoveUser removes a user with all logins, keys, and ownerships.
func (a APITx) RemoveUser(user string) error {
	for _, name := range []string{"front_token.user", "front_key.user", "front_owner.user", "front_user.remove"} {
		if err := a.t.must(name, user); err != nil {
			return err
		}
	}
	return nil
}

// SeenUser records a login.
func (a APITx) SeenUser(user string, now time.Time) error {
	return a.t.must("front_user.seen", now.UnixMilli(), user)
}

// Token returns the token with a hash, nil if there is none.
func (a API) Token(ctx context.Context, hash string) (*APIToken, error) {
	var k *APIToken
	err := a.s.rows(ctx, "front_token.hash", func(r *sql.Rows) error {
		k = &APIToken{Hash: hash}
		var until, spent int64
		err := r.Scan(&k.Login, &k.User, &k.Name, &k.Refresh, &until, &k.Parent, &spent)
		k.Until, k.SpentAt = milli(until), milli(spent)
		return err
	}, hash)
	return k, err
}

// Logins returns the logins of a user, newest first.
func (a API) Logins(ctx context.Context, user string) ([]string, error) {
	return a.s.strings(ctx, "front_token.logins", user)
}

// AddToken stores a token.
func (a APITx) AddToken(k APIToken, now time.Time) error {
	return a.t.must("front_token.add", k.Hash, k.Login, k.User, k.Refresh, now.UnixMilli(), k.Until.UnixMilli(), k.Parent)
}

// SpendToken records the first use of a token, which makes its predecessor obsolete.
func (a APITx) SpendToken(parent string, now time.Time) error {
	if err := a.t.must("front_token.spend", now.UnixMilli(), parent); err != nil {
		return err
	}
	return a.t.must("front_token.adopt", parent)
}

// EndLogin removes all tokens of a login.
func (a APITx) EndLogin(login string) error { return a.t.must("front_token.login", login) }

// Claim records the owner of an object, unless it has one.
func (a APITx) Claim(kind, id, user string, now time.Time) error {
	return a.t.must("front_owner.claim", kind, id, user, now.UnixMilli())
}

// Take records the owner of an object that was just created, whatever had its id before.
func (a APITx) Take(kind, id, user string, now time.Time) error {
	return a.t.must("front_owner.take", kind, id, user, now.UnixMilli())
}

// Forget removes the owner of an object that is gone.
func (a APITx) Forget(kind, id string) error { return a.t.must("front_owner.forget", kind, id) }

// Owner returns the id of the user who owns an object, empty if nobody does.
func (a API) Owner(ctx context.Context, kind, id string) (user string, err error) {
	err = a.s.rows(ctx, "front_owner.id", func(r *sql.Rows) error { return r.Scan(&user) }, kind, id)
	return user, err
}

// Owned returns the ids of all objects of a kind that belong to a user.
func (a API) Owned(ctx context.Context, user, kind string) (map[string]bool, error) {
	list, err := a.s.strings(ctx, "front_owner.user", user, kind)
	set := make(map[string]bool, len(list))
	for _, id := range list {
		set[id] = true
	}
	return set, err
}

func (a APITx) sweep(now time.Time) error {
	if err := a.t.must("front_token.sweep", now.UnixMilli()); err != nil {
		return err
	}
	if err := a.t.must("front_key.sweep", now.Add(-keepKeys).UnixMilli()); err != nil {
		return err
	}
	if err := a.t.must("front_owner.sweep", APIRun, now.Add(-keepRuns).UnixMilli()); err != nil {
		return err
	}
	return a.t.must("front_owner.sweep", APIResponse, now.Add(-keepResponses).UnixMilli())
}
