package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// What must never be printed: the secrets and hosts of these tests.
var forbidden = []string{testToken, testPassword, "at-secret", "rt-secret", "gateway.test", "127.0.0.1"}

func scan(t *testing.T, where, shown string) {
	t.Helper()
	for _, word := range forbidden {
		if strings.Contains(shown, word) {
			t.Errorf("%s shows %q:\n%.2000s", where, word, shown)
		}
	}
}

// show prints a value in every way that Go offers.
func show(value any) string {
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+"\n", value)
		if _, profile := value.(Profile); !profile { // whoever holds a profile may see its addresses
			fmt.Fprintf(&out, verb+"\n", struct{ a any }{value})
		}
	}
	level := &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}
	slog.New(slog.NewTextHandler(&out, level)).Info("x", "value", value)
	slog.New(slog.NewJSONHandler(&out, level)).Info("x", "value", value)
	data, err := json.Marshal(value)
	fmt.Fprintln(&out, string(data), err)
	return out.String()
}

// byName lets a client reach a host by the name gateway.test.
func byName(h *host) func(*Credentials, *Options) {
	return func(_ *Credentials, o *Options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, h.address)
		}
	}
}

func TestNothingSecretIsShown(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logged := func(_ *Credentials, o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	var shown []any
	keep := func(values ...any) { shown = append(shown, values...) }

	// A gateway that quotes the request in everything it sends.
	gw := newHermes(t, "0.22.2")
	gw.caps["model"] = "model of gateway.test " + testToken
	quote := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			said, _ := json.Marshal(fmt.Sprintf("no %s %s at %s", r.Header.Get("Authorization"), r.Header.Get("Cookie"), r.Host))
			fmt.Fprintf(w, `{"error":{"message":%s,"code":%s}}`, said, said)
		}
	}
	gw.routes["/v1/toolsets"], gw.routes["/v1/skills"] = quote(400), quote(502)
	gw.routes["/v1/models"] = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get("Authorization"))
	}
	remote := serve(t, gw)
	c := client(t, Profile{Remote: "https://gateway.test", Name: "Home"}, byName(remote), logged)
	on(t, c, Remote)
	for _, err := range []error{
		second(c.Tools.Toolsets(t.Context())), second(c.Tools.Skills(t.Context())), second(c.Models.List(t.Context())), second(c.Sessions.Get(t.Context(), "nope")),
		second(c.Sessions.Search(t.Context(), "x")),
	} {
		if err == nil {
			t.Fatal("a call that must fail did not")
		}
		keep(err)
	}
	c.Reevaluate("because of gateway.test and " + testToken)
	keep(c, c.Diagnostics(), c.Profile(), c.account.creds, c.account.creds.Token, &c.account.creds, map[string]Secret{"a": c.account.creds.Token})
	on(t, c, Remote)
	route, _ := c.Route()
	keep(route)

	// Addresses that fail in different ways.
	for name, h := range map[string]*host{
		"certificate": serve(t, gw, selfSigned), "plain": serve(t, gw, overPlain), "portal": serve(t, http.NotFoundHandler()),
		"cut": serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) })),
	} {
		bad := client(t, Profile{Remote: "https://gateway.test", Local: "https://gateway.test:444"}, byName(h), logged)
		_, err := bad.Connect(t.Context())
		if err == nil {
			t.Fatalf("%s: is used", name)
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			keep(e)
		}
		var none *NoRouteError
		if errors.As(err, &none) {
			for _, cause := range none.Unwrap() {
				for e := cause; e != nil; e = errors.Unwrap(e) {
					keep(e)
				}
			}
		}
		keep(bad, bad.Diagnostics())
		bad.Close()
	}
	for _, dial := range []func(context.Context, string, string) (net.Conn, error){
		func(_ context.Context, n, a string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "gateway.test"}
		},
		func(_ context.Context, n, a string) (net.Conn, error) {
			return nil, fmt.Errorf("dial %s: %w", a, io.ErrUnexpectedEOF)
		},
		func(_ context.Context, n, a string) (net.Conn, error) {
			return nil, errors.New("no way to gateway.test")
		},
	} {
		bad := client(t, Profile{Remote: "https://gateway.test"}, func(_ *Credentials, o *Options) { o.Dial = dial }, logged)
		_, err := bad.Connect(t.Context())
		keep(err, bad.Diagnostics())
		bad.Close()
	}

	// A login, and a login that is quoted.
	d := newDashboard(t)
	var creds Credentials
	front := serve(t, d)
	signedIn := client(t, Profile{Remote: "https://gateway.test", Auth: AuthPassword}, byName(front), logged, func(_ *Credentials, o *Options) { o.OnCredentials = func(c Credentials) { creds = c } })
	if err := signedIn.Login(t.Context(), NewSecret(testPassword)); err != nil {
		t.Fatal(err)
	}
	d.routes["/v1/toolsets"] = quote(400)
	on(t, signedIn, Remote)
	keep(second(signedIn.Tools.Toolsets(t.Context())))
	secret, err := creds.Export()
	keep(signedIn, signedIn.Diagnostics(), creds, creds.cookies, secret, err)
	d.answer = func(w http.ResponseWriter, r *http.Request) bool { quote(422)(w, r); return true }
	keep(signedIn.Login(t.Context(), NewSecret(testPassword)), signedIn.Diagnostics())
	if _, err := ParseCredentials(NewSecret(`{"token":"` + testToken + `",`)); err == nil {
		t.Error("broken credentials are read")
	} else {
		keep(err)
	}

	c.Close()
	signedIn.Close()
	for i, value := range shown { // at the end, when nothing runs: with a wrong verb fmt reads a client without its lock
		shownAs := show(value)
		if _, profile := value.(Profile); profile { // its stored form contains its addresses
			shownAs = strings.ReplaceAll(shownAs, `"remote":"https://gateway.test"`, "")
			shownAs = strings.ReplaceAll(shownAs, `model of gateway.test `+testToken, "")
		}
		scan(t, fmt.Sprintf("value %d, a %T,", i, value), shownAs)
		if d, ok := value.(Diagnostics); ok {
			data, err := d.JSON()
			if err != nil || len(d.String()) < 50 {
				t.Errorf("diagnostics: %v", err)
			}
			scan(t, "diagnostics", d.String()+string(data))
		}
	}
	if log.Len() == 0 {
		t.Error("nothing was logged: the test proves nothing")
	}
	scan(t, "the log", log.String())
}

