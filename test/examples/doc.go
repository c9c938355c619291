// Package examples keeps the documents true. Its tests start the built server with the demo agent, play a client that
// sends and gets one frame of every type, and compare what they saw with the examples in doc/protocol.md; they also
// compare the tables of settings, metrics and audit actions with the code.
//
// After a change that is meant, write the documents anew with
//
//	go test ./test/examples -update
//
// and read the difference before it is committed.
package examples
