package term

import (
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hermes-mobile/device"
	"hermes-mobile/frame"
)

// command is a line that this program handles itself. Every other line goes to the agent, with or
// without a slash: /help is a command of the agent.
type command struct {
	name string // send, steer, revoke, profile, stop, quit, keys
	arg  string
}

// parseCommand reports whether a line is a command of this program.
func parseCommand(s string) (command, bool) {
	word, arg, _ := strings.Cut(strings.TrimSpace(s), " ")
	switch word {
	case "/send":
		return command{"send", strings.TrimSpace(arg)}, true
	case "/steer":
		if strings.TrimSpace(arg) != "" {
			return command{"steer", strings.TrimSpace(arg)}, true
		}
	case "/revoke":
		if id := strings.TrimSpace(arg); frame.ValidID(id) {
			return command{"revoke", id}, true
		}
	case "/profile":
		return command{"profile", strings.TrimSpace(arg)}, true
	case "/stop", "/quit", "/keys":
		if arg == "" {
			return command{word[1:], ""}, true
		}
	}
	return command{}, false
}

// splitPath splits `PATH caption`. A path with spaces is quoted, or has its spaces escaped.
func splitPath(s string) (path, caption string) {
	var b strings.Builder
	var quote rune
	escaped := false
	for i, r := range s {
		switch {
		case escaped:
			b.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'' && os.PathSeparator != '\\':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\'') && b.Len() == 0:
			quote = r
		case quote == 0 && r == ' ':
			return b.String(), strings.TrimSpace(s[i:])
		default:
			b.WriteRune(r)
		}
	}
	return b.String(), ""
}

func quotePath(path string) string {
	if os.PathSeparator == '\\' {
		if strings.Contains(path, " ") {
			return `"` + path
		}
		return path
	}
	return strings.NewReplacer(`\`, `\\`, " ", `\ `, `"`, `\"`, "'", `\'`).Replace(path)
}

func home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if dir, err := os.UserHomeDir(); err == nil {
			return filepath.Join(dir, rest)
		}
	}
	return path
}

// openFile opens the file of a /send command. The caller closes it when the receipt is there.
func openFile(arg string) (*os.File, device.FileOptions, error) {
	path, caption := splitPath(arg)
	if path == "" {
		return nil, device.FileOptions{}, fmt.Errorf("/send needs a file: /send PATH CAPTION")
	}
	f, err := os.Open(home(path))
	if err != nil {
		return nil, device.FileOptions{}, Unreadable(path, err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, device.FileOptions{}, err
	}
	return f, device.FileOptions{Name: filepath.Base(path), Mime: typeOf(f), Caption: caption, ReaderAt: f, Size: info.Size()}, nil
}

func typeOf(f *os.File) string {
	if t := mime.TypeByExtension(filepath.Ext(f.Name())); t != "" {
		t, _, _ = strings.Cut(t, ";")
		return t
	}
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	t, _, _ := strings.Cut(http.DetectContentType(head[:n]), ";")
	return t
}

// complete completes the path in `/send PA` as far as it is unambiguous, and returns all
// candidates.
func complete(input string) (completed string, choices []string) {
	arg, ok := strings.CutPrefix(input, "/send ")
	if !ok {
		return input, nil
	}
	path, caption := splitPath(arg)
	if caption != "" {
		return input, nil
	}
	dir, prefix := filepath.Split(path)
	entries, err := os.ReadDir(home(filepath.Join(dir, ".") + string(os.PathSeparator)))
	if err != nil {
		return input, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) && (prefix != "" || e.Name()[0] != '.') {
			name := e.Name()
			if e.IsDir() {
				name += string(os.PathSeparator)
			}
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return input, nil
	}
	slices.Sort(names)
	common := names[0]
	for _, n := range names[1:] {
		for !strings.HasPrefix(n, common) {
			r := []rune(common)
			common = string(r[:len(r)-1])
		}
	}
	return "/send " + quotePath(dir+common), names
}
