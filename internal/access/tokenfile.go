package access

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"hermes-mobile/internal/plaintext"
)

// ErrUnknownLabel reports that no token of the file has this label.
var ErrUnknownLabel = errors.New("no token with this label")

// LoadFile reads a token file: one `label=token` per line, of kind App, optionally followed by
// `expires=` and a time in RFC 3339. It ignores empty lines and lines that begin with #. A missing
// file has no tokens. Errors give the line number, never its content.
func LoadFile(path string) ([]Token, error) {
	lines, err := tokenLines(path)
	if err != nil {
		return nil, err
	}
	var tokens []Token
	for i, line := range lines {
		label, secret, ok := parseLine(line)
		if !ok {
			continue
		}
		secret, expires, ok := cutExpiry(secret)
		if !ok {
			return nil, fmt.Errorf("token file %s, line %d: only expires=TIME may follow the token, such as expires=2030-01-31T12:00:00Z", path, i+1)
		}
		if !ValidLabel(label) || !validSecret(secret) {
			return nil, fmt.Errorf("token file %s, line %d: expected label=token", path, i+1)
		}
		tokens = append(tokens, Token{Label: label, Secret: secret, Kind: App, Expires: expires})
		if err := CheckTokens(tokens); err != nil {
			return nil, fmt.Errorf("token file %s, line %d: %w", path, i+1, err)
		}
	}
	return tokens, nil
}

// AddToFile creates a token, adds it to the file under the label, and returns it. It creates a
// missing file with mode 0600, replaces the file as a whole, and keeps comments. A duplicate label
// is ErrDuplicate. The token expires at expires, unless that is zero.
func AddToFile(path, label string, expires time.Time) (secret string, err error) {
	if !ValidLabel(label) {
		return "", fmt.Errorf("invalid label: use 1 to %d characters of A-Z a-z 0-9 . _ -", maxLabel)
	}
	err = withTokenFile(path, func(lines []string, tokens []Token) ([]string, error) {
		for _, t := range tokens {
			if t.Label == label {
				return nil, fmt.Errorf("label %s: %w", label, ErrDuplicate)
			}
		}
		secret = NewSecret()
		line := label + "=" + secret
		if !expires.IsZero() {
			line += " " + expiresField + expires.UTC().Format(time.RFC3339)
		}
		return append(lines, line), nil
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// RemoveFromFile removes the token with this label from the file. An unknown label is
// ErrUnknownLabel.
func RemoveFromFile(path, label string) error {
	return withTokenFile(path, func(lines []string, _ []Token) ([]string, error) {
		kept := lines[:0:0]
		for _, line := range lines {
			if l, _, ok := parseLine(line); !ok || l != label {
				kept = append(kept, line)
			}
		}
		if len(kept) == len(lines) {
			return nil, ErrUnknownLabel
		}
		return kept, nil
	})
}

// withTokenFile changes a token file that is valid, while no other process of ours does.
func withTokenFile(path string, change func([]string, []Token) ([]string, error)) error {
	unlock, err := lockFile(path + ".lock")
	if err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	defer unlock()
	tokens, err := LoadFile(path)
	if err != nil {
		return err
	}
	lines, err := tokenLines(path)
	if err != nil {
		return err
	}
	if lines, err = change(lines, tokens); err != nil {
		return err
	}
	text := strings.Join(lines, "\n")
	if text != "" {
		text += "\n"
	}
	if err := replaceFile(path, []byte(text), nil, nil); err != nil {
		return fmt.Errorf("token file: %w", err)
	}
	return nil
}

// tokenLines reads the lines of a token file, without the final line break.
func tokenLines(path string) ([]string, error) {
	data, _, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("token file: %w", err)
	}
	if data, err = plaintext.Trim(data); err != nil {
		return nil, fmt.Errorf("token file %s: %w", path, err)
	}
	data = bytes.TrimRight(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), "\n")
	if len(data) == 0 {
		return nil, nil
	}
	return strings.Split(string(data), "\n"), nil
}

// parseLine parses a line that is neither empty nor a comment.
func parseLine(line string) (label, secret string, ok bool) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return "", "", false
	}
	label, secret, _ = strings.Cut(line, "=")
	return strings.TrimSpace(label), strings.TrimSpace(secret), true
}

const expiresField = "expires="

// cutExpiry splits a token from the time after it.
func cutExpiry(text string) (secret string, expires time.Time, ok bool) {
	secret, rest, found := strings.Cut(text, " ")
	if !found {
		return secret, time.Time{}, true
	}
	value, ok := strings.CutPrefix(strings.TrimSpace(rest), expiresField)
	if !ok {
		return "", time.Time{}, false
	}
	expires, err := time.Parse(time.RFC3339, value)
	return secret, expires, err == nil
}
