package setup

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The units for systemd. The server gets its own account. So programs of the account that runs
// Hermes, including the agent, can neither read its files nor connect to its admin socket.

// UnitFolder is the folder of the system's units.
const UnitFolder = "/etc/systemd/system"

// Names of the units.
const (
	serverUnit  = "hermes-mobile.service"
	sharePath   = "hermes-mobile-pairing.path"
	shareUnit   = "hermes-mobile-pairing.service"
	environFile = "/etc/hermes-mobile.env"
)

// hiddenHomes are the folders that ProtectHome= hides.
var hiddenHomes = []string{"/home", "/root", "/run/user"}

// below reports whether a path is one of some folders, or inside one.
func below(path string, folders ...string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}

// systemd returns the units that run a program under systemd.
func systemd(p Program) *Service {
	a := p.Apart
	folder := "ReadWritePaths=" + unitWord(p.Data, false)
	if filepath.Dir(p.Data) == "/var/lib" {
		folder = "StateDirectory=" + unitWord(filepath.Base(p.Data), false) + "\nStateDirectoryMode=0710"
	}
	hide := ""
	if !below(p.HermesHome, hiddenHomes...) {
		hide = "\nTemporaryFileSystem=" + unitWord(p.HermesHome+":ro", false)
	}
	unit := fmt.Sprintf(`# Written by hermes-mobile setup --service.
[Unit]
Description=Hermes Mobile
Wants=network-online.target hermes-mobile-pairing.path hermes-mobile-pairing.service
After=network-online.target hermes-mobile-pairing.service

[Service]
# The server's own account: programs of the Hermes account cannot answer its approval cards.
User=%[1]s
Group=%[1]s
ExecStart=%[2]s serve
ExecReload=/bin/kill -HUP $MAINPID
Environment=%[3]s
Environment=%[4]s
EnvironmentFile=-%[5]s
%[6]s
# The group may enter the data folder for one reason: to read the copies of files sent to the agent.
UMask=0077
Restart=always
RestartSec=2
TimeoutStopSec=15
LimitNOFILE=65536
LimitCORE=0

# The server sees only the pairing files of Hermes.
ProtectHome=tmpfs%[7]s
BindPaths=-%[8]s

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectProc=invisible
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
PrivateTmp=yes
PrivateDevices=yes
DevicePolicy=closed
KeyringMode=private
LockPersonality=yes
MemoryDenyWriteExecute=yes
RemoveIPC=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RestrictNamespaces=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
`, a.Account, unitWord(p.Binary, true), unitWord("MOBILE_DATA="+p.Data, false), unitWord("HERMES_HOME="+p.HermesHome, false), environFile, folder, hide,
		unitWord(a.Pairing, false))
	watch := fmt.Sprintf(`# Written by hermes-mobile setup --service.
[Unit]
Description=Watch the pairing files that Hermes writes

[Path]
PathChanged=%s
Unit=%s
`, strings.ReplaceAll(a.Pairing, "%", "%%"), shareUnit)
	open := fmt.Sprintf(`# Written by hermes-mobile setup --service.
[Unit]
Description=Give the group %[2]s access to the pairing files of Hermes
StartLimitIntervalSec=0

[Service]
# Hermes writes them for its own account only, so only that account can give others access.
Type=oneshot
User=%[1]s
ExecStart=/usr/bin/find %[3]s -maxdepth 1 -type f -user %[1]s ! -perm -0060 -exec /bin/chmod g+rw {} +
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ReadWritePaths=%[4]s
PrivateTmp=yes
PrivateDevices=yes
PrivateNetwork=yes
RestrictNamespaces=yes
SystemCallArchitectures=native
`, a.Hermes, a.Account, unitWord(a.Pairing, true), unitWord(a.Pairing, false))
	return &Service{Kind: Systemd, Units: []Unit{{filepath.Join(UnitFolder, serverUnit), unit}, {filepath.Join(UnitFolder, sharePath), watch},
		{filepath.Join(UnitFolder, shareUnit), open}},
		Steps: []string{"systemctl daemon-reload", "systemctl enable --now hermes-mobile"}}
}
