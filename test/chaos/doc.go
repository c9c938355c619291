// Package chaos proves that nothing is lost and nothing is doubled whatever breaks (doc/protocol.md §3, §4, §5, §7, §8;
// doc/reliability.md). The built server runs as a process; devices on the SDK and a scripted gateway put it under load; at
// random moments something breaks. When all is quiet again a checker compares what the devices sent and saw with what the
// gateway saw and did.
//
// TestKill and its like break one thing, at moments that are drawn so that they hit each kind of work. TestChaos breaks
// everything: the network of each phone, phones, the agent's links, the server, its disk, clocks. CHAOS_OPS or CHAOS_TIME make
// it as long as wanted (scripts/chaos.sh).
//
// The server is built with its clock and its disk in the harness's hands (build_test.go, package seam). Phones are in this
// process, where most of them are, or programs of their own (package phone), which say what they see in lines of package
// handset.
//
//	go test -race ./test/chaos -run TestChaos -seed 42
//
// repeats the plan of a run, as far as a run can be repeated.
package chaos
