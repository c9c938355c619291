package gateway

import (
	"encoding/json"
	"fmt"
)

// migrations convert the forms of a stored profile, each to the next one:
//
//	0  without "schema"; one address as "url" ("baseUrl", "remoteUrl") with "localUrl"; "authMode",
//	   "sessionId", "token", "password"
//	1  "remote_url" and "local_url"; "auth_mode"
//	2  the fields of Profile
var migrations = [ProfileSchema]func(map[string]json.RawMessage) map[string]json.RawMessage{
	func(old map[string]json.RawMessage) map[string]json.RawMessage {
		return pick(old, map[string][]string{
			"id": {"id"}, "name": {"name"}, "remote_url": {"remoteUrl", "baseUrl", "url", "remote"}, "local_url": {"localUrl", "local"},
			"auth_mode": {"authMode", "auth"}, "username": {"username"}, "session": {"sessionId", "session"}, "preferences": {"preferences"},
		})
	},
	func(old map[string]json.RawMessage) map[string]json.RawMessage {
		next := pick(old, map[string][]string{
			"id": {"id"}, "name": {"name"}, "remote": {"remote_url"}, "local": {"local_url"}, "auth": {"auth_mode"}, "username": {"username"},
			"remote_key": {"remote_key"}, "local_key": {"local_key"}, "session": {"session"}, "preferences": {"preferences"},
		})
		mode := text(next["auth"])
		switch {
		case mode == "username_password", mode == "" && text(next["username"]) != "":
			mode = string(AuthPassword)
		case mode == "": // a key was once the only way to sign in
			mode = string(AuthBearer)
		}
		next["auth"], _ = json.Marshal(mode)
		return next
	},
}

// pick copies fields under new names. For each it uses the first of the old names that exists and
// is not null.
func pick(old map[string]json.RawMessage, names map[string][]string) map[string]json.RawMessage {
	next := map[string]json.RawMessage{}
	for name, before := range names {
		for _, n := range before {
			if value, ok := old[n]; ok && string(value) != "null" {
				next[name] = value
				break
			}
		}
	}
	return next
}

// migrate converts a stored profile to the current schema, and returns the schema it had.
func migrate(data []byte) ([]byte, int, error) {
	members, schema, err := schemaOf(data)
	if err != nil {
		return nil, 0, err
	}
	if schema == ProfileSchema {
		return data, schema, nil
	}
	for _, step := range migrations[schema:] {
		members = step(members)
	}
	raw, err := json.Marshal(members)
	return raw, schema, err
}

func schemaOf(data []byte) (map[string]json.RawMessage, int, error) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil || members == nil {
		return nil, 0, &ProfileError{Field: "profile", Problem: "is not a JSON object"}
	}
	schema := 0
	if raw, ok := members["schema"]; ok && json.Unmarshal(raw, &schema) != nil {
		return nil, 0, &ProfileError{Field: "schema", Problem: "must be a number"}
	}
	switch {
	case schema < 0:
		return nil, 0, &ProfileError{Field: "schema", Problem: "must not be negative"}
	case schema > ProfileSchema:
		return nil, 0, &ProfileError{Field: "schema", Problem: fmt.Sprintf("is %d, but this version supports at most %d: a newer version wrote the profile, so update this program", schema, ProfileSchema)}
	}
	return members, schema, nil
}

// LegacyCredentials returns the secrets that a profile of schema 0 contains. Store them encrypted
// and write the profile again, so that the user need not enter them again. Profiles of later
// schemas contain none.
func LegacyCredentials(data []byte) (Credentials, error) {
	profile, err := ParseProfile(data)
	if err != nil {
		return Credentials{}, err
	}
	members, schema, err := schemaOf(data)
	if err != nil || schema > 0 {
		return Credentials{}, err
	}
	return Credentials{Token: NewSecret(text(members["token"])), Password: NewSecret(text(members["password"]))}.For(profile), nil
}
