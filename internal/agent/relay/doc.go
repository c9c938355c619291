// Package relay is the agent that a stock Hermes gateway is: the other side of
// its relay connection. The gateway dials out to us; no Python of ours runs in
// it. Facts about it are cited as "relay-facts §n" (design/relay-facts.md).
//
// # Owner of state
//
// All state of one gateway (its socket, what waits to be sent, the turns and
// open messages of its devices) belongs to one [gateway] value and its mutex.
// The socket's reader, the clock of Run, done callbacks of the host and calls
// of the hub lock it, change the state, and note what is to be told to others;
// that is told after unlocking, in order, by one of them at a time (see
// gateway.do). So nothing of ours is locked while the hub's code runs, and the
// hub hears everything about a device in the order in which it happened.
// Frames to the gateway are queued under the lock, which never waits.
//
// # What is guessed, because the wire does not say it
//
//   - Which version the gateway is (relay-facts §1): version.go.
//   - When a turn is over (§7): turn.go.
//   - When a streamed message is over (§4): stream.go.
//   - Whether a question in plain words is open (§1 clarify): turn.go.
package relay
