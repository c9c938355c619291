// Package traps plays the gateways and phones that break the contract, or keep it only just, against the built server, and
// holds the list of all known traps with the tests that prove what is right in each (traps_test.go).
package traps
