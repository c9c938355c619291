package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"hermes-mobile/gateway"
)

// standIn answers as a gateway does, so that the examples can be run.
func standIn() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/health":
			io.WriteString(w, `{"status":"ok","platform":"hermes-agent","version":"0.22.2"}`)
		case r.Header.Get("Authorization") != "Bearer api-server-key":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/v1/capabilities":
			io.WriteString(w, `{"platform":"hermes-agent","model":"hermes-agent","auth":{"type":"bearer"},"features":{},
				"endpoints":{"sessions":{"method":"GET","path":"/api/sessions"}}}`)
		case r.URL.Path == "/api/sessions":
			io.WriteString(w, `{"object":"list","data":[{"id":"a","title":"Shopping"},{"id":"b","title":"Garden"}],"has_more":false}`)
		}
	}))
}

// A profile with one address, and the sessions there are.
func ExampleClient_Sessions() {
	server := standIn()
	defer server.Close()
	client, err := gateway.New(
		gateway.Profile{Name: "Home", Remote: server.URL, Auth: gateway.AuthBearer},
		gateway.Credentials{Token: gateway.NewSecret("api-server-key")},
		gateway.Options{},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	for session, err := range client.Sessions(context.Background(), gateway.SessionQuery{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(session.Title)
	}
	// Output:
	// Shopping
	// Garden
}

// What to do about each error.
func ExampleNoRouteError() {
	server := standIn()
	defer server.Close()
	client, err := gateway.New(gateway.Profile{Remote: server.URL, Auth: gateway.AuthBearer}, gateway.Credentials{Token: gateway.NewSecret("another")}, gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	_, err = client.Connect(context.Background())
	switch {
	case errors.Is(err, gateway.ErrSignIn):
		fmt.Println("ask for the key")
	case errors.Is(err, gateway.ErrIdentity):
		fmt.Println("ask whether the gateway was exchanged")
	case errors.Is(err, gateway.ErrNoRoute):
		fmt.Println("show why, and try again later:", err)
	}
	// Output: ask for the key
}

// A stored profile of an early version is brought up to date once.
func ExampleParseProfile() {
	profile, err := gateway.ParseProfile([]byte(`{"name":"Home","url":"https://hermes.example.org"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	data, err := json.Marshal(profile)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(data))
	_, err = gateway.ParseProfile([]byte(`{"schema":2,"remote":"http://hermes.example.org","auth":"bearer"}`))
	fmt.Println(err)
	// Output:
	// {"schema":2,"id":"","name":"Home","remote":"https://hermes.example.org","auth":"bearer","migrated":true}
	// remote must begin with https://, or plain http must be allowed for private networks
}

// Secrets leave by Reveal only.
func ExampleSecret() {
	token := gateway.NewSecret("api-server-key")
	fmt.Println(token, len(token.Reveal()))
	// Output: [redacted] 14
}

// Everything a host program keeps of an account is one secret, and of no use for another account.
func ExampleCredentials_For() {
	home := gateway.Profile{Remote: "https://hermes.example.org", Auth: gateway.AuthBearer}
	kept, err := gateway.Credentials{Token: gateway.NewSecret("api-server-key")}.For(home).Export()
	if err != nil {
		fmt.Println(err)
		return
	}
	credentials, err := gateway.ParseCredentials(kept)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(credentials.For(home).Token.IsZero())
	home.Remote = "https://other.example.org"
	fmt.Println(credentials.For(home).Token.IsZero())
	// Output:
	// false
	// true
}