func second[T any](_ T, err error) error { return err }

// Diagnostics tell a user what they need, from a client that has had failures.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	gw := newHermes(t, "0.22.2")
	local, remote := serve(t, gw), serve(t, gw)
	local.down()
	c := client(t, Profile{Remote: remote.URL, Local: local.URL})
	for range 25 {
		c.NetworkChanged()
		on(t, c, Remote)
	}
	d := c.Diagnostics()
	if len(d.Failures) != maxFailures || d.Failures[0].Route != Local || d.Route == nil || d.Version != "0.22.2" || !d.Local || !d.SignedIn {
		t.Errorf("diagnostics %+v", d)
	}
	for _, want := range []string{"route: remote", "network changed", "0.22.2", "session_chat_stream", "local: server cannot be reached"} {
		if !strings.Contains(d.String(), want) {
			t.Errorf("%q is not in\n%s", want, d)
		}
	}
}

// A program that panics with these values does not print them either.
func TestPanicsShowNothing(t *testing.T) {
	const which = "GATEWAY_TEST_PANIC"
	values := map[string]func(c *Client) any{
		"client": func(c *Client) any { return c }, "profile": func(c *Client) any { return c.Profile() }, "credentials": func(c *Client) any { return c.account.creds },
		"secret": func(c *Client) any { return c.account.creds.Token }, "error": func(c *Client) any { return second(c.Connect(context.Background())) },
	}
	if name := os.Getenv(which); name != "" {
		c, err := New(Profile{Remote: "https://gateway.test:1", Auth: AuthBearer}, Credentials{Token: NewSecret(testToken), Password: NewSecret(testPassword)}, Options{
			Dial: func(context.Context, string, string) (net.Conn, error) {
				return nil, &net.DNSError{Name: "gateway.test"}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		panic(values[name](c))
	}
	t.Parallel()
	for name := range values {
		command := exec.Command(os.Args[0], "-test.run=^TestPanicsShowNothing$")
		command.Env = append(os.Environ(), which+"="+name, "GOTRACEBACK=all")
		out, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "panic: ") {
			t.Fatalf("%s: did not panic: %s", name, out)
		}
		scan(t, "a panic with the "+name, string(out))
	}
}
