package server

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hermes-mobile/frame"
	"hermes-mobile/internal/hub"
	"hermes-mobile/internal/store"
)

// post has something done that must work.
func (r *rig) post(path string, c Command, out any) {
	r.t.Helper()
	ok(r.t, r.admin.Post(r.t.Context(), path, c, out))
}

// refused has something done that must not work, and returns why not.
func (r *rig) refused(path string, c Command) *Refused {
	r.t.Helper()
	err := r.admin.Post(r.t.Context(), path, c, nil)
	var f *Refused
	if !errors.As(err, &f) || f.Code == "" || f.Message == "" {
		r.t.Fatalf("%s %+v: %v, want a refusal", path, c, err)
	}
	return f
}

func TestAdminStatus(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.connect("tel-1", mainToken)
	var st Status
	ok(t, r.admin.Get(t.Context(), "/status", &st))
	if st.Version != "1.2.3" || st.Address != "ws://"+r.server.Addr().String()+"/ws" || st.Data != r.cfg.Data || st.Agent != "demo" || !st.AgentOnline ||
		st.AgentWhy == "" || st.AgentDetail == "" || st.Devices != 1 || st.Connected != 1 || st.Pending != 0 || !st.Health.Ready || st.Started.IsZero() {
		t.Errorf("%+v", st)
	}
}

func TestAdminDevices(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	var list []hub.DeviceInfo
	ok(t, r.admin.Get(t.Context(), "/devices", &list))
	if list == nil || len(list) != 0 {
		t.Errorf("nobody is listed as %v, want an empty list", list)
	}
	d := r.connect("tel-1", mainToken)
	r.post("/devices/rename", Command{ID: "tel-1", Name: "Anna's phone"}, nil)
	ok(t, r.admin.Get(t.Context(), "/devices", &list))
	if len(list) != 1 || list[0].ID != "tel-1" || list[0].Name != "Anna's phone" || list[0].Token != "main" || !list[0].Connected || !list[0].Approved {
		t.Errorf("%+v", list)
	}
	r.post("/devices/unbind", Command{ID: "tel-1"}, nil)
	if code := d.closed(); code != int(frame.CloseTryLater) {
		t.Errorf("unbound with %d", code)
	}
	d = r.connect("tel-1", mainToken)
	r.post("/devices/revoke", Command{ID: "tel-1"}, nil)
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("revoked with %d", code)
	}
	for _, path := range []string{"/devices/rename", "/devices/rights", "/devices/unbind", "/devices/revoke"} {
		if f := r.refused(path, Command{ID: "nobody"}); !strings.Contains(f.Message, "devices list") {
			t.Errorf("%s: %+v", path, f)
		}
		r.refused(path, Command{})
	}
}

// Pairing by code and by request id, seen on the live connection; and back.
func TestAdminPairing(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOW_ALL_USERS=0")
	var list PairingList
	ok(t, r.admin.Get(t.Context(), "/pairing", &list))
	if list.Pending == nil || list.Approved == nil {
		t.Errorf("%+v: want empty lists", list)
	}
	d := r.connect("tel-1", mainToken)
	if d.ready.Approved {
		t.Fatal("approved")
	}
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	d.message()
	ok(t, r.admin.Get(t.Context(), "/pairing", &list))
	if len(list.Pending) != 1 || list.Pending[0].UserID != "tel-1" {
		t.Fatalf("%+v", list)
	}
	if f := r.refused("/pairing/approve", Command{ID: "ABCDEFGH"}); !strings.Contains(f.Message, "expired") {
		t.Errorf("%+v", f)
	}
	var done Approved
	r.post("/pairing/approve", Command{ID: list.Pending[0].RequestID}, &done)
	if done.User.UserID != "tel-1" {
		t.Errorf("%+v", done)
	}
	find[*frame.Approved](d)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if m := d.message(); m.Text != "You said: hello" {
		t.Errorf("%+v", m)
	}
	r.post("/pairing/revoke", Command{ID: "tel-1"}, &done)
	if code := d.closed(); code != int(frame.CloseNoAccess) || done.Anyway != "" {
		t.Errorf("revoked with %d, %+v", code, done)
	}
	r.refused("/pairing/revoke", Command{ID: "tel-1"})
}

