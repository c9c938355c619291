package media

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ours returns an error if anybody but this account and root could change the content of a folder
// or replace a folder on the way. The agent would then read somebody else's content under the name
// that the user chose. A folder that is open to this account's own group is allowed.
func ours(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: unknown owner", dir)
		}
		mode := info.Mode()
		switch sticky := mode&os.ModeSticky != 0; {
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Errorf("%s: belongs to another user", dir)
		case mode&0o002 != 0 && !sticky:
			return fmt.Errorf("%s: writable by everybody (chmod o-w)", dir)
		case mode&0o020 != 0 && !sticky && int(st.Gid) != os.Getegid():
			return fmt.Errorf("%s: writable by its group (chmod g-w)", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
