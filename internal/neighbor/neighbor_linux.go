package neighbor

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tries is how often a socket is searched for: the kernel's list may miss one while others come and go.
const tries = 3

// sockets returns the names of the sockets that match, as links in /proc/<pid>/fd have them.
func sockets(fits func(socket) bool) (names []string) {
	for range tries {
		for _, list := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
			text, err := os.ReadFile(list)
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if s, ok := parse(line); ok && fits(s) {
					names = append(names, "socket:["+s.inode+"]")
				}
			}
		}
		if len(names) > 0 {
			break
		}
	}
	return names
}

// gateway returns the process that has a socket that matches, if it is a Hermes gateway of this account.
func gateway(fits func(socket) bool) (Process, bool) {
	inodes := sockets(fits)
	if len(inodes) == 0 {
		return Process{}, false
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return Process{}, false
	}
	for _, e := range all {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		dir := filepath.Join("/proc", e.Name())
		if !isGateway(dir) || !holds(dir, inodes) {
			continue
		}
		if since, ok := begun(dir); ok && sameAccount(dir) {
			return Process{pid, since}, true
		}
	}
	return Process{}, false
}

// parse reads a line of /proc/net/tcp: a number, two addresses, and the state in hexadecimal. The inode is
// its tenth field.
func parse(line string) (s socket, ok bool) {
	f := strings.Fields(line)
	if len(f) < 10 {
		return s, false
	}
	var ok1, ok2 bool
	s.local, ok1 = address(f[1])
	s.remote, ok2 = address(f[2])
	s.listens, s.inode = f[3] == "0A", f[9]
	return s, ok1 && ok2 && s.inode != "0"
}

// address reads an address as the kernel writes it: words of four bytes in the byte order of this machine.
func address(text string) (netip.AddrPort, bool) {
	host, port, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(host)
	n, err2 := strconv.ParseUint(port, 16, 16)
	if err != nil || err2 != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.NativeEndian.Uint32(b[i:]))
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a.Unmap(), uint16(n)), true
}

// isGateway reports whether a process is a Hermes gateway, by its command line. A tunnel or proxy in front
// of one is not.
func isGateway(dir string) bool {
	line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return false
	}
	args := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
	return strings.HasPrefix(filepath.Base(args[0]), "python") && slices.Contains(args, "gateway") &&
		slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "hermes") })
}

// holds reports whether a process has one of the sockets open.
func holds(dir string, inodes []string) bool {
	files, err := os.ReadDir(filepath.Join(dir, "fd")) // fails for another account
	if err != nil {
		return false
	}
	for _, f := range files {
		if to, err := os.Readlink(filepath.Join(dir, "fd", f.Name())); err == nil && slices.Contains(inodes, to) {
			return true
		}
	}
	return false
}

// sameAccount reports whether a process has the user id of this one, so that both can read the same files.
func sameAccount(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			f := strings.Fields(ids) // real, effective, saved, for files
			return len(f) == 4 && f[3] == strconv.Itoa(os.Geteuid())
		}
	}
	return false
}

// begun returns when a process began, in ticks since the machine started. That is the 22nd field of its
// stat file. The second field is a name in parentheses that may contain anything.
func begun(dir string) (uint64, bool) {
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return 0, false
	}
	f := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(f) < 20 {
		return 0, false
	}
	n, err := strconv.ParseUint(f[19], 10, 64)
	return n, err == nil
}

// root returns the root folder of the process, as long as it is the same one.
func (p Process) root() (string, bool) {
	if p.pid == 0 {
		return "", false
	}
	dir := filepath.Join("/proc", strconv.Itoa(p.pid))
	since, ok := begun(dir)
	return filepath.Join(dir, "root"), ok && since == p.since
}