// A device that comes back at once after its user was revoked is a stranger like any other, and is
// not thrown out once more.
func TestRevokedOnce(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOW_ALL_USERS=0")
	d, other := r.connect("tel-1", mainToken), r.connect("tel-2", mainToken)
	_, err := r.server.pairing.ApproveUser("tel-1", "Anna")
	ok(t, err)
	find[*frame.Approved](d) // so the server has seen it
	r.post("/pairing/revoke", Command{ID: "tel-1"}, nil)
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("revoked with %d", code)
	}
	d = r.connect("tel-1", mainToken)
	p, err := OpenPairing(r.cfg)
	ok(t, err)
	_, err = p.ApproveUser("tel-2", "") // the server has looked at the files again when it tells this
	ok(t, err)
	find[*frame.Approved](other)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	if m := d.message(); !strings.Contains(m.Text, "pairing code") {
		t.Errorf("%+v", m)
	}
}

// Approvals and revocations by another process, such as Hermes' own command, reach the live
// connections, too.
func TestPairingByAnotherProcess(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOW_ALL_USERS=0")
	d := r.connect("tel-1", mainToken)
	p, err := OpenPairing(r.cfg)
	ok(t, err)
	_, err = p.ApproveUser("tel-1", "Anna")
	ok(t, err)
	find[*frame.Approved](d)
	ok(t, p.Revoke("tel-1"))
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("revoked with %d", code)
	}
}

func TestAdminRevokeSaysWhoIsLetInAnyway(t *testing.T) {
	for environ, want := range map[string]string{"MOBILE_ALLOW_ALL_USERS=1": "MOBILE_ALLOW_ALL_USERS", "MOBILE_ALLOWED_USERS=tel-1": "MOBILE_ALLOWED_USERS"} {
		r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOW_ALL_USERS=0", environ)
		_, err := r.server.pairing.ApproveUser("tel-1", "")
		ok(t, err)
		d := r.connect("tel-1", mainToken)
		var done Approved
		r.post("/pairing/revoke", Command{ID: "tel-1"}, &done)
		if !strings.Contains(done.Anyway, want) {
			t.Errorf("%s: %+v", environ, done)
		}
		d.send(&frame.Text{ID: "m1", Text: "still here"})
		find[*frame.Accepted](d)
	}
}

func TestAdminPair(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_ALLOW_ALL_USERS=0", "MOBILE_PATH=/mobile")
	var inv Invitation
	r.post("/pair", Command{}, &inv)
	if len(inv.Code) != 9 || inv.Address != "ws://"+r.server.Addr().String()+"/mobile" || !inv.Local || inv.Expires.IsZero() ||
		!strings.HasPrefix(inv.Link, "http://"+r.server.Addr().String()+"/#") || !strings.Contains(inv.Link, "pair="+inv.Code) || !strings.Contains(inv.Link, "path=%2Fmobile") {
		t.Errorf("%+v", inv)
	}
	d := r.dial("tel-9", "")
	_ = d.closed()
	d = &device{t: t, ws: r.socket()}
	d.send(&frame.Hello{Pair: inv.Code, Device: frame.Device{ID: "tel-2"}})
	ready := find[*frame.Ready](d)
	if !ready.Approved || len(ready.Token) != 64 {
		t.Errorf("%+v", ready)
	}
	if again := r.connect("tel-2", ready.Token); !again.ready.Approved || again.ready.Token != "" {
		t.Errorf("%+v", again.ready)
	}
}

func TestAdminTokens(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_DELIVER_TOKENS=cron="+otherToken)
	var made NewToken
	r.post("/tokens/add", Command{Label: "tablet"}, &made)
	if made.Label != "tablet" || len(made.Token) != 64 {
		t.Errorf("%+v", made)
	}
	var list []TokenInfo
	ok(t, r.admin.Get(t.Context(), "/tokens", &list))
	if len(list) != 3 || list[0] != (TokenInfo{Label: "main", Kind: "app", Source: "MOBILE_TOKEN"}) || list[1].Label != "cron" || list[1].Source != "MOBILE_DELIVER_TOKENS" || list[2].Label != "tablet" {
		t.Errorf("%+v", list)
	}
	d, other, sender := r.connect("tel-1", made.Token), r.connect("tel-2", mainToken), r.connect("cron", otherToken)
	for _, label := range []string{"tablet", "main", "cron"} {
		if f := r.refused("/tokens/add", Command{Label: label}); !strings.Contains(f.Message, label) {
			t.Errorf("%+v", f)
		}
	}
	r.refused("/tokens/add", Command{})
	r.refused("/tokens/add", Command{Label: "no such = label"})
	if f := r.refused("/tokens/remove", Command{Label: "main"}); !strings.Contains(f.Message, "SIGHUP") {
		t.Errorf("%+v", f)
	}
	r.post("/tokens/remove", Command{Label: "tablet"}, nil)
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}
	for _, d := range []*device{other, sender} {
		d.send(&frame.Ping{ID: "p"})
		find[*frame.Pong](d)
	}
	if e := find[*frame.Error](r.dial("tel-1", made.Token)); e.Code != frame.AuthFailed {
		t.Errorf("%+v", e)
	}
	if strings.Contains(r.log.String(), made.Token) {
		t.Error("the log holds the token")
	}
}

