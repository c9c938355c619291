package config

import (
	"strings"
	"testing"
)

// FuzzConfigFile: whatever stands in the settings' file, loading it ends with settings or with errors, and neither these nor the warnings tell a
// secret that stands in it.
func FuzzConfigFile(f *testing.F) {
	for _, text := range []string{"", "port: 1\n", "token: mysecret12345\nport: x\n", "gateways:\n  - {id: a, secret: mysecret12345, devices: '*'}\n", "gateways: {a: b}\n", "a: &b [*b]\n", "- a\n", "--- 1\n--- 2\n",
		"? token\n: mysecret12345\n", "token: 'mysecret12345\n", "\ufefftoken: |\n  mysecret12345\n", "relay_secret: {x: mysecret12345}\n", "tokens: [mysecret12345]\n", "\xff", "!!binary x: y\n", strings.Repeat("{a: ", 200)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text == "" {
			return
		}
		c, warnings, err := Load(fixture{environ: []string{"MOBILE_AGENT=demo"}, config: text}.sources(t))
		if (c == nil) == (err == nil) {
			t.Fatalf("%q: settings %t, error %v", text, c != nil, err)
		}
		if !strings.Contains(text, "token: mysecret12345\n") { // the value of a setting that is a secret, and well written
			return
		}
		if err != nil && strings.Contains(err.Error(), "mysecret12345") {
			t.Fatalf("%q: %v", text, err)
		}
		for _, w := range warnings {
			if strings.Contains(w.String(), "mysecret12345") {
				t.Fatalf("%q: %v", text, w)
			}
		}
	})
}
