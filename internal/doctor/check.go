package doctor

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"hermes-mobile/internal/config"
	"hermes-mobile/internal/quota"
	"hermes-mobile/internal/shellquote"
)

// Check turns facts into issues. It uses nothing but the facts. The list is complete: use Shorten before
// showing it.
func Check(f *Facts) []Issue {
	k := &checker{Facts: f}
	k.server()
	k.agent()
	k.devices()
	k.public()
	if k.list == nil {
		k.list = []Issue{}
	}
	return k.list
}

// CheckPublic turns the facts about the public address into issues. A running server does not probe its own
// public address.
func CheckPublic(f *Facts) []Issue {
	k := &checker{Facts: f}
	k.public()
	return k.list
}

// checker collects the issues of one run.
type checker struct {
	*Facts
	list []Issue
}

func (k *checker) find(code, about, do, format string, args ...any) {
	k.list = append(k.list, issue(code, about, fmt.Sprintf(format, args...), do))
}

func (k *checker) found(code string) bool {
	for _, f := range k.list {
		if f.Code == code {
			return true
		}
	}
	return false
}

// SettingsRefused returns the issues if the settings are invalid.
func SettingsRefused(err error) (list []Issue) {
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") { // joined errors have one line each
		list = append(list, issue("settings_refused", "", sentence(line), "Correct the setting. All settings are described in: hermes-mobile serve --help"))
	}
	return list
}

// NoAnswer returns the issue that a running server does not respond.
func NoAnswer(data string, err error) Issue {
	return issue("server_silent", "", "The server on the data folder "+data+" does not respond: "+sentence(err.Error()), "Run this as the server's user or as root. If the server hangs, restart it")
}

// sentence ends an error text with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// obviously is before every release of this program: a clock with an earlier time was never set.
var obviously = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ahead is how far in the future a file's time may be: file systems and copies are not exact.
const ahead = 10 * time.Minute

func (k *checker) server() {
	for _, w := range k.Warnings {
		code, do := "settings_warning", "Correct the setting, then restart the server."
		if w.File != "" {
			do = "chmod 600 " + shellquote.Word(w.File)
		}
		if w.Plain {
			code, do = "unencrypted", "Enable TLS (for example MOBILE_TLS=self), or put a TLS proxy in front and set MOBILE_PUBLIC_URL to its https address. In a trusted network you can ignore this."
		}
		k.find(code, "", do, "%s", sentence(w.Text))
	}
	if p := k.Port; p != nil && p.Taken {
		holder := "another program"
		if p.Holder != "" {
			holder = p.Holder
		}
		k.find("port_in_use", "", "Stop it, or set another MOBILE_PORT and run: hermes-mobile setup", "The server can't listen on %s: the port is used by %s.", p.Address, holder)
	}
	if k.Server == nil {
		k.find("server_not_running", "", "Start it: hermes-mobile serve (if it uses another data folder, pass --data)", "No server is running on the data folder %s.", k.Config.Data)
	} else {
		if k.Server.StoreFailed {
			space := ""
			if k.Folder != nil && k.Folder.Total > 0 {
				space = fmt.Sprintf(" (%s free)", size(k.Folder.Free))
			}
			k.find("store_failed", "", "Check the free space, the permissions of the folder, and the server's log.", "The database in %s failed within the last minute%s, and the server rejected messages.", k.Config.Data, space)
		}
	}
	if k.Server != nil && k.Server.PushOff != "" {
		k.find("push_off", "", "Set MOBILE_PUSH_CONTACT=mailto:YOU@EXAMPLE.COM, or MOBILE_PUSH=off if you want no notifications. Then restart the server.", "Offline phones get no notifications: %s", sentence(k.Server.PushOff))
	}
	if k.Pairing != nil {
		k.find("pairing_unreadable", "", "Fix the file or its permissions. If it is damaged beyond repair, move it away and approve all users again.", "You can't approve users: %s", sentence(k.Pairing.Error()))
	}
	if c := k.Config; c.AdminClear != "" && c.Admin == "on" {
		k.find("admin_token_in_clear", "", "Hash it with hermes-mobile admin hash, replace it with the hash, and restart the server.", "MOBILE_ADMIN_TOKEN is stored in clear %s: anyone who reads that file controls this server.", c.AdminClear)
	}
	k.apiProxy()
	k.folder()
	k.storage()
}

// nearQuota is the share of the space for files, in percent, above which Check reports an issue.
const nearQuota = 80

func (k *checker) storage() {
	if k.Server == nil || k.Server.Storage == nil || k.Server.Storage.Limit == 0 {
		return
	}
	u := k.Server.Storage
	const do = "Raise MOBILE_MAX_DATA and restart the server. hermes-mobile devices list shows devices that send much or have many queued messages."
	taken := fmt.Sprintf("%s of %s used: files %s, database %s", quota.Size(u.Used()), quota.Size(u.Limit), quota.Size(u.Files), quota.Size(u.Database))
	switch {
	case u.Full():
		k.find("data_full", "", do, "The server rejects messages, because the storage limit is reached (%s).", taken)
	case u.FilesLimit-u.Used() < min(quota.Cost(k.Config.MaxMediaBytes), u.FilesLimit/20):
		k.find("data_quota_full", "", do, "The server rejects files, because the storage limit is reached (%s).", taken)
	case u.Used() > u.FilesLimit/100*nearQuota:
		k.find("data_quota_near", "", do, "The server will soon reject files: %s, and files may use up to %s.", taken, quota.Size(u.FilesLimit))
	}
}

