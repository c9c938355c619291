package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestProfileRoundTrip(t *testing.T) {
	p := Profile{
		Schema: ProfileSchema, ID: "1", Name: "Home", Remote: "https://gateway.test/hermes", Local: "https://192.168.1.5:8642", Auth: AuthPassword, Username: "me", Insecure: true,
		LocalKey: strings.Repeat("0a", 32), Identity: &Identity{Platform: "hermes-agent", Model: "m", Version: "0.22.2"}, Session: "s",
		Preferences: map[string]json.RawMessage{"theme": json.RawMessage(`"dark"`)}, Migrated: true, MigratedFrom: 1,
	}
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseProfile(data)
	if err != nil || !reflect.DeepEqual(back, p) {
		t.Errorf("%s comes back as %#v, %v", data, back, err)
	}
}

func TestProfileMigration(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     Profile
	}{
		{"0, one address", `{"url":"https://gateway.test","name":"Home","token":"` + testToken + `"}`,
			Profile{Name: "Home", Remote: "https://gateway.test", Auth: AuthBearer, Migrated: true}},
		{"0, two addresses", `{"id":"7","baseUrl":"https://gateway.test","localUrl":"http://localhost:8642","authMode":"username_password","username":"me","sessionId":"s","unknown":1,"password":"x"}`,
			Profile{ID: "7", Remote: "https://gateway.test", Local: "http://localhost:8642", Auth: AuthPassword, Username: "me", Session: "s", Migrated: true}},
		{"0, no sign-in", `{"remoteUrl":"https://gateway.test","url":"https://old.test","auth":"none","localUrl":null}`,
			Profile{Remote: "https://gateway.test", Auth: AuthNone, Migrated: true}},
		{"0, written by hand", `{"remote":"https://gateway.test","local":"https://home.test"}`,
			Profile{Remote: "https://gateway.test", Local: "https://home.test", Auth: AuthBearer, Migrated: true}},
		{"1", `{"schema":1,"id":"7","remote_url":"https://gateway.test","local_url":"https://home.test","auth_mode":"bearer","preferences":{"a":[1]}}`,
			Profile{ID: "7", Remote: "https://gateway.test", Local: "https://home.test", Auth: AuthBearer, Preferences: map[string]json.RawMessage{"a": json.RawMessage("[1]")}, Migrated: true, MigratedFrom: 1}},
		{"2", `{"schema":2,"id":"","name":"","remote":"https://gateway.test","auth":"bearer"}`, Profile{Remote: "https://gateway.test", Auth: AuthBearer}},
	} {
		tc.want.Schema = ProfileSchema
		got, err := ParseProfile([]byte(tc.in))
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %#v, %v\nwant %#v", tc.name, got, err, tc.want)
			continue
		}
		// A profile is migrated once: what is written has the current form, the mark, and no
		// secret.
		data, err := json.Marshal(got)
		if err != nil || strings.Contains(string(data), "secret") {
			t.Errorf("%s: written as %s, %v", tc.name, data, err)
		}
		if again, err := ParseProfile(data); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s: read again as %#v, %v", tc.name, again, err)
		}
	}
	creds, err := LegacyCredentials([]byte(`{"url":"https://gateway.test","token":"` + testToken + `"}`))
	if err != nil || creds.Token.Reveal() != testToken || creds.Account == "" {
		t.Errorf("the key of schema 0 is %v, %v", creds, err)
	}
	if creds, err := LegacyCredentials([]byte(`{"schema":1,"remote_url":"https://gateway.test","token":"x"}`)); err != nil || !creds.Token.IsZero() {
		t.Errorf("a later schema gives %v, %v", creds, err)
	}
}

