// Package hostile attacks the built server as strangers and as phones that went bad: each test looks that the server's memory stays bounded
// and that a paired phone does not notice.
package hostile
