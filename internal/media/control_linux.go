package media

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ours is an error where somebody else than this account and root could change what is in a folder, or exchange one on the way: the
// agent would read what they want under the name that the user chose. A folder that is open to this account's own group is taken as meant.
func ours(dir string) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return fmt.Errorf("%s: its owner is not known", dir)
		}
		mode := info.Mode()
		switch sticky := mode&os.ModeSticky != 0; {
		case st.Uid != 0 && int(st.Uid) != os.Geteuid():
			return fmt.Errorf("%s: belongs to another user", dir)
		case mode&0o002 != 0 && !sticky:
			return fmt.Errorf("%s: everybody can change it (chmod o-w)", dir)
		case mode&0o020 != 0 && !sticky && int(st.Gid) != os.Getegid():
			return fmt.Errorf("%s: its group can change it (chmod g-w)", dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}