func TestProfileRefusals(t *testing.T) {
	for in, want := range map[string]string{
		`{"schema":3,"remote":"https://gateway.test","auth":"none"}`: "schema",
		`{"schema":-1}`:                         "schema",
		`{"schema":"2"}`:                        "schema",
		`[]`:                                    "profile",
		`null`:                                  "profile",
		`{`:                                     "profile",
		`{"schema":2,"remote":5,"auth":"none"}`: "remote",
		`{"schema":2,"remote":"https://gateway.test","auth":"none","local_kye":"x"}`:   "local_kye",
		`{"schema":2,"remote":"https://gateway.test","auth":"none","token":"hunter2"}`: "token",
		`{"schema":2,"auth":"none"}`:                                                                             "remote",
		`{"schema":2,"remote":"https://gateway.test","auth":"magic"}`:                                            "auth",
		`{"schema":2,"remote":"https://gateway.test","auth":"password"}`:                                         "username",
		`{"schema":2,"remote":"https://gateway.test","auth":"none","kind":"gopher"}`:                             "kind",
		`{"schema":2,"remote":"https://gateway.test","auth":"none","kind":"openai","local":"https://h.test"}`:    "local",
		`{"schema":2,"remote":"https://gateway.test","auth":"none","remote_key":"abc"}`:                          "remote_key",
		`{"schema":2,"remote":"http://localhost","auth":"none","remote_key":"` + strings.Repeat("ab", 32) + `"}`: "remote_key",
		`{"schema":2,"remote":"https://me:hunter2@gateway.test","auth":"none"}`:                                  "remote",
		`{"schema":2,"remote":"https://gateway.test?key=hunter2","auth":"none"}`:                                 "remote",
	} {
		_, err := ParseProfile([]byte(in))
		var problem *ProfileError
		if !errors.As(err, &problem) || problem.Field != want {
			t.Errorf("%s: %v, want a problem of %s", in, err, want)
			continue
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "gateway.test") {
			t.Errorf("%s: the error quotes the value: %v", in, err)
		}
	}
	// Validate names every problem, not only the first.
	err := Profile{Auth: "x", Local: "gopher://h", LocalKey: "z"}.Validate()
	for _, field := range []string{"remote", "auth", "local", "local_key"} {
		if !strings.Contains(fmt.Sprint(err), field+" ") {
			t.Errorf("%v does not name %s", err, field)
		}
	}
	if _, err := json.Marshal(Profile{Remote: "https://me:hunter2@gateway.test"}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password in the address is written: %v", err)
	}
	if _, err := New(Profile{}, Credentials{}, Options{}); err == nil {
		t.Error("a client is made for no profile")
	}
}

func TestAddresses(t *testing.T) {
	for in, want := range map[string]string{
		"https://Gateway.Test":         "https://gateway.test",
		"https://gateway.test.:443/":   "https://gateway.test",
		"HTTPS://gateway.test:8642/":   "https://gateway.test:8642",
		"https://gateway.test:/a/b/":   "https://gateway.test/a/b",
		"https://[FD00::1]:443/":       "https://[fd00::1]",
		"https://[fd00::1]:8642":       "https://[fd00::1]:8642",
		"http://127.0.0.1:80":          "http://127.0.0.1",
		"https://gateway.test/p/a%20b": "https://gateway.test/p/a%20b",
		"gateway.test":                 "", "gateway.test:8642": "", "//gateway.test": "", "ftp://gateway.test": "", "https://": "", "https:///x": "", "https://:8642": "",
		"https://gateway.test/../x": "", "https://gateway.test//x/y": "", "https://gateway.test#x": "", "https://gateway.test?": "", "https://a b": "", "https://x:port": "", "javascript:alert(1)": "", "": "",
	} {
		got := ""
		if u, err := parseAddress(in, Hermes); err == nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
	for in, allowed := range map[string][2]bool{ // without and with insecure
		"http://127.0.0.1:8642": {true, true}, "http://localhost": {true, true}, "http://[::1]": {true, true}, "http://x.localhost": {true, true},
		"http://192.168.1.2": {false, true}, "http://10.1.1.1": {false, true}, "http://172.16.0.1": {false, true}, "http://100.64.0.1": {false, true}, "http://[fd00::1]": {false, true}, "http://169.254.1.1": {false, true},
		"http://hermes.local": {false, true},
		"http://8.8.8.8":      {false, false}, "http://172.32.0.1": {false, false}, "http://100.128.0.1": {false, false}, "http://[2001:db8::1]": {false, false}, "http://0.0.0.0": {false, false},
		"https://8.8.8.8": {true, true},
	} {
		for i, insecure := range []bool{false, true} {
			err := Profile{Remote: in, Auth: AuthNone, Insecure: insecure}.Validate()
			if (err == nil) != allowed[i] {
				t.Errorf("%s, insecure %t: %v", in, insecure, err)
			}
		}
	}
}

func FuzzParseProfile(f *testing.F) {
	for _, in := range []string{
		`{"url":"https://gateway.test","token":"x"}`, `{"schema":1,"remote_url":"https://gateway.test","auth_mode":"none"}`,
		`{"schema":2,"remote":"https://gateway.test","auth":"bearer","identity":{"platform":"p"},"preferences":{"a":null}}`,
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		p, err := ParseProfile(in)
		if err != nil {
			return
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%s is read and cannot be written: %v", in, err)
		}
		again, err := ParseProfile(data)
		if err != nil {
			t.Fatalf("%s is written as %s and cannot be read: %v", in, data, err)
		}
		if second, _ := json.Marshal(again); string(second) != string(data) {
			t.Fatalf("%s and then %s", data, second)
		}
	})
}
