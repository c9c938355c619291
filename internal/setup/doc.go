// Package setup connects the Hermes of this machine to the server: it finds the Hermes home and version, works out the few
// keys that Hermes' config.yaml and .env need, shows them, writes them, and takes them back.
//
// The files belong to somebody else, so nothing is ever written out anew from a parsed form. An edit is made in the text, at
// a place that the parsed form names; the outcome is parsed again and must say the same as before, apart from the keys that
// were to be set. Where no edit stands that test, the owner is told what to write by hand.
//
// The package asks nothing and prints nothing: hermes-mobile setup does.
package setup
