package setup

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const testKey = "0123456789abcdef0123456789abcdef"

func apiPlan(t *testing.T, home, key string) (*Plan, API) {
	t.Helper()
	p, api, err := NewAPIPlan(Home{Path: home}, key)
	if err != nil {
		t.Fatal(err)
	}
	return p, api
}

// TestAPIPlan checks that a plan adds missing settings and keeps existing ones. A second run finds
// nothing to do, and an undo restores every byte.
func TestAPIPlan(t *testing.T) {
	for name, tc := range map[string]struct{ config, env, want, url string }{
		"nothing":       {"a: 1\n", "# mine\nX=y\n", "# mine\nX=y\nAPI_SERVER_KEY=" + testKey + "\nAPI_SERVER_ENABLED=true\n", "http://127.0.0.1:8642"},
		"a key":         {"a: 1\n", "API_SERVER_KEY=a-key-of-somebody-else\n", "API_SERVER_KEY=a-key-of-somebody-else\nAPI_SERVER_ENABLED=true\n", "http://127.0.0.1:8642"},
		"off":           {"a: 1\n", "API_SERVER_ENABLED=false\nAPI_SERVER_KEY=a-key-of-somebody-else\n", "API_SERVER_ENABLED=true\nAPI_SERVER_KEY=a-key-of-somebody-else\n", "http://127.0.0.1:8642"},
		"on":            {"a: 1\n", "API_SERVER_ENABLED=1\nAPI_SERVER_KEY=a-key-of-somebody-else\n", "", "http://127.0.0.1:8642"},
		"elsewhere":     {"a: 1\n", "API_SERVER_HOST=0.0.0.0\nAPI_SERVER_PORT=9999\nAPI_SERVER_KEY=a-key-of-somebody-else\nAPI_SERVER_ENABLED=yes\n", "", "http://127.0.0.1:9999"},
		"in the config": {"platforms: {api_server: {enabled: true, extra: {host: \"::1\", port: 9001, key: a-key-of-somebody-else}}}\n", "", "API_SERVER_ENABLED=true\n", "http://[::1]:9001"},
		"off there":     {"platforms: {api_server: {enabled: false}} # mine\n", "", "API_SERVER_KEY=" + testKey + "\nAPI_SERVER_ENABLED=true\n", "http://127.0.0.1:8642"},
	} {
		t.Run(name, func(t *testing.T) {
			home, data := install(t, []byte(tc.config), []byte(tc.env))
			before := files(t, home)
			shown, _ := apiPlan(t, home, "")
			for _, s := range shown.Show() {
				if text := strings.Join(s.Lines, "\n"); strings.Contains(text, "somebody-else") || strings.Contains(text, "KEY=") && !strings.Contains(text, "KEY=<secret>") {
					t.Errorf("it shows %q", text)
				}
			}
			p, api := apiPlan(t, home, testKey)
			if api.URL != tc.url {
				t.Errorf("it is at %s", api.URL)
			}
			if p.Done() != (tc.want == "") {
				t.Errorf("there is to do %+v", p.Show())
			}
			write(t, p, data)
			if tc.want != "" && string(read(t, filepath.Join(home, envFile))) != tc.want {
				t.Errorf(".env is\n%s", read(t, filepath.Join(home, envFile)))
			}
			if name == "off there" && !bytes.Contains(read(t, filepath.Join(home, configFile)), []byte("enabled: true}} # mine")) {
				t.Errorf("config.yaml is\n%s", read(t, filepath.Join(home, configFile)))
			}
			if again, _ := apiPlan(t, home, NewAPIKey()); !again.Done() {
				t.Errorf("the second time there is to do %+v", again.Show())
			}
			if _, err := Undo(data, home); err != nil {
				t.Fatal(err)
			}
			sameFiles(t, files(t, home), before)
		})
	}
}

// TestAPIPlanRefuses checks that the plan names a key with which Hermes does not start, and that a
// plan without a key writes nothing.
func TestAPIPlanRefuses(t *testing.T) {
	home, data := install(t, nil, []byte("API_SERVER_KEY=short\n"))
	if _, _, err := NewAPIPlan(Home{Path: home}, testKey); err == nil || !strings.Contains(err.Error(), "5 characters") || strings.Contains(err.Error(), "short\n") {
		t.Errorf("it says %v", err)
	}
	home, _ = install(t, nil, nil)
	p, _ := apiPlan(t, home, "")
	if _, err := p.Write(data, time.Now()); err == nil {
		t.Error("a plan without a key was written")
	}
	if a, b := NewAPIKey(), NewAPIKey(); len(a) != 64 || a == b {
		t.Errorf("keys %q %q", a, b)
	}
}
