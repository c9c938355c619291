package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"rsc.io/qr"
)

// halfBlocks are the modules that a character draws, upper and lower: true is light, which is what a terminal fills.
var halfBlocks = map[rune][2]bool{'█': {true, true}, '▀': {true, false}, '▄': {false, true}, ' ': {false, false}}

// readQR reads a drawn QR code back and compares it, with its quiet zone, with the code of a text.
func readQR(drawn, text string) error {
	var rows [][]bool // light
	for line := range strings.Lines(drawn) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.ContainsAny(line, "█▀▄") {
			if len(rows) == 0 {
				continue // a text above
			}
			break // the text below
		}
		var upper, lower []bool
		for _, r := range line {
			m, ok := halfBlocks[r]
			if !ok {
				return fmt.Errorf("%q is no module", r)
			}
			upper, lower = append(upper, m[0]), append(lower, m[1])
		}
		rows = append(rows, upper, lower)
	}
	want, err := qr.Encode(text, qr.L)
	if err != nil {
		return err
	}
	// All around it there must be light modules, two at least.
	const quiet = 2
	side := want.Size + 2*quiet
	if len(rows) < side {
		return fmt.Errorf("%d rows, want %d", len(rows), side)
	}
	for y, row := range rows {
		if len(row) != side {
			return fmt.Errorf("row %d has %d modules, want %d", y, len(row), side)
		}
		if y >= side {
			continue // the lower half of the last line
		}
		for x, light := range row {
			if dark := want.Black(x-quiet, y-quiet); dark == light {
				return fmt.Errorf("module %d,%d is wrong", x, y)
			}
		}
	}
	return finders(rows, quiet, want.Size)
}

// finders checks the three squares by which a camera finds a code, without help of the library that drew it.
func finders(rows [][]bool, quiet, size int) error {
	for _, corner := range [][2]int{{0, 0}, {size - 7, 0}, {0, size - 7}} {
		for y := range 7 {
			for x := range 7 {
				ring := max(max(x, 6-x), max(y, 6-y)) // 6 outside, 3 in the middle
				if light := rows[quiet+corner[1]+y][quiet+corner[0]+x]; light != (ring == 5) {
					return fmt.Errorf("the finder at %v is wrong", corner)
				}
			}
		}
	}
	return nil
}

func cmdQR(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, neg, len(args) != 2, "qr FILE TEXT")
	if err := readQR(ts.ReadFile(args[0]), args[1]); err != nil {
		ts.Fatalf("the QR code cannot be read: %v", err)
	}
}

// Codes of every length a link can have are drawn so that they are read back, and in a terminal dark on light whatever
// its colours are.
func TestQR(t *testing.T) {
	for n := range 60 {
		link := "https://agent.example.com/" + strings.Repeat("x", 5*n) + "#pair=7KQ4-M2XD"
		var plain, coloured strings.Builder
		drawQR(&plain, link, false)
		if err := readQR(plain.String(), link); err != nil {
			t.Fatalf("%s: %v", link, err)
		}
		drawQR(&coloured, link, true)
		for line := range strings.Lines(coloured.String()) {
			if !strings.HasPrefix(line, "\x1b[97;40m") || !strings.HasSuffix(line, "\x1b[0m\n") {
				t.Fatalf("a line leaves the colours to the terminal, or to what follows: %q", line)
			}
		}
		if bare := strings.NewReplacer("\x1b[97;40m", "", "\x1b[0m", "").Replace(coloured.String()); bare != plain.String() {
			t.Fatal("the coloured code is another")
		}
	}
}
