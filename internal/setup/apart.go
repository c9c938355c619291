package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"hermes-mobile/internal/shellquote"
)

// The server's account and data folder as a system service.
const (
	ServerAccount = "hermes-mobile"
	ServerData    = "/var/lib/hermes-mobile"
)

// Apart is what a server with its own account needs besides its units: the account, its data folder, and
// Hermes' pairing files, which the two accounts share through a group.
type Apart struct {
	Account string // of the server; its group has the same name
	Data    string
	Pairing string // folder of the pairing files
	Hermes  string // account that owns that folder, or will own it

	missing struct {
		account, member, data, shared bool
		files                         bool // the data folder is there, and somebody else's
	}
	hermesUID, hermesGID int
}

// ErrApart means that the server can't have its own account here.
var ErrApart = errors.New("the service can't have its own account")

// CheckApart returns an error if a service with its own account can't run a program on a data folder: homes
// are hidden from it.
func CheckApart(binary, data string) error {
	if below(data, append([]string{"/tmp", "/var/tmp"}, hiddenHomes...)...) {
		return fmt.Errorf("%w: its data folder can't be %s, which is hidden from it; use another one with --data, such as %s", ErrApart, data, ServerData)
	}
	real, err := filepath.EvalSymlinks(binary)
	if err != nil {
		return err
	}
	for _, path := range []string{binary, real} {
		fix := fmt.Sprintf("run install -m 755 %s /usr/local/bin/hermes-mobile, and use that one", shellquote.Word(binary))
		if below(path, append([]string{"/tmp", "/var/tmp"}, hiddenHomes...)...) {
			return fmt.Errorf("%w: it can't run %s, which is hidden from it: %s", ErrApart, path, fix)
		}
		for dir := path; ; dir = filepath.Dir(dir) {
			info, err := os.Stat(dir)
			if err != nil {
				return err
			}
			if info.Mode().Perm()&0o001 == 0 {
				return fmt.Errorf("%w: other accounts can't enter or run %s: %s", ErrApart, dir, fix)
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return nil
}

// NewApart finds out what is missing. Only root may call it.
func NewApart(data, pairing string) (*Apart, error) {
	a := &Apart{Account: ServerAccount, Data: data, Pairing: pairing}
	return a, a.probe()
}

// Done reports whether nothing is missing.
func (a *Apart) Done() bool {
	return a == nil || !a.missing.account && !a.missing.member && !a.missing.data && !a.missing.shared
}

// Commands returns the commands that create what is missing.
func (a *Apart) Commands() (list []string) {
	if a == nil {
		return nil
	}
	if a.missing.account {
		list = append(list, strings.Join(a.useradd(), " "))
	}
	if a.missing.member {
		list = append(list, strings.Join(a.usermod(), " "))
	}
	if a.missing.data {
		list = append(list, fmt.Sprintf("install -d -m 0710 -o %s -g %s %s", a.Account, a.Account, shellquote.Word(a.Data)))
	}
	if a.missing.files {
		list = append(list, fmt.Sprintf("chown -hR %s:%s %s", a.Account, a.Account, shellquote.Word(a.Data)))
	}
	if a.missing.shared {
		dir := shellquote.Word(a.Pairing)
		list = append(list, fmt.Sprintf("install -d -m 2770 -o %s -g %s %s", a.Hermes, a.Account, dir),
			fmt.Sprintf("find %s -maxdepth 1 -type f -exec chgrp %s {} + -exec chmod 660 {} +", dir, a.Account))
	}
	return list
}

func (a *Apart) useradd() []string {
	return []string{"useradd", "--system", "--user-group", "--no-create-home", "--home-dir", a.Data, "--shell", "/usr/sbin/nologin", a.Account}
}

func (a *Apart) usermod() []string {
	return []string{"usermod", "--append", "--groups", a.Account, a.Hermes}
}

// Notes returns notes for the owner.
func (a *Apart) Notes() (list []string) {
	if a == nil {
		return nil
	}
	if a.hermesUID == 0 {
		list = append(list, "Hermes runs as root, so its agent can do anything on this machine, including answering its own approval cards; run Hermes under its own account")
	}
	if a.missing.member {
		list = append(list, fmt.Sprintf("%s joins the group %s at its next login: log %s out and in again, then restart the gateway", a.Hermes, a.Account, a.Hermes))
	}
	return list
}

// Prepare creates the account and its data folder, and adds Hermes' account to its group.
func (a *Apart) Prepare(ctx context.Context) error {
	if a == nil {
		return nil
	}
	if err := a.prepare(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrApart, err)
	}
	return nil
}

// share is the state of a folder before setup shared its files, for an undo.
type share struct {
	Path    string      `json:"path"`
	Account string      `json:"account"` // whose files in it become those of the folder's owner
	GID     int         `json:"gid"`
	Mode    fs.FileMode `json:"mode"`
}
