// Package doctor finds issues of a server, its Hermes, and the connections to phones, and says how to fix
// them.
//
// `hermes-mobile doctor`, `hermes-mobile status`, and /readyz share one list of issues. Probes collect
// [Facts] and judge nothing. [Check] turns facts into issues and probes nothing. [Shorten] hides issues
// caused by another issue. The table in codes.go lists all issues, and doc/troubleshooting.md is generated
// from it.
package doctor
