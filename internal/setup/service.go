package setup

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"hermes-mobile/internal/shellquote"
)

// Service starts the server with the machine or the user's session.
type Service struct {
	Kind  string   // one of Kinds
	Units []Unit   // none: the steps are all
	Steps []string // commands for the owner to run
}

// Unit is one file of a service.
type Unit struct{ Path, Text string }

// Kinds are the supported kinds of services. SystemdUser is for users other than root.
var Kinds = []string{Systemd, SystemdUser, "launchd", "windows"}

// The kinds for systemd.
const (
	Systemd     = "systemd"
	SystemdUser = "systemd-user"
)

// Program describes the program that a service starts.
type Program struct {
	Binary, Data, HermesHome string
	User                     string // the user's home folder
	Apart                    *Apart // for Systemd
}

// ServiceKind returns the kind for a word that the user chose. "auto" means the service manager of
// this system, and systemd means the user's own instance unless root asks.
func ServiceKind(word string, root bool) string {
	if word == "auto" {
		word = map[string]string{"darwin": "launchd", "windows": "windows"}[runtime.GOOS]
		if word == "" {
			word = Systemd
		}
	}
	if word == Systemd && !root {
		word = SystemdUser
	}
	return word
}

// NewService returns the service of a kind, which must be one of Kinds.
func NewService(kind string, p Program) (*Service, error) {
	for _, s := range []string{p.Binary, p.Data, p.HermesHome} {
		if strings.ContainsAny(s, "\"\r\n\x00") {
			return nil, fmt.Errorf("a service definition can't contain %q", s)
		}
	}
	switch kind {
	case Systemd:
		if p.Apart == nil {
			return nil, errors.New("no account for the service")
		}
		return systemd(p), nil
	case SystemdUser:
		return systemdUser(p), nil
	case "launchd":
		return launchd(p), nil
	case "windows":
		return windows(p), nil
	}
	return nil, fmt.Errorf("unknown kind %q: choose one of %s", kind, strings.Join(Kinds, ", "))
}

// Files returns the service's files for a plan.
func (s *Service) Files() (list []*File, err error) {
	for _, u := range s.Units {
		f, err := readFile(u.Path, 0o644)
		if err != nil {
			return nil, err
		}
		f.After = []byte(u.Text)
		list = append(list, f)
	}
	return list, nil
}

// unitWord quotes a word for a unit file, where % and \ are special characters. So is $ in a
// command.
func unitWord(s string, command bool) string {
	s = strings.NewReplacer(`\`, `\\`, `%`, `%%`).Replace(s)
	if command {
		s = strings.ReplaceAll(s, "$", "$$")
	}
	return `"` + s + `"`
}

// systemdUser returns a unit for the user's own systemd instance. It runs under the same account as
// all other programs of the user.
func systemdUser(p Program) *Service {
	return &Service{Kind: SystemdUser, Units: []Unit{{Path: filepath.Join(p.User, ".config", "systemd", "user", "hermes-mobile.service"),
		Text: fmt.Sprintf(`# Written by hermes-mobile setup --service.
[Unit]
Description=Hermes Mobile
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=%s serve
ExecReload=/bin/kill -HUP $MAINPID
Environment=%s
Environment=%s
UMask=0077
Restart=always
RestartSec=2
TimeoutStopSec=15
LimitNOFILE=65536
LimitCORE=0

# What it may not do. It writes to its data folder, and to the pairing files in the Hermes home.
NoNewPrivileges=yes
ProtectSystem=strict
ReadWritePaths=-%s
ReadWritePaths=-%s
PrivateTmp=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native

[Install]
WantedBy=default.target
`, unitWord(p.Binary, true), unitWord("MOBILE_DATA="+p.Data, false), unitWord("HERMES_HOME="+p.HermesHome, false),
			unitWord(p.Data, false), unitWord(p.HermesHome, false))}},
		Steps: []string{"systemctl --user daemon-reload", "systemctl --user enable --now hermes-mobile",
			`loginctl enable-linger "$USER"   # so that it also runs when nobody is logged in`}}
}

func launchd(p Program) *Service {
	text := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // writes to a strings.Builder never fail
		return b.String()
	}
	path := filepath.Join(p.User, "Library", "LaunchAgents", "hermes-mobile.plist")
	return &Service{Kind: "launchd", Units: []Unit{{Path: path,
		Text: fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by hermes-mobile setup. -->
<plist version="1.0">
<dict>
  <key>Label</key><string>hermes-mobile</string>
  <key>ProgramArguments</key>
  <array>
    <string>%s</string>
    <string>serve</string>
  </array>
  <key>EnvironmentVariables</key>
  <dict>
    <key>MOBILE_DATA</key><string>%s</string>
    <key>HERMES_HOME</key><string>%s</string>
  </dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>Umask</key><integer>63</integer>
  <key>ExitTimeOut</key><integer>15</integer>
  <key>ProcessType</key><string>Background</string>
  <key>SoftResourceLimits</key><dict><key>NumberOfFiles</key><integer>65536</integer></dict>
  <key>StandardOutPath</key><string>%s</string>
  <key>StandardErrorPath</key><string>%s</string>
</dict>
</plist>
`, text(p.Binary), text(p.Data), text(p.HermesHome), text(filepath.Join(p.Data, "service.log")), text(filepath.Join(p.Data, "service.log")))}},
		Steps: []string{"launchctl bootstrap gui/$(id -u) " + shellquote.Word(path)}}
}

// windows returns a scheduled task, because the server doesn't implement the protocol of the
// service manager. The task runs with the rights of its user and no more.
func windows(p Program) *Service {
	return &Service{Kind: "windows", Steps: []string{
		`schtasks /Create /TN "hermes-mobile" /SC ONLOGON /RL LIMITED /F /TR "\"` + p.Binary + `\" serve --data \"` + p.Data + `\""`,
		`schtasks /Run /TN "hermes-mobile"`}}
}

// Binary returns the path of this program, for use in a service.
func Binary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of this program: %w", err)
	}
	return path, nil
}
