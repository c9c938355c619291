package main

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// tokenLife is the value of --expires: a duration such as 12h, or a number of days such as 30d. The zero
// value means that the token never expires.
type tokenLife struct {
	of   time.Duration
	text string
}

// Bounds of --expires.
const (
	shortestLife = time.Second
	longestLife  = 10 * 365 * 24 * time.Hour
)

var errLife = errors.New("use a duration such as 12h or 30d, from 1 second to 10 years, or never")

// Set implements pflag.Value.
func (l *tokenLife) Set(text string) error {
	if text == "never" {
		*l = tokenLife{text: text}
		return nil
	}
	var of time.Duration
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > int(longestLife/(24*time.Hour)) {
			return errLife
		}
		of = time.Duration(n) * 24 * time.Hour
	} else {
		var err error
		if of, err = time.ParseDuration(text); err != nil {
			return errLife
		}
	}
	if of < shortestLife || of > longestLife {
		return errLife
	}
	*l = tokenLife{of.Truncate(time.Second), text}
	return nil
}

// String implements pflag.Value.
func (l *tokenLife) String() string { return l.text }

// Type implements pflag.Value.
func (l *tokenLife) Type() string { return "duration" }

func (l *tokenLife) seconds() int64 { return int64(l.of / time.Second) }
