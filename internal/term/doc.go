// Package term implements the terminal chat of `hermes-mobile chat`: a full-screen program ([Run]
// with a terminal), and a line mode for scripts (Options.Plain, or when input or output is not a
// terminal).
//
// Rules of the output:
//
//   - Everything from outside (texts, names, commands, errors) goes through clean before its layout, and
//     the characters behind Markdown references go through it again. No control character of a message
//     reaches the terminal.
//   - The connection line is always there. It tells the current state and what the user can do about it.
//   - Standard output carries only the chat.
//
// The full screen is one bubbletea model. A goroutine passes the events of the device to the model.
// An event counts as handled, and the server may forget it, once it is on the screen, or a file on
// the disk.
package term
