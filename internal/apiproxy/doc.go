// Package apiproxy serves the API of a Hermes on this machine to users who log in. Hermes' API server knows one key and no
// people; here each user has a name and a password, and sees the sessions, runs, responses and jobs that are the user's own.
//
// It speaks to its clients as Hermes' own dashboard does at login, by cookies, and as the API server does from then on. The
// key of the API server is added here and never leaves this machine.
package apiproxy
