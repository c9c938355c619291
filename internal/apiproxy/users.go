package apiproxy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"hermes-mobile/internal/passhash"
	"hermes-mobile/internal/store"
)

// Cost is the cost of hashing a password.
type Cost = passhash.Cost

// Users manages the users of the API proxy. It is safe for concurrent use.
type Users struct {
	store *store.Store
	cost  Cost
	now   func() time.Time
	work  chan struct{} // one slot per password being hashed, since that takes memory and a core
	queue atomic.Int32  // logins that wait for a slot
	dummy passhash.Hash // checked for unknown names
}

// User is a user as the owner of the server sees them.
type User struct {
	ID        string     `json:"-"`
	Name      string     `json:"name"`
	CreatedAt time.Time  `json:"created_at"`
	ChangedAt time.Time  `json:"password_changed_at"`
	SeenAt    *time.Time `json:"last_login_at"`
}

// atOnce returns how many passwords are hashed at a time. Half of the cores are left to users who
// are logged in.
func atOnce() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// maxQueue is how many logins may wait.
const maxQueue = 16

// errBusy reports that too many logins are waiting.
var errBusy = errors.New("too many logins at once")

// NewUsers returns Users with passwords of a cost, zero for the default.
func NewUsers(s *store.Store, cost Cost, now func() time.Time) *Users {
	if cost == (Cost{}) {
		cost = passhash.DefaultCost
	}
	return &Users{store: s, cost: cost, now: now, work: make(chan struct{}, atOnce()), dummy: passhash.Dummy(cost)}
}

var userName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,63}$`)

// normal returns a name as it is stored, in lower case.
func normal(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Bounds of a password.
const (
	minPassword = 8
	maxPassword = 1024 // bytes
)

// CheckPassword returns why a password isn't allowed.
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password) || strings.ContainsAny(password, "\x00\r\n"):
		return errors.New("the password contains a line break or isn't UTF-8: choose another")
	case utf8.RuneCountInString(password) < minPassword:
		return fmt.Errorf("the password is shorter than %d characters: choose a longer one", minPassword)
	case len(password) > maxPassword:
		return fmt.Errorf("the password is longer than %d bytes: choose a shorter one", maxPassword)
	}
	return nil
}

func (u *Users) hash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	if err := u.enter(ctx); err != nil {
		return "", err
	}
	defer u.leave()
	return passhash.New(u.cost, password).String(), nil
}

func (u *Users) enter(ctx context.Context) error {
	select {
	case u.work <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *Users) leave() { <-u.work }

// Add creates a user.
func (u *Users) Add(ctx context.Context, name, password string) error {
	name = normal(name)
	if !userName.MatchString(name) {
		return fmt.Errorf("invalid user name %q: use 1 to 64 of a-z 0-9 . _ @ + -, starting with a letter or a digit", name)
	}
	hash, err := u.hash(ctx, password)
	if err != nil {
		return err
	}
	added := false
	if err := u.store.Do(func(tx *store.Tx) (err error) {
		added, err = tx.API().AddUser(&store.APIUser{ID: newID(), Name: name, Password: hash}, u.now())
		if err != nil || !added {
			return err
		}
		return tx.Record(ctx, "api_user.added", name, "")
	}); err != nil {
		return err
	}
	if !added {
		return fmt.Errorf("user %s already exists: change the password with hermes-mobile users passwd", name)
	}
	return nil
}

// newID returns the id of a new user. Unlike a name, it never comes again.
func newID() string { return "u" + strings.ToLower(rand.Text()[:16]) }

func (u *Users) find(ctx context.Context, name string) (*store.APIUser, error) {
	user, err := u.store.API().User(ctx, normal(name))
	if err == nil && user == nil {
		err = fmt.Errorf("no user %q: list the users with hermes-mobile users list", normal(name))
	}
	return user, err
}

// Remove removes a user with all logins, and returns the id.
func (u *Users) Remove(ctx context.Context, name string) (id string, err error) {
	user, err := u.find(ctx, name)
	if err != nil {
		return "", err
	}
	return user.ID, u.store.Do(func(tx *store.Tx) error {
		return errors.Join(tx.API().RemoveUser(user.ID), tx.Record(ctx, "api_user.removed", user.Name, ""))
	})
}

// SetPassword changes a user's password, ends all logins, and returns the id.
func (u *Users) SetPassword(ctx context.Context, name, password string) (id string, err error) {
	user, err := u.find(ctx, name)
	if err != nil {
		return "", err
	}
	hash, err := u.hash(ctx, password)
	if err != nil {
		return "", err
	}
	return user.ID, u.store.Do(func(tx *store.Tx) error {
		return errors.Join(tx.API().SetPassword(user.ID, hash, u.now()), tx.Record(ctx, "api_user.password", user.Name, ""))
	})
}

// List returns all users, sorted by name.
func (u *Users) List(ctx context.Context) ([]User, error) {
	list := []User{}
	all, err := u.store.API().Users(ctx)
	for _, s := range all {
		user := User{ID: s.ID, Name: s.Name, CreatedAt: s.CreatedAt.UTC(), ChangedAt: s.ChangedAt.UTC()}
		if !s.SeenAt.IsZero() {
			at := s.SeenAt.UTC()
			user.SeenAt = &at
		}
		list = append(list, user)
	}
	return list, err
}

// check returns the user with this name and password, or nil. It takes as long for an unknown name,
// so the time doesn't tell which names exist.
func (u *Users) check(ctx context.Context, name, password string) (*store.APIUser, error) {
	user, err := u.store.API().User(ctx, normal(name))
	if err != nil {
		return nil, err
	}
	stored := u.dummy
	if user != nil {
		if stored, err = passhash.Parse(user.Password); err != nil {
			return nil, fmt.Errorf("user %s: stored password corrupt: %w; set it again with hermes-mobile users passwd", user.Name, err)
		}
	}
	if len(password) > maxPassword {
		return nil, nil
	}
	if u.queue.Add(1) > maxQueue {
		u.queue.Add(-1)
		return nil, errBusy
	}
	err = u.enter(ctx)
	u.queue.Add(-1)
	if err != nil {
		return nil, err
	}
	defer u.leave()
	if !stored.Matches(password) || user == nil {
		return nil, nil
	}
	if stored.Weaker(u.cost) {
		old := user.Password
		user.Password = passhash.New(u.cost, password).String()
		return user, u.store.Do(func(tx *store.Tx) error { return tx.API().RehashPassword(user.ID, old, user.Password) })
	}
	return user, nil
}
