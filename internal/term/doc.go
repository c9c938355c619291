// Package term is the terminal chat behind `hermes-mobile chat`: a full-screen program ([Run] with a terminal) and a line
// mode for scripts (Options.Plain, or when input or output is no terminal).
//
// Rules of the output:
//
//   - Whatever came from outside (texts, names, commands, errors) goes through clean before it is laid out, and what the
//     references of markdown stand for goes through it again: no control character of a message reaches the terminal.
//   - The connection line is always there and says what is true now, and what the person can do about it.
//   - Standard output carries the chat and nothing else.
//
// The full screen is one bubbletea model. A goroutine takes events off the device and hands each to the model; the event
// counts as handled, and may be forgotten by the server, when the model has it on the screen (files: on the disk).
package term
