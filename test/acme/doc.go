// Package acme tests the built server with a real ACME server, Pebble, which is run on this machine: the server gets its
// certificate from it by answering its challenges, renews it, and keeps it over a restart.
package acme
