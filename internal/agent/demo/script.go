package demo

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"hermes-mobile/internal/agent"
)

// Limits of what a line may ask for.
const (
	maxSeconds = 24 * 60 * 60
	maxSteps   = 100_000
	maxLong    = 5_000_000
	maxFile    = 256 << 20
)

// run does what the user's line asks for.
func (t *turn) run() {
	if t.in.File != nil {
		t.received()
		return
	}
	line := t.in.Text
	switch {
	case line == setHome:
		t.agent.post(t.in.Device, agent.Home{})
		t.reply("home: mobile:" + t.in.Device)
	case !t.demo(line):
		text := "You said: " + line
		t.stream(words(text, 4), 50*time.Millisecond, text)
	}
}

// demo runs a `/demo` line, and reports whether the line is one.
func (t *turn) demo(line string) bool {
	rest, ok := strings.CutPrefix(line, "/demo ")
	if !ok {
		return false
	}
	name, argument, _ := strings.Cut(rest, " ")
	at := slices.IndexFunc(script, func(l scripted) bool { return l.name == name })
	if at < 0 {
		return false
	}
	script[at].do(t, argument)
	return true
}

// number calls f with a whole number, or replies what is wrong with it.
func (t *turn) number(s string, least, most int, f func(int)) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		t.reply(fmt.Sprintf("That needs a whole number from %d to %d.", least, most))
		return
	}
	f(n)
}

// counted returns "w1", "w1 w2", … up to n words.
func counted(n int) []string {
	var b strings.Builder
	ends := make([]int, n)
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("w" + strconv.Itoa(i+1))
		ends[i] = b.Len()
	}
	texts := make([]string, n)
	for i, end := range ends {
		texts[i] = b.String()[:end]
	}
	return texts
}

func last(texts []string) string { return texts[len(texts)-1] }

const (
	lineLength = 79
	family     = "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466"
	flag       = "\U0001F1E9\U0001F1EA"
)

// long returns exactly n code points, in lines of 79 and a newline. The last line may be cut between
// clusters and filled with dots.
func long(n int) string {
	var b strings.Builder
	for i := 1; n > 0; i++ {
		prefix := strconv.Itoa(i) + " "
		if i%10 == 0 {
			prefix += family + " " + flag + " "
		}
		length := min(n, lineLength)
		b.WriteString(fill(prefix, length))
		if n -= length; n > 0 {
			b.WriteByte('\n')
			n--
		}
	}
	return b.String()
}

// fill returns a line of n code points that begins with prefix.
func fill(prefix string, n int) string {
	runes := []rune(prefix)
	if len(runes) > n { // cut between clusters: before the family, or before the flag
		cut := n
		for cut > 0 && runes[cut-1] != ' ' && !('0' <= runes[cut-1] && runes[cut-1] <= '9') {
			cut--
		}
		return string(runes[:cut]) + strings.Repeat(".", n-cut)
	}
	const text = "the quick brown fox jumps over the lazy dog and rests in the shade of an old tree "
	return prefix + strings.Repeat(text, 2)[:n-len(runes)]
}

func (t *turn) slow(n int) {
	if !pause(t.ctx, time.Duration(n)*time.Second) {
		if t.stopped.Load() {
			t.interrupted()
		}
		return
	}
	t.reply(fmt.Sprintf("done after %d s", n))
}

func (t *turn) later(n int, text string) {
	t.reply(fmt.Sprintf("in %d s", n))
	a, device := t.agent, t.in.Device
	a.after(time.Duration(n)*time.Second, func() {
		a.post(device, agent.Say{ID: agent.NewID(), Text: text, Final: true})
	})
}

func (t *turn) tool() {
	step := agent.ToolStep{ID: agent.NewID(), Name: "terminal", Title: "make", N: t.in.N}
	for _, s := range []struct{ state, text string }{{"started", ""}, {"progress", "compiling"}, {"done", "finished"}} {
		step.State, step.Text = s.state, s.text
		t.agent.post(t.in.Device, step)
		if !pause(t.ctx, 50*time.Millisecond) {
			if t.stopped.Load() {
				t.interrupted()
			}
			return
		}
	}
	t.reply("tool: done")
}

// received replies with the kind, name, size and hash of the user's file.
func (t *turn) received() {
	f := t.in.File
	kind := f.Kind
	if t.in.Kind == agent.Voice {
		kind = "audio"
	}
	r, err := t.agent.files.Open(f.Hash)
	if err != nil {
		t.reply("The file could not be read: " + err.Error())
		return
	}
	defer r.Close()
	sum := sha256.New()
	size, err := io.Copy(sum, r)
	if err != nil {
		t.reply("The file could not be read: " + err.Error())
		return
	}
	text := fmt.Sprintf("received %s %s %d sha256:%s", kind, f.Name, size, hex.EncodeToString(sum.Sum(nil)))
	if t.in.Text != "" {
		text += " text:" + t.in.Text
	}
	t.reply(text)
}
