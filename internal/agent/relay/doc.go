// Package relay is the agent behind which stock Hermes gateways stand: it is the connector end of
// their relay connection. A gateway dials out to this server, and no Python of ours runs in it.
// Measured facts about gateways are cited as "doc/hermes/relay.md §n".
//
// # Parts
//
// One [Agent] routes devices to gateways. A gateway is made of parts, and each part owns its fields:
//
//   - wire: the connection, frames in and out
//   - traits: what has been learned about the gateway, such as its version
//   - reports: what the hub is told, and a memory budget for it
//   - answers: the result of each op that the gateway sends
//   - queue: events on their way to the gateway, one in flight, and stalls
//   - rounds: turns of the gateway's event loop, counted by pings
//
// A conversation owns its turns, streams, cards and inputs. They use the parts of the gateway, and
// the parts of the gateway know nothing of them. doc/architecture.md has the diagram.
//
// # Owner of state
//
// One [sequencer] guards all state of one gateway. The reader of the socket, the clock of Run, done
// callbacks of the host and calls of the hub lock it, change the state, and note what others must
// be told. One of them at a time tells that, in order, after unlocking. So no lock is held while
// code of the hub runs, and the hub hears everything about a device in the order in which it
// happened. Frames to the gateway are queued under the lock, which never waits.
//
// # What is inferred, because the wire does not say it
//
//   - Which version the gateway is (§1): version.go.
//   - When a turn is over (§7): turns.go.
//   - When a streamed message is final (§4): streams.go.
//   - Whether a question in plain words is open (§1, clarify): turns.go.
package relay
