// Package doctor names what is wrong with a server, its Hermes and the way between them and the phones, and what to do.
//
// There is one list of findings, for `hermes-mobile doctor`, `hermes-mobile status` and /readyz. Collectors gather facts and
// judge nothing; Examine turns facts into findings and looks at nothing; Shorten takes out what only follows from another
// finding. The table of all findings (codes.go) is also what doc/troubleshooting.md is made from.
package doctor
