// Package shellquote writes words for a POSIX shell, for the commands that the program prints.
package shellquote

import "strings"

// plain are the characters that no shell treats specially. A tilde is not among them: a shell expands it.
const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-+:@%,"

// Word returns s as one word of a shell command: unchanged if it holds plain characters only, otherwise
// in single quotes.
func Word(s string) string {
	if s != "" && strings.Trim(s, plain) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
