// Package connect connects the direct client to a Hermes gateway: the first-run wizard and its storage.
//
// [Machine] is the wizard's state machine. The page and the terminal each send it an [Action] and show the
// [State] that it returns, which never contains a secret. The machine reaches [Done] only when the
// compatibility test has passed. [Run] asks the questions at a terminal, through a [Prompter]: [Screen] for
// an interactive terminal, or [Lines] for plain lines. [Storage] keeps the gateway's profile and its
// credentials.
package connect
