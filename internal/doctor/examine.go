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

// Examine turns facts into findings. It looks at nothing but the facts. The list is whole: Shorten it to show it.
func Examine(f *Facts) []Finding {
	e := &examination{Facts: f}
	e.server()
	e.agent()
	e.devices()
	e.way()
	if e.list == nil {
		e.list = []Finding{}
	}
	return e.list
}

// ExamineOutside turns into findings what was seen of the public address: what a running server does not look at itself.
func ExamineOutside(f *Facts) []Finding {
	e := &examination{Facts: f}
	e.way()
	return e.list
}

// examination is one look at the facts.
type examination struct {
	*Facts
	list []Finding
}

func (e *examination) find(code, about, do, format string, args ...any) {
	e.list = append(e.list, finding(code, about, fmt.Sprintf(format, args...), do))
}

func (e *examination) found(code string) bool {
	for _, f := range e.list {
		if f.Code == code {
			return true
		}
	}
	return false
}

// SettingsRefused are the findings where the settings cannot be read at all.
func SettingsRefused(err error) (list []Finding) {
	for line := range strings.SplitSeq(strings.TrimSpace(err.Error()), "\n") { // joined errors have a line each
		list = append(list, finding("settings_refused", "", sentence(line), "Correct it there; every setting is described by: hermes-mobile serve --help"))
	}
	return list
}

// NoAnswer is the finding where a server is there and cannot be asked.
func NoAnswer(data string, err error) Finding {
	return finding("server_silent", "", "The server on the data folder "+data+" cannot be asked: "+sentence(err.Error()), "Run this as the user of the server, or root; if the server hangs, restart it")
}

// sentence makes an error one.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// obviously is before every release of this program: a clock that says so was never set.
var obviously = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ahead is how far a file may lie in the future: file systems and copies are not exact.
const ahead = 10 * time.Minute

func (e *examination) server() {
	for _, w := range e.Warnings {
		code, do := "settings_warning", "Correct it, then restart the server."
		if w.File != "" {
			do = "chmod 600 " + shellquote.Word(w.File)
		}
		if w.Plain {
			code, do = "unencrypted", "Switch TLS on (MOBILE_TLS=self, say), or put a TLS proxy in front and set MOBILE_PUBLIC_URL to its https address; or leave it in a network that you trust."
		}
		e.find(code, "", do, "%s", sentence(w.Text))
	}
	if p := e.Port; p != nil && p.Taken {
		holder := "another program, which cannot be seen from here,"
		if p.Holder != "" {
			holder = p.Holder
		}
		e.find("port_in_use", "", "End it, or choose another port with MOBILE_PORT and run: hermes-mobile setup", "The server cannot listen on %s: %s has that port.", p.Address, holder)
	}
	if e.Server == nil {
		e.find("server_not_running", "", "Start it: hermes-mobile serve (or name the folder of the one that runs with --data)", "No server is running on the data folder %s.", e.Config.Data)
	} else {
		if e.Server.StoreFailed {
			space := ""
			if e.Folder != nil && e.Folder.Total > 0 {
				space = fmt.Sprintf(" (%s are free)", size(e.Folder.Free))
			}
			e.find("store_failed", "", "Look at the free space, at the mode of the folder, and at the server's log.", "The store in %s failed a moment ago%s; what was sent was refused.", e.Config.Data, space)
		}
	}
	if e.Server != nil && e.Server.PushOff != "" {
		e.find("push_off", "", "Set MOBILE_PUSH_CONTACT=mailto:YOU@EXAMPLE.COM, or MOBILE_PUSH=off if you want no notifications, and restart the server.", "Phones that are away are not notified: %s", sentence(e.Server.PushOff))
	}
	if e.Pairing != nil {
		e.find("pairing_unreadable", "", "Repair the file or its mode; if it is damaged for good, move it away and approve everybody again.", "Nobody can be approved: %s", sentence(e.Pairing.Error()))
	}
	if c := e.Config; c.AdminClear != "" && c.Admin == "on" {
		e.find("admin_token_in_clear", "", "Hash it with hermes-mobile admin hash, put the hash in its place, and restart the server.", "MOBILE_ADMIN_TOKEN is stored in clear %s: whoever reads that file owns this server.", c.AdminClear)
	}
	e.front()
	e.folder()
	e.storage()
}

// nearQuota is how much of the room for files may be used, in percent, before it is worth a finding.
const nearQuota = 80

func (e *examination) storage() {
	if e.Server == nil || e.Server.Storage == nil || e.Server.Storage.Limit == 0 {
		return
	}
	u := e.Server.Storage
	const do = "Raise MOBILE_MAX_DATA and restart the server; see hermes-mobile devices list for devices that send much or for which much waits."
	taken := fmt.Sprintf("%s of %s are used: files %s, database %s", quota.Size(u.Used()), quota.Size(u.Limit), quota.Size(u.Files), quota.Size(u.Database))
	switch {
	case u.Full():
		e.find("data_full", "", do, "Messages of devices are refused, the storage limit is reached (%s).", taken)
	case u.FilesLimit-u.Used() < min(quota.Cost(e.Config.MaxMediaBytes), u.FilesLimit/20):
		e.find("data_quota_full", "", do, "New files are refused, the storage limit is reached (%s).", taken)
	case u.Used() > u.FilesLimit/100*nearQuota:
		e.find("data_quota_near", "", do, "Soon new files will be refused: %s, and files may use %s.", taken, quota.Size(u.FilesLimit))
	}
}

