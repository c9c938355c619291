// Package gateway is a client of the HTTP API of a Hermes Agent gateway: sessions, turns with
// streamed replies, approvals, scheduled jobs and models.
//
// # Getting started
//
// Describe the gateway with a [Profile], add [Credentials], and start a turn:
//
//	client, err := gateway.New(
//		gateway.Profile{Remote: "https://hermes.example.org", Auth: gateway.AuthBearer},
//		gateway.Credentials{Token: gateway.NewSecret(key)},
//		gateway.Options{},
//	)
//	if err != nil {
//		return err
//	}
//	defer client.Close()
//
//	session, err := client.Sessions.Create(ctx, gateway.SessionParams{Title: "Shopping"})
//	if err != nil {
//		return err
//	}
//	turn, err := client.StartTurn(ctx, gateway.TurnRequest{SessionID: session.ID, Text: "Hello!"})
//	if err != nil {
//		return err
//	}
//	defer turn.Close()
//	for event, err := range turn.Events(ctx) {
//		if err != nil {
//			return err
//		}
//		switch e := event.(type) {
//		case gateway.Delta:
//			fmt.Print(e.Text)
//		case gateway.ApprovalRequested:
//			err = turn.Answer(ctx, gateway.ApprovalAnswer{RequestID: e.Approval.ID, Choice: "deny"})
//		case gateway.Ended:
//			fmt.Println(e.Outcome.State)
//		}
//	}
//
// # The client
//
// The calls of the API are grouped into services: [Client.Sessions], [Client.Jobs], [Client.Models]
// and [Client.Tools]. Turns start with [Client.StartTurn], and [Client.ResumeTurn] continues them
// after a restart of the program.
//
// A profile can have two addresses of the same gateway. The client uses the Local one while it
// answers as this gateway, and the Remote one otherwise. A turn keeps the route that it started on.
// Credentials are sent to the gateway of the profile only.
//
// The client calls only what the gateway advertises in GET /v1/capabilities. Everything else
// returns [ErrUnavailable]. With [OpenAI] as the kind of the profile, turns without sessions work
// with every server that has OpenAI's HTTP API.
//
// All methods may be called concurrently unless their documentation says otherwise. Nothing is
// logged unless [Options.Log] is set. No log line and no error contains an address of the profile,
// a token or the text of a message.
//
// # Errors
//
// Test for the errors of this package with [errors.Is]: [ErrUnavailable], [ErrSignIn], [ErrNoRoute],
// [ErrUnreachable], [ErrIdentity], [ErrTooLarge], [ErrStreamBroken], [ErrApprovalClosed],
// [ErrLoading] and [ErrClosed]. Get details with [errors.As]: an [*Error] is a refusal by the
// gateway, a [*NoRouteError] names a reason for each address, an [*UnavailableError] the operation,
// and a [*ProfileError] the field.
//
// # Compatibility
//
// Until version 1.0 the API can change in any release; the changelog names each change. From 1.0 on
// the package follows semantic versioning. These parts are then stable: the exported identifiers,
// the errors listed above, and the stored forms, that is the JSON of [Profile] and [TurnHandle] and
// the result of [Credentials.Export], which later versions will always read. These parts can change:
// the texts of errors, log lines and diagnostics, and the events and fields that newer gateways add.
// So a switch over events must ignore the types it does not know, and composite literals must name
// their fields.
//
// The package imports the standard library and internal packages of this module that do so too. It
// is tested with recordings of Hermes 0.19 and 0.22, whose measured behavior doc/hermes/api.md
// describes. Comments cite that page by its sections.
package gateway
