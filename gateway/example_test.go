package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"hermes-mobile/gateway"
)

// A profile with two addresses of one gateway: the client uses the one at home while it answers,
// otherwise the one that works from everywhere.
func ExampleClient_Connect() {
	home, everywhere := standIn(), standIn()
	defer everywhere.Close()
	client, err := gateway.New(
		gateway.Profile{Name: "Home", Local: home.URL, Remote: everywhere.URL, Auth: gateway.AuthBearer},
		gateway.Credentials{Token: gateway.NewSecret("api-server-key")},
		gateway.Options{},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	route, err := client.Connect(context.Background())
	fmt.Println(route.Kind, err)

	home.Close() // the user leaves the house
	client.NetworkChanged()
	route, err = client.Connect(context.Background())
	fmt.Println(route.Kind, err)
	// Output:
	// local <nil>
	// remote <nil>
}

// List all sessions, and one page of them.
func ExampleSessionService_All() {
	server, client := connected()
	defer server.Close()
	defer client.Close()
	ctx := context.Background()
	for session, err := range client.Sessions.All(ctx, gateway.SessionQuery{Limit: 2}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(session.Title)
	}
	page, err := client.Sessions.List(ctx, gateway.SessionQuery{Limit: 2, Offset: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(page.Sessions), "from", page.Offset, "more:", page.More)
	// Output:
	// Shopping
	// Garden
	// Taxes
	// 1 from 2 more: false
}

// Create a session for the next turns.
func ExampleSessionService_Create() {
	server, client := connected()
	defer server.Close()
	defer client.Close()
	session, err := client.Sessions.Create(context.Background(), gateway.SessionParams{Title: "Holidays"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(session.ID, session.Title)
	// Output: d Holidays
}

// List the scheduled jobs and pause one. No known version of Hermes advertises jobs, so the profile allows them.
func ExampleJobService_Pause() {
	server := standIn()
	defer server.Close()
	client, err := gateway.New(
		gateway.Profile{Remote: server.URL, Auth: gateway.AuthBearer, Jobs: gateway.JobsOn},
		gateway.Credentials{Token: gateway.NewSecret("api-server-key")},
		gateway.Options{},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close()
	ctx := context.Background()
	jobs, err := client.Jobs.List(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, job := range jobs {
		fmt.Println(job.Name, job.Schedule, job.State)
	}
	job, err := client.Jobs.Pause(ctx, jobs[0].ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(job.Name, job.State)
	// Output:
	// News every 120m scheduled
	// News paused
}

// List the models of the gateway. A call that it does not advertise is not sent.
func ExampleModelService_List() {
	server, client := connected()
	defer server.Close()
	defer client.Close()
	ctx := context.Background()
	models, err := client.Models.List(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, model := range models {
		fmt.Println(model.ID)
	}
	_, err = client.Models.Options(ctx, gateway.ModelOptionsQuery{})
	fmt.Println(errors.Is(err, gateway.ErrUnavailable), err)
	// Output:
	// llama
	// true gateway: this gateway does not offer the operation model_options
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
		fmt.Println("ask whether the gateway was replaced")
	case errors.Is(err, gateway.ErrNoRoute):
		fmt.Println("show why, and try again later:", err)
	}
	// Output: ask for the key
}

// A stored profile of an early version is migrated once.
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
	// gateway: profile: remote must begin with https://, or plain http must be allowed for private networks
}

// Only Reveal returns the value of a secret.
func ExampleSecret() {
	token := gateway.NewSecret("api-server-key")
	fmt.Println(token, len(token.Reveal()))
	// Output: [redacted] 14
}

// Export the credentials as one secret to store. They are of no use for another account.
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