func TestAdminDeliver(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	d := r.connect("tel-1", mainToken)
	var done frame.Delivered
	r.post("/deliver", Command{Frame: &frame.Deliver{ID: "x1", To: "tel-1", Text: "news"}}, &done)
	if done.ID != "x1" || done.Queued {
		t.Errorf("%+v", done)
	}
	if m := d.message(); m.Text != "news" {
		t.Errorf("%+v", m)
	}
	r.post("/deliver", Command{Frame: &frame.Deliver{ID: "x1", To: "tel-1", Text: "news"}}, &done)
	if f := r.refused("/deliver", Command{Frame: &frame.Deliver{ID: "x2", To: "nobody", Text: "news"}}); f.Code != string(frame.DeviceOffline) {
		t.Errorf("%+v", f)
	}
	if f := r.refused("/deliver", Command{Frame: &frame.Deliver{ID: "x3", To: "home", Text: "news"}}); f.Code != string(frame.DeviceOffline) || !strings.Contains(f.Message, "/sethome") {
		t.Errorf("%+v", f)
	}
	r.refused("/deliver", Command{})
	if f := r.refused("/deliver", Command{Frame: &frame.Deliver{To: "tel-1"}}); f.Code != string(frame.BadFrame) {
		t.Errorf("an empty delivery: %+v", f)
	}
	d.send(&frame.Text{ID: "m1", Text: "/sethome"})
	d.message()
	r.post("/deliver", Command{Frame: &frame.Deliver{To: "home", Kind: "document", Filename: "a.txt", Data: []byte("hello")}}, &done)
	if m := find[*frame.Media](d); m.Filename != "a.txt" || string(m.Data) != "hello" {
		t.Errorf("%+v", m)
	}
}

func TestAdminBackup(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	r.connect("tel-1", mainToken)
	dir := t.TempDir()
	path := filepath.Join(dir, store.File)
	r.post("/backup", Command{Path: path}, nil)
	s, err := store.Open(t.Context(), dir)
	ok(t, err)
	defer func() { ok(t, s.Close()) }()
	if d, err := s.Device(t.Context(), "tel-1"); err != nil || d == nil {
		t.Errorf("the copy has no device (%v)", err)
	}
	if f := r.refused("/backup", Command{Path: path}); !strings.Contains(f.Message, path) {
		t.Errorf("%+v", f)
	}
	r.refused("/backup", Command{})
}

// Requests that no client of ours makes are refused with a body, too.
func TestAdminBadRequests(t *testing.T) {
	r := start(t)
	for _, body := range []string{"", "nonsense", "[]", `{"id":7}`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://admin/devices/rename", strings.NewReader(body))
		ok(t, err)
		resp, err := r.admin.http.Do(req)
		ok(t, err)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnprocessableEntity || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%q: %s", body, resp.Status)
		}
	}
	if err := r.admin.Get(t.Context(), "/nothing", nil); err == nil {
		t.Error("an unknown path was answered")
	}
	for _, path := range []string{"/status", "/devices", "/pairing", "/tokens", "/pair", "/backup"} { // and nothing of it over the network
		if code, body := r.get(path); code != http.StatusNotFound {
			t.Errorf("%s over the network: %d %q", path, code, body)
		}
	}
}

func TestClientWithoutServer(t *testing.T) {
	dir := folder(t)
	if err := NewClient(dir).Get(context.Background(), "/status", nil); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
	r := startIn(t, dir)
	ok(t, r.stop())
	if err := r.admin.Get(context.Background(), "/status", nil); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the stop: %v", err)
	}
	ok(t, os.WriteFile(filepath.Join(dir, AdminSocket), nil, 0o600))
	if err := NewClient(dir).Get(context.Background(), "/status", nil); err == nil {
		t.Error("a file is no server")
	}
}
