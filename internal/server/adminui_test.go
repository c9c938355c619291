package server

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rsc.io/qr"

	"hermes-mobile/frame"
	"hermes-mobile/internal/doctor"
	"hermes-mobile/internal/hub"
)

const adminSecret = "3333333333333333333333333333333333333333333333333333333333333333"

// visit is a request to the owner's page as a browser makes it, from wherever a test wants it to
// come.
type visit struct {
	peer, host string // empty: of this machine
	https      bool
	method     string
	path       string
	body       string
	headers    []string // "Name: value"; a value of "-" takes the header away
	cookie     *http.Cookie
	at         string // the server's end of the connection; empty: where it listens
}

// pass is what a browser has of a session: the cookie, and the secret of the page.
type pass struct {
	cookie *http.Cookie
	page   string
}

// owner opens the admin UI with a link from the admin socket, as hermes-mobile admin does.
func (r *rig) owner() pass {
	r.t.Helper()
	resp := r.ask(visit{path: r.link()})
	for _, c := range resp.Cookies() {
		return r.claim(visit{cookie: c})
	}
	r.t.Fatalf("the link gives no session: %s", resp.Status)
	return pass{}
}

// claim is the first request of a page that a link has opened.
func (r *rig) claim(v visit) pass {
	r.t.Helper()
	v.path = "/admin/api/session"
	a := decode[OwnerAccess](r.t, r.ask(v))
	if a.Access != "session" || a.Page == "" {
		r.t.Fatalf("the page gets %+v", a)
	}
	return pass{v.cookie, a.Page}
}

// link is the path of a link from the admin socket, with its key.
func (r *rig) link() string {
	r.t.Helper()
	var link AdminLink
	ok(r.t, r.admin.Post(r.t.Context(), "/admin/link", Command{}, &link))
	u, err := url.Parse(cmp.Or(link.Here, link.Elsewhere))
	ok(r.t, err)
	return u.RequestURI()
}

// with is a request of the page that has a session.
func (v visit) with(p pass) visit {
	v.cookie, v.headers = p.cookie, append([]string{ownerHeader + ": " + p.page}, v.headers...)
	return v
}

// asOwner is ask with the cookie of a session that a link has opened.
func (r *rig) asOwner(v visit) *http.Response {
	r.t.Helper()
	if r.session.cookie == nil {
		r.session = r.owner()
	}
	return r.ask(v.with(r.session))
}

// ask has the server's own handler answer.
func (r *rig) ask(v visit) *http.Response {
	r.t.Helper()
	if v.method == "" {
		v.method = http.MethodGet
	}
	if v.host == "" {
		v.host = r.server.Addr().String()
	}
	if v.peer == "" {
		v.peer = "127.0.0.1"
	}
	scheme := "http://"
	if v.https {
		scheme = "https://"
	}
	req := httptest.NewRequestWithContext(r.t.Context(), v.method, scheme+v.host+v.path, strings.NewReader(v.body))
	req.RemoteAddr = net.JoinHostPort(v.peer, "5")
	at, err := net.ResolveTCPAddr("tcp", cmp.Or(v.at, r.server.Addr().String()))
	ok(r.t, err)
	req = req.WithContext(context.WithValue(req.Context(), http.LocalAddrContextKey, net.Addr(at)))
	req.Header.Set(ownerHeader, "1")
	if v.method != http.MethodGet {
		req.Header.Set("Origin", scheme+v.host)
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range v.headers {
		name, value, _ := strings.Cut(h, ": ")
		if req.Header.Set(name, value); value == "-" {
			req.Header.Del(name)
		}
	}
	if v.cookie != nil {
		req.AddCookie(v.cookie)
	}
	w := httptest.NewRecorder()
	r.server.handler().ServeHTTP(w, req)
	return w.Result()
}

// decode reads an answer that must be a good one.
func decode[T any](t *testing.T, resp *http.Response) (out T) {
	t.Helper()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", resp.Status, text(t, resp))
	}
	ok(t, json.NewDecoder(resp.Body).Decode(&out))
	return out
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	ok(t, err)
	return string(body)
}

