// Package push tests notifications of the built server with an implementation of the standards that is not ours: http_ece
// opens what the server has encrypted (RFC 8188, 8291), and Node's crypto checks who signed it (RFC 8292).
package push
