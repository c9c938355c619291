// Package gateway is a client of the HTTP API of a Hermes Agent gateway: sessions, turns, approvals, jobs and models, over
// two addresses of one gateway, with credentials that are sent to nobody else.
//
// A [Client] serves one [Profile]. It finds the way by itself: the Local address first where it answers as this gateway
// does, else the Remote one. A turn is bound to the way it began on:
//
//	client, err := gateway.New(profile, gateway.Credentials{Token: gateway.NewSecret(key)}, gateway.Options{})
//	…
//	defer client.Close()
//	session, err := client.CreateSession(ctx, gateway.NewSession{})
//	turn, err := client.StartTurn(ctx, gateway.TurnRequest{SessionID: session.ID, Text: "hello"})
//	for event, err := range turn.Events(ctx) {
//		…
//	}
//
// What a gateway does not advertise (GET /v1/capabilities) is not tried: the call gives [ErrUnavailable]. Against any other
// server that speaks OpenAI's HTTP API turns work without sessions.
//
// All methods may be called concurrently. Errors are typed: [*Error], [*UnavailableError], [*NoRouteError], [ErrSignIn],
// [ErrIdentity], [ErrUnreachable], [ErrCut], [ErrTooBig], [ErrClosed]. Nothing is logged unless [Options.Log] is set, and never an address, a
// token or a text. The package imports the standard library only.
//
// How gateways behave is cited as "api-facts §n" (design/api-facts.md): measured on the API servers of Hermes 0.19.0 and
// 0.22.2.
package gateway