// What the page does, it does by the admin interface, and no more than it needs of it.
func TestOwnerDoes(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_DELIVER_TOKENS=cron="+otherToken, "MOBILE_ADMIN_TOKEN="+adminSecret, "MOBILE_ALLOW_ALL_USERS=0",
		"MOBILE_PUBLIC_URL=https://127.0.0.1:1")
	overview := func() Overview {
		t.Helper()
		resp := r.asOwner(visit{path: "/admin/api/overview"})
		body := text(t, resp)
		for _, secret := range []string{mainToken, otherToken, adminSecret} {
			if strings.Contains(body, secret) {
				t.Error("a secret is shown")
			}
		}
		var o Overview
		ok(t, json.Unmarshal([]byte(body), &o))
		return o
	}
	do := func(path, body string) *http.Response {
		t.Helper()
		return r.asOwner(visit{method: http.MethodPost, path: "/admin/api" + path, body: body})
	}
	d := r.connect("tel-1", mainToken)
	d.send(&frame.Text{ID: "m1", Text: "hello"})
	d.message()
	o := overview()
	if len(o.Devices) != 1 || o.Devices[0].Approved || len(o.Pairing.Pending) != 1 || len(o.Tokens) != 2 || o.Totals["device_connections"] != 1 ||
		o.Totals["hellos_total"] != 1 || len(o.Problems) != 0 || o.Home.Device != nil || o.Status.Connected != 1 {
		t.Fatalf("%+v", o)
	}
	decode[Approved](t, do("/pairing/approve", `{"id":"`+o.Pairing.Pending[0].RequestID+`"}`))
	find[*frame.Approved](d)
	for _, step := range [][2]string{{"/devices/rename", `{"id":"tel-1","name":"Anna's phone"}`}, {"/home/set", `{"id":"tel-1"}`}} {
		if resp := do(step[0], step[1]); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", step[0], text(t, resp))
		}
	}
	if o = overview(); o.Devices[0].Name != "Anna's phone" || o.Home.Device == nil || o.Home.Device.ID != "tel-1" || len(o.Pairing.Approved) != 1 {
		t.Errorf("%+v", o)
	}

	made := decode[NewToken](t, do("/tokens/add", `{"label":"tablet"}`))
	r.connect("tab-1", made.Token)
	if body := text(t, r.asOwner(visit{path: "/admin/api/overview"})); strings.Contains(body, made.Token) || !strings.Contains(body, `"tablet"`) {
		t.Error("the new token is shown again, or its label is not")
	}
	if resp := do("/tokens/remove", `{"label":"main"}`); resp.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("a token of the settings is removed: %s", resp.Status)
	}
	decode[any](t, do("/tokens/remove", `{"label":"tablet"}`))

	r.post("/deliver", Command{Frame: &frame.Deliver{To: "tel-1", ID: "d1", Text: "news"}}, nil)
	for query, want := range map[string]int{"limit=10": 1, "limit=10&device=tel-1": 1, "limit=10&device=tab-1": 0, "limit=10&state=expired": 0} {
		if list := decode[[]hub.DeliveryInfo](t, r.asOwner(visit{path: "/admin/api/deliveries?" + query})); len(list) != want {
			t.Errorf("%s: %+v", query, list)
		}
	}

	report := decode[doctor.Report](t, r.asOwner(visit{path: "/admin/api/doctor"}))
	if report.Well || len(report.Checked) == 0 || !strings.Contains(report.Issues[0].Text+report.Issues[0].Do, "127.0.0.1:1") {
		t.Errorf("the doctor: %+v", report)
	}

	decode[any](t, do("/devices/revoke", `{"id":"tel-1"}`))
	if code := d.closed(); code != int(frame.CloseNoAccess) {
		t.Errorf("closed with %d", code)
	}

	copied := filepath.Join(t.TempDir(), "copy.db")
	for path, body := range map[string]string{"/backup": `{"path":"` + copied + `"}`, "/deliver": `{"frame":{"to":"tel-1","text":"x"}}`, "/doctor/probe": "{}", "/nothing": "{}"} {
		if resp := do(path, body); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
	if _, err := os.Stat(copied); err == nil {
		t.Error("the page wrote a file of its choice")
	}
}

// What is drawn on the page is the code of the link.
func TestOwnerInvitation(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken)
	inv := decode[Invited](t, r.asOwner(visit{method: http.MethodPost, path: "/admin/api/pair", body: "{}"}))
	want, err := qr.Encode(inv.Link, qr.M)
	ok(t, err)
	if inv.QR.Size != want.Size+8 {
		t.Fatalf("size %d of %d modules", inv.QR.Size, want.Size)
	}
	dark := map[[2]int]bool{}
	for _, m := range regexp.MustCompile(`M(\d+) (\d+)h(\d+)v1h-(\d+)z`).FindAllStringSubmatch(inv.QR.Path, -1) {
		x, _ := strconv.Atoi(m[1])
		y, _ := strconv.Atoi(m[2])
		n, _ := strconv.Atoi(m[3])
		for i := range n {
			dark[[2]int{x + i, y}] = true
		}
	}
	for y := range inv.QR.Size {
		for x := range inv.QR.Size {
			if dark[[2]int{x, y}] != want.Black(x-4, y-4) {
				t.Fatalf("module %d, %d is wrong", x, y)
			}
		}
	}
	if !strings.Contains(inv.Link, inv.Code) {
		t.Errorf("%+v", inv.Invitation)
	}
}

// The names by which the page reads the state of the gateways.
func TestOwnerSeesGateways(t *testing.T) {
	r := start(t, "MOBILE_TOKEN="+mainToken, "MOBILE_AGENT=relay", "MOBILE_RELAY_ID=gw-1", "MOBILE_RELAY_SECRET="+otherToken)
	o := decode[struct {
		Status struct {
			Relay struct{ Gateways []map[string]any } `json:"relay"`
		} `json:"status"`
	}](t, r.asOwner(visit{path: "/admin/api/overview"}))
	if len(o.Status.Relay.Gateways) != 1 || o.Status.Relay.Gateways[0]["ID"] != "gw-1" {
		t.Fatalf("%+v", o)
	}
	for _, name := range []string{"Name", "Online", "Seen", "Since", "From", "Version", "Turns", "Waiting", "Wedges"} {
		if _, there := o.Status.Relay.Gateways[0][name]; !there {
			t.Errorf("%s is missing", name)
		}
	}
}
