// Package connect is the first-run setup of the direct client, and the keeping of what it found out. The setup is one state machine,
// [Machine], with two faces: the page and the terminal. Each sends it an [Action] and shows the [State] that comes back, which never
// holds a secret. It ends only where the compatibility test has passed.
package connect
