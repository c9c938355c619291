package apart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"hermes-mobile/internal/access"
	"hermes-mobile/test/hermes"
)

// The accounts, folders and units are made for real, in a mount namespace where /etc, /home and /var/lib are copies. Where
// PID 1 is not systemd the command of the unit is started by hand, under the account of the unit and with the same view of
// the homes; what the other directives of the unit allow is rated in internal/setup.
const (
	home   = "/home/anna/.hermes"
	shared = home + "/platforms/pairing"
	data   = "/var/lib/hermes-mobile"
	binary = "/usr/local/bin/hermes-mobile"
)

func TestMain(m *testing.M) {
	if user := os.Getenv("APART_REQUEST"); user != "" { // as the server does when a stranger asks to be let in
		p, err := access.OpenPairing(shared, "mobile")
		if err == nil {
			var code string
			if code, err = p.Request(user, "A phone"); err == nil {
				fmt.Print(code)
				os.Exit(0)
			}
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestServiceWithItsOwnAccount(t *testing.T) {
	if os.Getenv("APART_INSIDE") != "" {
		inside(t)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make accounts")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "hermes-mobile")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "hermes-mobile/cmd/hermes-mobile").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := exec.CommandContext(t.Context(), "cp", "-a", "/etc", filepath.Join(dir, "etc")).Run(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestServiceWithItsOwnAccount$", "-test.v")
	cmd.Env = append(os.Environ(), "APART_INSIDE="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this machine lets nobody have mounts of their own")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// inside runs in the namespace.
func inside(t *testing.T) {
	dir := os.Getenv("APART_INSIDE")
	must(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	must(t, syscall.Mount(filepath.Join(dir, "etc"), "/etc", "", syscall.MS_BIND, ""))
	for _, path := range []string{"/home", "/var/lib", "/usr/local/bin", "/var/log"} {
		must(t, syscall.Mount("apart", path, "tmpfs", 0, "mode=0755"))
	}
	text, err := os.ReadFile(filepath.Join(dir, "hermes-mobile"))
	must(t, err)
	must(t, os.WriteFile(binary, text, 0o755))
	run(t, "useradd", "--create-home", "--user-group", "anna")
	must(t, os.Chmod("/home/anna", 0o700))
	as(t, "anna", "mkdir", "-p", shared)
	must(t, os.WriteFile(home+"/config.yaml", []byte("model: {default: x}\n"), 0o600))
	must(t, os.WriteFile(shared+"/telegram-approved.json", []byte("{}"), 0o600))
	run(t, "chown", "-R", "anna:anna", home)
	before := run(t, "sh", "-c", "cd "+home+" && find . ! -name __pycache__ -printf '%p %u:%g %m\n' | sort")

	// A server ran there before, under another account.
	must(t, os.MkdirAll(data+"/files", 0o700))
	must(t, os.WriteFile(data+"/tokens", []byte("app=0123456789abcdef0123456789abcdef\n"), 0o600))
	must(t, os.Symlink("/etc/passwd", data+"/link"))
	must(t, os.WriteFile("/var/lib/second", nil, 0o600))
	must(t, os.Link("/var/lib/second", data+"/second"))
	run(t, "chown", "-hR", "anna:anna", data)
	must(t, os.Chown("/var/lib/second", 0, 0))

	setup := func(args ...string) string {
		t.Helper()
		return run(t, append([]string{"env", "HERMES_HOME=" + home, binary, "setup", "--hermes-version", "0.22.2"}, args...)...)
	}
	shown := setup("--print", "--service", "systemd")
	for _, want := range []string{"+ useradd --system", "+ usermod --append --groups hermes-mobile anna", "+ install -d -m 2770 -o anna -g hermes-mobile " + shared,
		"/etc/systemd/system/hermes-mobile.service (new)", "systemctl enable --now hermes-mobile"} {
		if !strings.Contains(shown, want) {
			t.Errorf("--print does not show %q:\n%s", want, shown)
		}
	}
	if got := run(t, "stat", "-c", "%U", data); got != "anna\n" {
		t.Errorf("--print gives the data folder to %s", got)
	}
	setup("--yes", "--service", "systemd", "--wait", "0")
	if again := setup("--yes", "--service", "systemd", "--wait", "0"); !strings.Contains(again, "nothing to write") {
		t.Errorf("the second time it says\n%s", again)
	}
	for path, want := range map[string]string{data + "/tokens": "hermes-mobile:hermes-mobile 600", data + "/files": "hermes-mobile:hermes-mobile 700", data + "/link": "hermes-mobile:hermes-mobile 777",
		"/etc/passwd": "root:root 644", "/var/lib/second": "root:root 600", data: "hermes-mobile:hermes-mobile 710", data + "/relay.env": "hermes-mobile:hermes-mobile 600", home + "/.env": "anna:anna 600", home + "/config.yaml": "anna:anna 600",
		shared: "anna:hermes-mobile 2770", shared + "/telegram-approved.json": "anna:hermes-mobile 660", "/etc/systemd/system/hermes-mobile.service": "root:root 644"} {
		if got := strings.TrimSpace(run(t, "stat", "-c", "%U:%G %a", path)); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if secret, _, _ := strings.Cut(string(read(t, data+"/relay.env")), "\n"); !strings.Contains(string(read(t, home+"/.env")), secret) {
		t.Error("Hermes and the server have different secrets")
	}

	if comm, _ := os.ReadFile("/proc/1/comm"); strings.TrimSpace(string(comm)) != "systemd" {
		t.Logf("PID 1 is %s and not systemd: the command of the unit is started by hand", bytes.TrimSpace(comm))
	}
	serve(t)
	theAgent(t)
	theOwner(t)
	hermesApproves(t)
	undo(t, before, setup)
}

// serve starts the command of the unit under its account, with what it may see of the homes.
func serve(t *testing.T) {
	t.Helper()
	unit := string(read(t, "/etc/systemd/system/hermes-mobile.service"))
	value := func(key string) []string {
		var list []string
		for _, m := range regexp.MustCompile(`(?m)^`+key+`=-?(.*)$`).FindAllStringSubmatch(unit, -1) {
			list = append(list, m[1])
		}
		if len(list) == 0 {
			t.Fatalf("the unit has no %s", key)
		}
		return list
	}
	bind := strings.Trim(value("BindPaths")[0], `"`)
	script := "set -e; mount --bind " + bind + " /mnt; mount -t tmpfs -o mode=0755 x /home; mkdir -p " + bind + "; mount --move /mnt " + bind + "; mount -o remount,ro,bind /home; umask " + value("UMask")[0] +
		"; cd /; exec setpriv --reuid " + value("User")[0] + " --regid " + value("Group")[0] + " --clear-groups --no-new-privs --bounding-set -all --inh-caps -all env -i " +
		strings.Join(value("Environment"), " ") + " MOBILE_PORT=0 MOBILE_PUSH=off " + value("ExecStart")[0]
	cmd := exec.Command("sh", "-c", script)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v:\n%s", err, log.String())
		}
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if exec.CommandContext(t.Context(), binary, "--data", data, "status").Run() == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the server does not start")
		}
	}
}

// theAgent: the account of Hermes, which is in the group, gets at nothing by which a card could be answered.
func theAgent(t *testing.T) {
	t.Helper()
	for _, name := range []string{"tokens", "relay.env", "hermes-mobile.db", "hermes-mobile.db-wal"} {
		if out, err := try("anna", "cat", data+"/"+name); err == nil {
			t.Errorf("anna reads %s: %.40s", name, out)
		}
	}
	if out, err := try("anna", "ls", data); err == nil {
		t.Errorf("anna lists the data folder: %s", out)
	}
	for _, command := range [][]string{{"status"}, {"pair"}, {"token", "add", "evil"}, {"devices", "list"}} {
		if out, err := try("anna", append([]string{binary, "--data", data}, command...)...); err == nil {
			t.Errorf("anna can do %v: %s", command, out)
		}
	}
	if out, err := try("hermes-mobile", "cat", home+"/.env"); err == nil {
		t.Errorf("the server's account reads .env of Hermes: %s", out)
	}
}

// theOwner reaches the server as root, and it judges nothing that it cannot see.
func theOwner(t *testing.T) {
	t.Helper()
	run(t, binary, "--data", data, "pair")
	out, _ := exec.CommandContext(t.Context(), binary, "--data", data, "doctor", "--json").Output() // its status is about the gateway, which is away
	if s := string(out); !strings.Contains(s, `"hermes_hidden"`) || strings.Contains(s, `"code": "relay_not_configured"`) || strings.Contains(s, `"code": "model_missing"`) || strings.Contains(s, "is not running") {
		t.Errorf("the doctor says\n%s", s)
	}
}

// hermesApproves: Hermes' own commands and ours still work on the same files.
func hermesApproves(t *testing.T) {
	t.Helper()
	code := func(user string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "setpriv", "--reuid", "hermes-mobile", "--regid", "hermes-mobile", "--clear-groups", os.Args[0])
		cmd.Env = append(os.Environ(), "APART_REQUEST="+user)
		// The server's account may not enter the home; its unit shows it the folder. The test opens the way.
		must(t, os.Chmod("/home/anna", 0o711))
		must(t, os.Chmod(home, 0o711))
		must(t, os.Chmod(home+"/platforms", 0o711))
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v %s", err, out)
		}
		return string(out)
	}
	for _, v := range []hermes.Version{hermes.V019, hermes.V022} {
		if err := hermes.Available(v); err != nil {
			t.Logf("Hermes %s approves nobody here: %v", v, err)
			continue
		}
		python, err := hermes.Python(v)
		must(t, err)
		user := "tel-" + strings.ReplaceAll(string(v), ".", "-")
		secret := code(user)
		// Imported as root, since anna may not read the packages.
		script := `import os, pwd
os.environ["HERMES_HOME"] = "` + home + `"
import gateway.pairing as p, pathlib, tempfile
with tempfile.TemporaryDirectory() as warm:  # what it imports on its way, it imports now
    store = p.PairingStore()
    store._dir = pathlib.Path(warm)
    store.list_pending("x"); store.approve_code("x", store.generate_code("x", "y"))
    "".encode("utf-8-sig").decode("utf-8-sig")
anna = pwd.getpwnam("anna")
os.initgroups("anna", anna.pw_gid); os.setresgid(anna.pw_gid, anna.pw_gid, anna.pw_gid); os.setresuid(anna.pw_uid, anna.pw_uid, anna.pw_uid)
store = p.PairingStore()
assert store._dir.samefile("` + shared + `")
assert any(e["user_id"] == "` + user + `" for e in store.list_pending("mobile")), store.list_pending("mobile")
assert store.approve_code("mobile", "` + secret + `")
print(oct(os.stat("` + shared + `/mobile-approved.json").st_mode & 0o777))
`
		if mode := strings.TrimSpace(run(t, python, "-c", script)); mode != "0o600" {
			t.Logf("Hermes %s leaves the file with mode %s", v, mode)
		}
		openAgain(t)
		var list struct {
			Approved []struct {
				UserID string `json:"user_id"`
			} `json:"approved"`
		}
		out := run(t, binary, "--data", data, "pairing", "list", "--json")
		must(t, json.Unmarshal([]byte(out), &list))
		if !strings.Contains(out, user) || len(list.Approved) == 0 {
			t.Errorf("after %s approved %s the server has\n%s", v, user, out)
		}
	}
	run(t, binary, "--data", data, "pairing", "list")
}

// openAgain does what the path unit starts.
func openAgain(t *testing.T) {
	t.Helper()
	m := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(string(read(t, "/etc/systemd/system/hermes-mobile-pairing.service")))
	if m == nil {
		t.Fatal("the unit starts nothing")
	}
	as(t, "anna", "sh", "-c", strings.ReplaceAll(m[1], "!", `\!`))
}

// undo leaves Hermes as it was.
func undo(t *testing.T, before string, setup func(...string) string) {
	t.Helper()
	for _, dir := range []string{"/home/anna", home, home + "/platforms"} {
		run(t, "chmod", "700", dir)
	}
	setup("--undo", "--data", data)
	for _, name := range []string{"hermes-mobile.service", "hermes-mobile-pairing.path", "hermes-mobile-pairing.service"} {
		if _, err := os.Stat("/etc/systemd/system/" + name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is left", name)
		}
	}
	if _, err := os.Stat("/etc/hermes-mobile"); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the notes are left")
	}
	after := run(t, "sh", "-c", "cd "+home+" && find . ! -name __pycache__ ! -name '*mobile*' ! -name _rate_limits.json -printf '%p %u:%g %m\n' | sort")
	if strip(after) != strip(before) {
		t.Errorf("the home is\n%s\nand was\n%s", after, before)
	}
	if out := run(t, "find", shared, "-type", "f", "!", "-user", "anna"); out != "" {
		t.Errorf("files of the server's account are left: %s", out)
	}
	as(t, "anna", "sh", "-c", "cat "+shared+"/*.json")
}

// strip leaves out the modes of folders that the test itself opened.
func strip(list string) string {
	var out []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) == 3 && f[0] != "." && f[0] != "./platforms" {
			out = append(out, strings.Join(f, " "))
		}
	}
	return strings.Join(out, "\n")
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

func run(t *testing.T, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", command, err, out, errs.String())
	}
	return string(out)
}

// try runs a command as a user, in the groups of that user.
func try(account string, command ...string) (string, error) {
	out, err := exec.Command("setpriv", append([]string{"--reuid", account, "--regid", account, "--init-groups", "env", "HOME=/nonexistent", "HERMES_HOME=/nonexistent"}, command...)...).CombinedOutput()
	return string(out), err
}

func as(t *testing.T, account string, command ...string) {
	t.Helper()
	if out, err := try(account, command...); err != nil {
		t.Fatalf("%v as %s: %v\n%s", command, account, err, out)
	}
}