func (e *examination) front() {
	f := e.Front
	switch {
	case f == nil:
		return
	case f.NoKey:
		e.find("front_api_down", "", "Run hermes-mobile setup --api, or set MOBILE_API_KEY, and restart the server; or set MOBILE_FRONT_API=no.", "Hermes' API is served to users, and the server has no key for Hermes' API server at %s.", f.URL)
	case f.Down != nil:
		e.find("front_api_down", "", "Switch it on with hermes-mobile setup --api and restart the gateway, or correct MOBILE_API_URL and MOBILE_API_KEY; or set MOBILE_FRONT_API=no.",
			"Hermes' API is served to users, and Hermes' API server at %s cannot be used: %s", f.URL, sentence(f.Down.Error()))
	}
	if f.Users == 0 {
		e.find("front_no_users", "", "Add one: hermes-mobile users add NAME; or set MOBILE_FRONT_API=no.", "Hermes' API is served to users who log in, and there are none.")
	}
}

// Limits of a disk that is nearly full. A twentieth of a large disk is plenty still.
const (
	lowSpace  = 200 << 20
	lowShare  = 20
	nearSpace = 5 << 30
)

func (e *examination) folder() {
	d := e.Folder
	if d == nil {
		return
	}
	if d.Unwrit != nil {
		do := fmt.Sprintf("Give the folder to the user that runs the server: chown -R USER %s; chmod 700 %s", shellquote.Word(d.Path), shellquote.Word(d.Path))
		switch {
		case errors.Is(d.Unwrit, syscall.ENOSPC):
			do = "Free space, or move the data folder with MOBILE_DATA."
		case errors.Is(d.Unwrit, syscall.EROFS):
			do = "Remount that disk for writing; if it fell back to reading only, look at the log of the system: the disk may be dying."
		}
		e.find("data_unwritable", "", do, "The data folder %s cannot be written: %s", d.Path, sentence(d.Unwrit.Error()))
	}
	if d.Total > 0 && (d.Free < lowSpace || d.Free < d.Total/lowShare && d.Free < nearSpace) {
		consequence := ""
		if spare := quota.Spare(d.Total); d.Free < spare {
			consequence = fmt.Sprintf(" The server refuses new files until %s are free.", size(spare))
		}
		e.find("disk_low", "", "Free space, or move the data folder with MOBILE_DATA.", "Of the disk of %s only %s of %s are free (%d %%).%s", d.Path, size(d.Free), size(d.Total), d.Free*100/d.Total, consequence)
	}
	for _, path := range d.Readable {
		e.find("secret_readable", path, "chmod 600 "+shellquote.Word(path), "%s may be read by other users of this machine.", path)
	}
	switch {
	case e.Now.Before(obviously):
		e.find("clock_skew", "", "Set the clock of this machine: timedatectl set-ntp true", "This machine's clock says %s, which is long past.", e.Now.UTC().Format(time.DateTime))
	case d.Future.Sub(e.Now) > ahead:
		e.find("clock_skew", "", "Set the clock of this machine: timedatectl set-ntp true", "This machine's clock is at least %d seconds behind: it says %s, and %s was written at %s.",
			int64(d.Future.Sub(e.Now).Seconds()), e.Now.UTC().Format(time.DateTime), d.FutureOf, d.Future.UTC().Format(time.DateTime))
	}
}

func (e *examination) devices() {
	s := e.Server
	if s == nil {
		return
	}
	for _, r := range s.Devices {
		e.find("device_refused", r.Device, "Do what the reason asks for, if the device is yours: the right token, or hermes-mobile pair, or hermes-mobile devices unbind "+shellquote.Word(r.Device),
			"The device %s at %s was refused %d times since %s (%s): %s", r.Device, refusedFrom(r.Addr), r.Count, clock(r.First), r.Code, sentence(r.Why))
	}
	for _, r := range s.Requests {
		do := map[string]string{
			"403": "List the origin in MOBILE_ALLOWED_ORIGINS, if the page is yours, and restart the server.",
			"429": "Correct the token in the app; behind a proxy that is not trusted all count as one address: see MOBILE_TRUSTED_PROXIES.",
			"400": "The app has to send its token in hello, not in the address.",
		}[r.Code]
		e.find("request_refused", refusedFrom(r.Addr)+" "+r.Code, do, "Requests from %s were refused with %s, %d times since %s: %s", refusedFrom(r.Addr), r.Code, r.Count, clock(r.First), sentence(r.Why))
	}
	for _, a := range s.Aging {
		e.find("outbox_aging", a.Device, "Connect the device, raise MOBILE_OUTBOX_DAYS, or revoke it: hermes-mobile devices revoke "+shellquote.Word(a.Device),
			"%s for the device %s, the oldest of %s; they are dropped after %s.", plural(a.Count, "message waits", "messages wait"), a.Device, a.Oldest.UTC().Format(time.DateTime), plural(e.Config.OutboxDays, "day", "days"))
	}
}

// gateways are those that the server lets in, by id.
func (e *examination) gateway(id string) (config.Gateway, bool) {
	for _, g := range e.Gateways {
		if g.ID == id {
			return g, true
		}
	}
	return config.Gateway{}, false
}
