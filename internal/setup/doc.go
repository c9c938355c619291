// Package setup connects the Hermes on this machine to the server. It finds the Hermes home and version,
// plans the few keys that Hermes' config.yaml and .env need, shows them, writes them, and reverts them.
//
// The files belong to Hermes and its owner, so setup never rewrites them from a parsed form. It edits the
// text at a place that the parsed form gives. Then it parses the result again, which must equal the original
// except for the wanted keys. If no edit passes that test, the owner gets the keys to write by hand.
//
// The package asks nothing and prints nothing: the command hermes-mobile setup does.
package setup
