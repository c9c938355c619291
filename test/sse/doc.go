// Package sse compares the reader of server-sent events with one that is not ours: the package eventsource-parser for Node
// reads the same streams, cut at random.
package sse
