package setup

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Service is what starts the server with the machine or the session.
type Service struct {
	Kind  string // "systemd", "launchd" or "windows"
	Path  string // of the file; empty: there is none, and the steps are all
	Text  string
	Steps []string // commands for the owner to run
}

// Kinds are the services that can be made.
var Kinds = []string{"systemd", "launchd", "windows"}

// Program says what a service starts.
type Program struct {
	Binary, Data, HermesHome string
	User                     string // the user's home folder
}

// NewService works out a service. "auto" is the one of this system.
func NewService(kind string, p Program) (*Service, error) {
	if kind == "auto" {
		kind = map[string]string{"darwin": "launchd", "windows": "windows"}[runtime.GOOS]
		if kind == "" {
			kind = "systemd"
		}
	}
	for _, s := range []string{p.Binary, p.Data, p.HermesHome} {
		if strings.ContainsAny(s, "\"\r\n\x00") {
			return nil, fmt.Errorf("%q cannot stand in a service", s)
		}
	}
	switch kind {
	case "systemd":
		return systemd(p), nil
	case "launchd":
		return launchd(p), nil
	case "windows":
		return windows(p), nil
	}
	return nil, fmt.Errorf("%q is no service: choose one of %s", kind, strings.Join(Kinds, ", "))
}

// File is the service's file for a plan, or nil.
func (s *Service) File() (*File, error) {
	if s.Path == "" {
		return nil, nil
	}
	f, err := readFile(s.Path, 0o644)
	if err != nil {
		return nil, err
	}
	f.After = []byte(s.Text)
	return f, nil
}

// unitWord writes a path for a unit file: there % and \ mean something, and $ does in a command.
func unitWord(s string, command bool) string {
	s = strings.NewReplacer(`\`, `\\`, `%`, `%%`).Replace(s)
	if command {
		s = strings.ReplaceAll(s, "$", "$$")
	}
	return `"` + s + `"`
}

func systemd(p Program) *Service {
	return &Service{Kind: "systemd", Path: filepath.Join(p.User, ".config", "systemd", "user", "hermes-mobile.service"),
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
Restart=on-failure
RestartSec=2
TimeoutStopSec=15
LimitNOFILE=65536

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
			unitWord(p.Data, false), unitWord(p.HermesHome, false)),
		Steps: []string{"systemctl --user daemon-reload", "systemctl --user enable --now hermes-mobile",
			`loginctl enable-linger "$USER"   # so that it also runs when nobody is logged in`}}
}

func launchd(p Program) *Service {
	text := func(s string) string {
		var b strings.Builder
		_ = xml.EscapeText(&b, []byte(s)) // a builder takes everything
		return b.String()
	}
	path := filepath.Join(p.User, "Library", "LaunchAgents", "hermes-mobile.plist")
	return &Service{Kind: "launchd", Path: path,
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
`, text(p.Binary), text(p.Data), text(p.HermesHome), text(filepath.Join(p.Data, "service.log")), text(filepath.Join(p.Data, "service.log"))),
		Steps: []string{"launchctl bootstrap gui/$(id -u) " + shellWord(path)}}
}

// windows registers a task, since the server does not speak to the service manager. It runs with the rights of its user and
// no more.
func windows(p Program) *Service {
	return &Service{Kind: "windows", Steps: []string{
		`schtasks /Create /TN "hermes-mobile" /SC ONLOGON /RL LIMITED /F /TR "\"` + p.Binary + `\" serve --data \"` + p.Data + `\""`,
		`schtasks /Run /TN "hermes-mobile"`}}
}

func shellWord(s string) string {
	if s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+:@%,") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Binary is the path of this program, as a service starts it.
func Binary() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("the path of this program: %w", err)
	}
	return path, nil
}
