// Package readers asks the readers of the real Hermes what they make of its files, and compares that with what is written down
// in testdata for the tests of our own readers. With -update it writes that down.
package readers
