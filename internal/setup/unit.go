package setup

import (
	"fmt"
	"path/filepath"
	"strings"
)

// The units of the system's own manager. The server has an account of its own there, so that programs of the account that
// runs Hermes, the agent among them, neither read its files nor speak to its admin socket.

// UnitFolder is where the system's units are.
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

func below(path string, folders ...string) bool {
	for _, f := range folders {
		if path == f || strings.HasPrefix(path, f+"/") {
			return true
		}
	}
	return false
}

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
# An account of its own: what runs under the account of Hermes cannot answer its approval cards.
User=%[1]s
Group=%[1]s
ExecStart=%[2]s serve
ExecReload=/bin/kill -HUP $MAINPID
Environment=%[3]s
Environment=%[4]s
EnvironmentFile=-%[5]s
%[6]s
# The data folder is opened to the group for one thing: the copies of files that the agent is sent.
UMask=0077
Restart=always
RestartSec=2
TimeoutStopSec=15
LimitNOFILE=65536
LimitCORE=0

# Of Hermes it sees the pairing files and nothing else.
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
Description=Pairing files that Hermes has written

[Path]
PathChanged=%s
Unit=%s
`, strings.ReplaceAll(a.Pairing, "%", "%%"), shareUnit)
	open := fmt.Sprintf(`# Written by hermes-mobile setup --service.
[Unit]
Description=Open the pairing files that Hermes has written to the group %[2]s
StartLimitIntervalSec=0

[Service]
# Hermes writes them for its own account only. That account opens them again; nobody else could.
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
