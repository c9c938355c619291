// Package access decides who gets in: tokens, lists of allowed devices and users, pairing on
// Hermes' own files, throttling of guesses, the client's address behind proxies, and the Origin of
// browsers (doc/protocol.md §1, §2 and §8).
//
// It has logic and files only: it opens no socket, logs nothing, and starts no goroutine of its
// own. Every type is safe for concurrent use unless its comment says otherwise. No error contains a
// token, a part of one, or a code, so errors may be logged and printed as they are.
package access
