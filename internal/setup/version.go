package setup

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/asowner"
)

// Version is the major and minor version of Hermes. The zero value means unknown.
type Version struct{ Major, Minor int }

var (
	streams = Version{0, 20} // the first release that streams over a relay
	newer   = Version{0, 22} // the first release with platforms of plug-ins, and with another YAML library
)

func (v Version) known() bool { return v != Version{} }

// Streams reports whether Hermes can stream replies over a relay.
func (v Version) Streams() bool { return v.known() && !v.less(streams) }

// Plugins reports whether a plug-in can give the relay's chats a name of their own.
func (v Version) Plugins() bool { return v.known() && !v.less(newer) }

func (v Version) less(o Version) bool {
	return cmp.Or(cmp.Compare(v.Major, o.Major), cmp.Compare(v.Minor, o.Minor)) < 0
}

// String returns the version, or "unknown".
func (v Version) String() string {
	if !v.known() {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// MarshalText returns the same text as String.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

var versionForm = regexp.MustCompile(`(?:^|[^0-9.])v?(\d{1,4})\.(\d{1,4})(?:\.[0-9A-Za-z.+-]+)?(?:[^0-9.]|$)`)

// ParseVersion returns the first version in a text, such as 0.22.2.
func ParseVersion(text string) (Version, bool) {
	m := versionForm.FindStringSubmatch(text)
	if m == nil {
		return Version{}, false
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	v := Version{major, minor}
	return v, v.known()
}

// askFor bounds the time of hermes --version. Hermes 0.19 looks for updates before it ends.
const askFor = 15 * time.Second

// FindVersion runs the hermes program of this machine to get its version. If that fails, it reads
// the version of the installed package. how is the source of the version, or the reason why it is
// unknown.
func FindVersion(ctx context.Context, home string) (v Version, how string) {
	program := findProgram(home)
	if program == "" {
		return v, "no hermes program found on PATH or in the usual places"
	}
	if v, ok := ask(ctx, program, home); ok {
		return v, program + " --version"
	}
	if v, path := installed(program); v.known() {
		return v, path
	}
	return v, program + " does not report its version"
}

// LookVersion returns the version of the installed package. Unlike FindVersion, it runs no program.
// path is the hermes program, or empty if it isn't found.
func LookVersion(home string) (v Version, path string) {
	if path = findProgram(home); path != "" {
		v, _ = installed(path)
	}
	return v, path
}

// Known reports whether the version is known.
func (v Version) Known() bool { return v.known() }

// Before reports whether a version is older than another. It is false for an unknown version.
func (v Version) Before(o Version) bool { return v.known() && v.less(o) }

// findProgram finds the hermes program on PATH, or in the folders that its installers use.
func findProgram(home string) string {
	if path, err := exec.LookPath("hermes"); err == nil {
		return path
	}
	bin, exe := "bin", "hermes"
	if runtime.GOOS == "windows" {
		bin, exe = "Scripts", "hermes.exe"
	}
	root := home
	if filepath.Base(filepath.Dir(home)) == "profiles" {
		root = filepath.Dir(filepath.Dir(home))
	}
	var places []string
	for _, dir := range []string{"hermes-agent/venv", "hermes-agent/.venv", "venv", ".venv"} {
		places = append(places, filepath.Join(root, filepath.FromSlash(dir), bin, exe))
	}
	if user, err := os.UserHomeDir(); err == nil {
		places = append(places, filepath.Join(user, ".local", "bin", exe))
		for _, dir := range []string{".local/share/uv/tools/hermes-agent", ".local/share/pipx/venvs/hermes-agent", ".local/pipx/venvs/hermes-agent"} {
			places = append(places, filepath.Join(user, filepath.FromSlash(dir), bin, exe))
		}
	}
	for _, path := range append(places, "/usr/local/bin/hermes", "/opt/hermes/venv/bin/hermes", "/opt/hermes/.venv/bin/hermes") {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// ask runs hermes --version. Its first line counts, also when the rest takes too long.
func ask(ctx context.Context, program, home string) (Version, bool) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--version")
	cmd.WaitDelay = time.Second
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(e string) bool {
		name, _, _ := strings.Cut(strings.ToUpper(e), "=")
		return strings.HasSuffix(name, "_PROXY")
	}), "HERMES_HOME="+home, "NO_COLOR=1")
	if err := asowner.RunAs(cmd, program, home); err != nil {
		return Version{}, false
	}
	out, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return Version{}, false
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if v, ok := ParseVersion(lines.Text()); ok && strings.Contains(strings.ToLower(lines.Text()), "hermes") {
			cancel() // the rest of the output doesn't matter
			_ = cmd.Wait()
			return v, true
		}
	}
	_ = cmd.Wait()
	return Version{}, false
}

// installed finds the package hermes-agent in the Python environment of a program. It returns the
// package's version and path.
func installed(program string) (Version, string) {
	envs := []string{filepath.Dir(filepath.Dir(program))}
	if real, err := filepath.EvalSymlinks(program); err == nil {
		envs = append(envs, filepath.Dir(filepath.Dir(real)))
	}
	if f, _, err := asowner.Open(program); err == nil {
		head := make([]byte, 1024)
		n, _ := f.Read(head)
		_ = f.Close()
		if line, _, _ := strings.Cut(string(head[:n]), "\n"); strings.HasPrefix(line, "#!/") {
			python := strings.Fields(strings.TrimPrefix(line, "#!"))[0]
			envs = append(envs, filepath.Dir(filepath.Dir(python)))
		}
	}
	for _, env := range envs {
		for _, lib := range []string{"lib/python3*/site-packages", "lib64/python3*/site-packages", "Lib/site-packages"} {
			found, _ := filepath.Glob(filepath.Join(env, filepath.FromSlash(lib), "hermes_agent*-*.dist-info"))
			for _, path := range found {
				_, version, _ := strings.Cut(filepath.Base(path), "-")
				if v, ok := ParseVersion(strings.TrimSuffix(version, ".dist-info")); ok {
					return v, path
				}
			}
		}
	}
	return Version{}, ""
}
