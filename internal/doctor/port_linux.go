package doctor

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// listening is the state of a listening socket in /proc/net/tcp.
const listening = "0A"

// PortHolder describes the program that listens on a port of a host. It returns an empty string if
// the program is unknown, for example because it belongs to another user.
func PortHolder(host string, port int) string {
	sockets := map[string]bool{}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		f, err := os.Open(table)
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			cells := strings.Fields(lines.Text())
			if len(cells) < 10 || cells[3] != listening {
				continue
			}
			addr, number, _ := strings.Cut(cells[1], ":")
			if n, err := strconv.ParseUint(number, 16, 16); err == nil && int(n) == port && collides(addr, host) {
				sockets["socket:["+cells[9]+"]"] = true
			}
		}
		_ = f.Close()
	}
	if len(sockets) == 0 {
		return ""
	}
	processes, _ := filepath.Glob("/proc/[0-9]*/fd")
	for _, dir := range processes {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue // the process belongs to another user
		}
		for _, e := range entries {
			if link, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && sockets[link] {
				return process(filepath.Dir(dir))
			}
		}
	}
	return ""
}

// collides reports whether a socket on an address, in the format of /proc/net/tcp, keeps another
// socket from listening on a host. A host name or an unspecified address collides with every
// socket.
func collides(written, host string) bool {
	wanted, err := netip.ParseAddr(host)
	raw, bad := hex.DecodeString(written)
	if err != nil || bad != nil || wanted.IsUnspecified() {
		return true
	}
	for i := 0; i+4 <= len(raw); i += 4 { // 32-bit words in the byte order of the machine
		binary.BigEndian.PutUint32(raw[i:], binary.NativeEndian.Uint32(raw[i:]))
	}
	addr, ok := netip.AddrFromSlice(raw)
	return !ok || addr.IsUnspecified() || addr.Unmap() == wanted.Unmap()
}

// process describes a process, given its folder in /proc.
func process(dir string) string {
	name, err := os.Readlink(filepath.Join(dir, "exe"))
	name = strings.TrimSuffix(filepath.Base(name), " (deleted)")
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "comm"))
		name = strings.TrimSpace(string(text))
	}
	return fmt.Sprintf("%s (process %s)", name, filepath.Base(dir))
}