func (k *checker) apiProxy() {
	f := k.APIProxy
	switch {
	case f == nil:
		return
	case f.NoKey:
		k.find("front_api_down", "", "Run hermes-mobile setup --api or set MOBILE_API_KEY, then restart the server. To disable the API proxy, set MOBILE_FRONT_API=no.", "The API proxy has no key for Hermes' API server at %s.", f.URL)
	case f.Down != nil:
		k.find("front_api_down", "", "Enable the API server with hermes-mobile setup --api and restart the gateway, or correct MOBILE_API_URL and MOBILE_API_KEY. To disable the API proxy, set MOBILE_FRONT_API=no.",
			"The API proxy can't use Hermes' API server at %s: %s", f.URL, sentence(f.Down.Error()))
	}
	if f.Users == 0 {
		k.find("front_no_users", "", "Add a user with hermes-mobile users add NAME, or set MOBILE_FRONT_API=no.", "The API proxy has no users.")
	}
}

// Limits of an almost full disk. A twentieth of a large disk is still plenty.
const (
	lowSpace  = 200 << 20
	lowShare  = 20
	nearSpace = 5 << 30
)

func (k *checker) folder() {
	d := k.Folder
	if d == nil {
		return
	}
	if d.Unwrit != nil {
		do := fmt.Sprintf("Give the folder to the server's user: chown -R USER %s; chmod 700 %s", shellquote.Word(d.Path), shellquote.Word(d.Path))
		switch {
		case errors.Is(d.Unwrit, syscall.ENOSPC):
			do = "Free space, or move the data folder with MOBILE_DATA."
		case errors.Is(d.Unwrit, syscall.EROFS):
			do = "Remount the disk writable. If it became read-only by itself, check the system log: the disk may be failing."
		}
		k.find("data_unwritable", "", do, "The data folder %s is not writable: %s", d.Path, sentence(d.Unwrit.Error()))
	}
	if d.Total > 0 && (d.Free < lowSpace || d.Free < d.Total/lowShare && d.Free < nearSpace) {
		consequence := ""
		if spare := quota.Spare(d.Total); d.Free < spare {
			consequence = fmt.Sprintf(" The server rejects new files until %s are free.", size(spare))
		}
		k.find("disk_low", "", "Free space, or move the data folder with MOBILE_DATA.", "The disk of %s has only %s of %s free (%d %%).%s", d.Path, size(d.Free), size(d.Total), d.Free*100/d.Total, consequence)
	}
	for _, path := range d.Readable {
		k.find("secret_readable", path, "chmod 600 "+shellquote.Word(path), "Other users of this machine can read %s.", path)
	}
	switch {
	case k.Now.Before(obviously):
		k.find("clock_skew", "", "Set the clock of this machine: timedatectl set-ntp true", "This machine's clock says %s, which is in the past.", k.Now.UTC().Format(time.DateTime))
	case d.Future.Sub(k.Now) > ahead:
		k.find("clock_skew", "", "Set the clock of this machine: timedatectl set-ntp true", "This machine's clock is at least %d seconds behind: it says %s, and %s was written at %s.",
			int64(d.Future.Sub(k.Now).Seconds()), k.Now.UTC().Format(time.DateTime), d.FutureOf, d.Future.UTC().Format(time.DateTime))
	}
}

func (k *checker) devices() {
	s := k.Server
	if s == nil {
		return
	}
	for _, r := range s.Devices {
		k.find("device_refused", r.Device, "If the device is yours, fix the reason: use the right token, run hermes-mobile pair, or run hermes-mobile devices unbind "+shellquote.Word(r.Device),
			"The server rejected the device %s at %s %d times since %s (%s): %s", r.Device, refusedFrom(r.Addr), r.Count, clock(r.First), r.Code, sentence(r.Why))
	}
	for _, r := range s.Requests {
		do := map[string]string{
			"403": "If the page is yours, add its origin to MOBILE_ALLOWED_ORIGINS and restart the server.",
			"429": "Correct the token in the app. Behind an untrusted proxy all clients count as one address: see MOBILE_TRUSTED_PROXIES.",
			"400": "The app must send its token in hello, not in the URL.",
		}[r.Code]
		k.find("request_refused", refusedFrom(r.Addr)+" "+r.Code, do, "The server rejected requests from %s with %s, %d times since %s: %s", refusedFrom(r.Addr), r.Code, r.Count, clock(r.First), sentence(r.Why))
	}
	for _, a := range s.Aging {
		k.find("outbox_aging", a.Device, "Connect the device, raise MOBILE_OUTBOX_DAYS, or revoke it: hermes-mobile devices revoke "+shellquote.Word(a.Device),
			"%s for the device %s, the oldest since %s. Messages expire after %s.", plural(a.Count, "message waits", "messages wait"), a.Device, a.Oldest.UTC().Format(time.DateTime), plural(k.Config.OutboxDays, "day", "days"))
	}
}

// gateway returns the accepted gateway with an id.
func (k *checker) gateway(id string) (config.Gateway, bool) {
	for _, g := range k.Gateways {
		if g.ID == id {
			return g, true
		}
	}
	return config.Gateway{}, false
}
