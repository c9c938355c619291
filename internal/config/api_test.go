package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const someKey = "0123456789abcdef-key"

// The key of Hermes' API server is found in the first place that has it, and that of this machine is sent to no other.
func TestAPIKey(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".hermes"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".hermes/.env": "API_SERVER_KEY=hermes-own-key-of-here\nAPI_SERVER_ENABLED=true\n", "key": someKey + "-file\n", "short": "short", "two": "a key of several words"} {
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name string
		env  []string
		key  string
		says string // of the error
		warn string
	}{
		{name: "Hermes' own", key: "hermes-own-key-of-here"},
		{name: "the file", env: []string{"MOBILE_API_KEY_FILE=~/key"}, key: someKey + "-file"},
		{name: "ours", env: []string{"MOBILE_API_KEY_FILE=~/key", "MOBILE_API_KEY=" + someKey}, key: someKey},
		{name: "another machine", env: []string{"MOBILE_API_URL=https://agent.example.com/hermes/"}},
		{name: "another machine, its key", env: []string{"MOBILE_API_URL=https://agent.example.com", "MOBILE_API_KEY=" + someKey}, key: someKey},
		{name: "unencrypted", env: []string{"MOBILE_API_URL=http://10.0.0.7:8642", "MOBILE_API_KEY=" + someKey}, key: someKey, warn: "unencrypted"},
		{name: "no file", env: []string{"MOBILE_API_KEY_FILE=~/nothing"}, says: "cannot be read"},
		{name: "short", env: []string{"MOBILE_API_KEY_FILE=~/short"}, says: "shorter than the 16"},
		{name: "words", env: []string{"MOBILE_API_KEY_FILE=~/two"}, says: "contains a space"},
		{name: "short in a setting", env: []string{"MOBILE_API_KEY=secret"}, says: "shorter than the 16"},
		{name: "another server's", env: []string{"MOBILE_API_KIND=openai", "MOBILE_API_KEY=sk-1"}, key: "sk-1"},
		{name: "another server without a key", env: []string{"MOBILE_API_KIND=openai", "MOBILE_API_URL=http://127.0.0.1:11434"}},
		{name: "a query", env: []string{"MOBILE_API_URL=http://127.0.0.1:8642/?a=b"}, says: "use the form"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, warnings, err := Load(Sources{Environ: tc.env, HomeDir: home})
			if tc.says != "" {
				if err == nil || !strings.Contains(err.Error(), tc.says) || strings.Contains(err.Error(), `"secret"`) {
					t.Fatalf("it says %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.APIKey.Reveal() != tc.key || c.FrontAPI || strings.HasSuffix(c.APIURL, "/") {
				t.Errorf("the key is %q, the address %s, on %v", c.APIKey.Reveal(), c.APIURL, c.FrontAPI)
			}
			if tc.warn != "" && (len(warnings) != 1 || !strings.Contains(warnings[0].Text, tc.warn)) || tc.warn == "" && len(warnings) > 0 {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// A path for devices that the API has is taken only where the API is not served.
func TestFrontPaths(t *testing.T) {
	for _, path := range []string{"/v1", "/v1/ws", "/health", "/api/device", "/auth/x", "/login"} {
		if _, _, err := Load(Sources{Environ: []string{"MOBILE_PATH=" + path}, HomeDir: t.TempDir()}); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		if _, _, err := Load(Sources{Environ: []string{"MOBILE_PATH=" + path, "MOBILE_FRONT_API=1"}, HomeDir: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "MOBILE_PATH") {
			t.Errorf("%s: it says %v", path, err)
		}
	}
}

// Where Hermes' .env puts its API server, it is looked for, unless the owner says otherwise.
func TestAPIAddressOfHermes(t *testing.T) {
	for dotenv, want := range map[string]string{
		"-":                      "http://127.0.0.1:8642",
		"API_SERVER_PORT=9001\n": "http://127.0.0.1:9001",
		"API_SERVER_HOST=::1\nAPI_SERVER_PORT='9001'\n":       "http://[::1]:9001",
		"API_SERVER_HOST=0.0.0.0\n":                           "http://127.0.0.1:8642",
		"API_SERVER_HOST=::\nAPI_SERVER_PORT=x\n":             "http://127.0.0.1:8642",
		"API_SERVER_PORT=9001\nMOBILE_API_URL=http://[::1]:7": "http://[::1]:7",
	} {
		if c := mustLoad(t, fixture{environ: []string{"MOBILE_AGENT=demo"}, dotenv: dotenv}.sources(t)); c.APIURL != want {
			t.Errorf("%q: %s, want %s", dotenv, c.APIURL, want)
		}
	}
}
