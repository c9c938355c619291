package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// A path is names and numbers with dots between, such as pending.0.user_id; "len" at its end is the number of elements.
// A value of * is any, ! is none.

// lookup returns the value at a path: a string as it is, anything else as JSON.
func lookup(v any, path string) (string, bool) {
	for name := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			next, ok := x[name]
			if !ok {
				return "", false
			}
			v = next
		case []any:
			if name == "len" {
				return strconv.Itoa(len(x)), true
			}
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 || i >= len(x) {
				return "", false
			}
			v = x[i]
		default:
			return "", false
		}
	}
	if s, ok := v.(string); ok {
		return s, true
	}
	b, err := json.Marshal(v)
	return string(b), err == nil
}

// mismatch says which of the wanted PATH=VALUE a value has not, or nothing.
func mismatch(v any, want []string) string {
	for _, w := range want {
		path, value, _ := strings.Cut(w, "=")
		got, ok := lookup(v, path)
		switch {
		case value == "!" && !ok, value == "*" && ok && got != "", ok && got == value:
		default:
			return fmt.Sprintf("%s is %q, want %q", path, got, value)
		}
	}
	return ""
}

// decode reads exactly one JSON value.
func decode(ts *testscript.TestScript, text []byte) any {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		ts.Fatalf("not JSON: %v: %.500s", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		ts.Fatalf("more than one JSON value: %.500s", text)
	}
	return v
}

func cmdJSON(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) < 1, "json FILE [PATH=VALUE...]")
	text := ts.ReadFile(args[0])
	if wrong := mismatch(decode(ts, []byte(text)), args[1:]); wrong != "" {
		ts.Fatalf("%s in\n%s", wrong, text)
	}
}

func cmdCapture(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 3, "capture NAME FILE REGEXP")
	m := regexp.MustCompile("(?m)" + args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if len(m) != 2 {
		ts.Fatalf("%s has no %s", args[1], args[2])
	}
	ts.Setenv(args[0], m[1])
}

func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 2, "await REGEXP FILE")
	re := regexp.MustCompile("(?m)" + args[0])
	eventually(ts, args[0]+" in "+args[1], func() bool { return re.MatchString(ts.ReadFile(args[1])) })
}

func cmdUntil(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) < 2, "until REGEXP COMMAND [ARG...]")
	re := regexp.MustCompile("(?m)" + args[0])
	eventually(ts, args[0]+" from "+strings.Join(args[1:], " "), func() bool {
		ts.Check(ts.Exec(args[1], args[2:]...))
		return re.MatchString(ts.ReadFile("stdout"))
	})
}

func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 2, "mode PERM FILE")
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

func cmdOccupy(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 1, "occupy NAME")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { _ = l.Close() })
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}

func cmdVisit(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 1, "visit LINK")
	jar, err := cookiejar.New(nil)
	ts.Check(err)
	client := &http.Client{Jar: jar, Transport: &http.Transport{DisableKeepAlives: true}}
	get := func(address string) (*url.URL, []byte) {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		ts.Check(err)
		req.Header.Set("X-Hermes-Mobile-Admin", "1")
		resp, err := client.Do(req)
		ts.Check(err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		ts.Check(err)
		if resp.StatusCode != http.StatusOK {
			ts.Fatalf("%s answers %s", address, resp.Status)
		}
		return resp.Request.URL, body
	}
	page, _ := get(args[0])
	_, body := get(page.Scheme + "://" + page.Host + "/admin/api/session")
	access, _ := lookup(decode(ts, body), "access")
	_, err = fmt.Fprintf(ts.Stdout(), "%s %s\n", page.RequestURI(), access)
	ts.Check(err)
}
