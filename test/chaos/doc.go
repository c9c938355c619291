// Package crash proves that nothing is lost and nothing is doubled when the server is killed, stopped, or loses its gateway
// (doc/protocol.md §3, §4, §5, §7, §8). The built server runs as a process; devices on the SDK and a scripted gateway put it
// under load; at random moments, drawn so that they hit each kind of work, something breaks. When all is quiet again a
// checker compares what the devices sent and saw with what the gateway saw and did.
//
//	go test -race ./test/chaos -seed 42
//
// repeats the plan of a run, as far as a run can be repeated.
package chaos
