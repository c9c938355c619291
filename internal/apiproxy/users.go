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

// Cost is how much work a password is.
type Cost = passhash.Cost

// Users are those who may log in. Its methods may be called from any goroutine.
type Users struct {
	store *store.Store
	cost  Cost
	now   func() time.Time
	work  chan struct{} // each password that is worked on has a place here, as it takes memory and a core
	queue atomic.Int32  // logins that wait for one
	dummy passhash.Hash // stands for the password of who is unknown
}

// User is one of them, as the owner of the server sees it.
type User struct {
	ID        string     `json:"-"`
	Name      string     `json:"name"`
	CreatedAt time.Time  `json:"created_at"`
	ChangedAt time.Time  `json:"password_changed_at"`
	SeenAt    *time.Time `json:"last_login_at"`
}

// atOnce is how many passwords are worked on at a time: half of the cores is left for those who are in.
func atOnce() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// maxQueue is how many logins wait for others.
const maxQueue = 16

// errBusy: so many logins wait that another one must come later.
var errBusy = errors.New("too many logins at once")

// NewUsers makes Users with passwords of a cost, zero for the default.
func NewUsers(s *store.Store, cost Cost, now func() time.Time) *Users {
	if cost == (Cost{}) {
		cost = passhash.DefaultCost
	}
	return &Users{store: s, cost: cost, now: now, work: make(chan struct{}, atOnce()), dummy: passhash.Dummy(cost)}
}

var userName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@+-]{0,63}$`)

// normal is a name as it is stored: who writes it in capitals means the same.
func normal(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// What a password may be.
const (
	minPassword = 8
	maxPassword = 1024 // bytes
)

// CheckPassword returns why a password cannot be taken.
func CheckPassword(password string) error {
	switch {
	case !utf8.ValidString(password) || strings.ContainsAny(password, "\x00\r\n"):
		return errors.New("the password holds a line end or is not UTF-8: choose another")
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

// Add makes a user.
func (u *Users) Add(ctx context.Context, name, password string) error {
	name = normal(name)
	if !userName.MatchString(name) {
		return fmt.Errorf("%q is no name of a user: it takes 1 to 64 of a-z 0-9 . _ @ + -, and begins with a letter or a digit", name)
	}
	hash, err := u.hash(ctx, password)
	if err != nil {
		return err
	}
	added := false
	if err := u.store.Do(func(tx *store.Tx) (err error) {
		added, err = tx.AddFrontUser(&store.FrontUser{ID: newID(), Name: name, Password: hash}, u.now())
		if err != nil || !added {
			return err
		}
		return tx.Record(ctx, "api_user.added", name, "")
	}); err != nil {
		return err
	}
	if !added {
		return fmt.Errorf("there is a user %s already: hermes-mobile users passwd changes the password", name)
	}
	return nil
}

// newID is what a user is called where a name could come again.
func newID() string { return "u" + strings.ToLower(rand.Text()[:16]) }

func (u *Users) find(ctx context.Context, name string) (*store.FrontUser, error) {
	user, err := u.store.FrontUser(ctx, normal(name))
	if err == nil && user == nil {
		err = fmt.Errorf("there is no user %q: hermes-mobile users list shows all", normal(name))
	}
	return user, err
}

// Remove drops a user and all logins, and returns the id.
func (u *Users) Remove(ctx context.Context, name string) (id string, err error) {
	user, err := u.find(ctx, name)
	if err != nil {
		return "", err
	}
	return user.ID, u.store.Do(func(tx *store.Tx) error {
		return errors.Join(tx.RemoveFrontUser(user.ID), tx.Record(ctx, "api_user.removed", user.Name, ""))
	})
}

// SetPassword gives a user another password, ends all logins, and returns the id.
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
		return errors.Join(tx.SetFrontPassword(user.ID, hash, u.now()), tx.Record(ctx, "api_user.password", user.Name, ""))
	})
}

// List returns all users, by name.
func (u *Users) List(ctx context.Context) ([]User, error) {
	list := []User{}
	all, err := u.store.FrontUsers(ctx)
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

// check returns the user with this name and password, nil where there is none. It takes as long for a name that is unknown.
func (u *Users) check(ctx context.Context, name, password string) (*store.FrontUser, error) {
	user, err := u.store.FrontUser(ctx, normal(name))
	if err != nil {
		return nil, err
	}
	stored := u.dummy
	if user != nil {
		if stored, err = passhash.Parse(user.Password); err != nil {
			return nil, fmt.Errorf("user %s: the stored password cannot be read: %w; set it again with hermes-mobile users passwd", user.Name, err)
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
		return user, u.store.Do(func(tx *store.Tx) error { return tx.RehashFrontPassword(user.ID, old, user.Password) })
	}
	return user, nil
}
