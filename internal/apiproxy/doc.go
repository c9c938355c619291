// Package apiproxy serves the API of the Hermes on this machine to users who log in. Hermes' API
// server has one key and no users. Here each user has a name and a password, and sees only their
// own sessions, runs, responses and jobs.
//
// The login works like that of Hermes' dashboard, with cookies. Everything else is the API server's
// own protocol. The proxy adds the key of the API server, which never leaves this machine.
package apiproxy
