package frame

import "unicode"

// charClass tells how a character shows. The tables are those of the Go release's Unicode version.
// testdata/visible/table.json holds the same for other languages.
type charClass int

const (
	plainClass      charClass = iota
	hiddenClass               // never shows as itself: invisible, steers the text around it, or has no fixed shape
	unassignedClass           // has no shape yet, or one that this table does not know
	blankClass                // looks like a space but is not one
	combiningClass            // combines with the preceding character
	joinerClass               // U+200C and U+200D
	selectorClass             // selects a variation of the preceding character
	rtlClass                  // written from right to left
	jamoClass                 // a vowel or final of Hangul, part of the preceding syllable
)

const (
	textSelector    = 0xfe0e
	emojiSelector   = 0xfe0f
	enclosingKeycap = 0x20e3
)

// bound is the first and the last character of a range.
type bound [2]rune

// rtlBlocks are the blocks with right-to-left characters and the digits of such scripts.
var rtlBlocks = []bound{{0x0590, 0x08ff}, {0xfb1d, 0xfdff}, {0xfe70, 0xfeff}, {0x10800, 0x10fff}, {0x1e800, 0x1efff}}

// pictographs are the ranges with emoji. A joiner or variation selector between or after them
// belongs to them.
var pictographs = []bound{{0xa9, 0xa9}, {0xae, 0xae}, {0x203c, 0x203c}, {0x2049, 0x2049}, {0x2122, 0x2122}, {0x2139, 0x2139}, {0x2194, 0x21aa},
	{0x231a, 0x23ff}, {0x24c2, 0x24c2}, {0x25aa, 0x25fe}, {0x2600, 0x27bf}, {0x2934, 0x2935}, {0x2b05, 0x2b55}, {0x3030, 0x3030}, {0x303d, 0x303d},
	{0x3297, 0x3297}, {0x3299, 0x3299}, {0x1f000, 0x1faff}}

// scripts are those that need joiners: Arabic and its relatives, the scripts of India and
// South-East Asia, and Mongolian.
var scripts = []bound{{0x0600, 0x08ff}, {0x0900, 0x0dff}, {0x0f00, 0x109f}, {0x1780, 0x17ff}, {0x1820, 0x18aa}, {0x1a20, 0x1aaf}, {0x1b00, 0x1bff},
	{0xa8e0, 0xa8ff}, {0xa980, 0xa9ff}, {0xfb50, 0xfdcf}, {0xfe70, 0xfefc}, {0x10d00, 0x10d3f}, {0x11000, 0x11fff}}

// ideographs have their own variations.
var ideographs = []bound{{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xf900, 0xfaff}, {0x20000, 0x323af}}

// hangul are the Hangul syllables and their parts.
var hangul = []bound{{0x1100, 0x11ff}, {0xa960, 0xa97f}, {0xac00, 0xd7ff}}

func in(list []bound, r rune) bool {
	for _, b := range list {
		if r >= b[0] && r <= b[1] {
			return true
		}
	}
	return false
}

func keycap(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

func alphanumeric(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// classOf returns the class of a character. The characters of most texts need no table: ASCII, the
// letters of Latin, Greek and Cyrillic, Chinese and Korean.
func classOf(r rune) charClass {
	switch {
	case r >= ' ' && r <= '~', r == '\n', r == '\t', r > 0xad && r < 0x300, r >= 0x391 && r <= 0x3a1, r >= 0x3a3 && r <= 0x482, r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3:
		return plainClass
	}
	return lookUp(r)
}

func lookUp(r rune) charClass {
	switch {
	case r == '\n', r == '\t', r == ' ':
		return plainClass
	case r == 0x200c, r == 0x200d:
		return joinerClass
	case r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0100 && r <= 0xe01ef:
		return selectorClass
	case hidden(r):
		return hiddenClass
	case r == 0x2800, unicode.Is(unicode.Zs, r): // the empty pattern of Braille
		return blankClass
	case unicode.In(r, unicode.Mn, unicode.Me):
		return combiningClass
	case unicode.Is(unicode.Cn, r):
		return unassignedClass
	case r >= 0x1160 && r <= 0x11ff, r >= 0xd7b0 && r <= 0xd7fb:
		return jamoClass
	case in(rtlBlocks, r):
		return rtlClass
	}
	return plainClass
}

// hidden reports whether a character never shows as itself: controls, direction marks, zero-width
// characters, tags, line and paragraph separators, fillers, private use, and noncharacters. U+FFFC
// and U+FFFD replace something lost, and U+1D159 is a note without a head.
func hidden(r rune) bool {
	switch r {
	case 0xfffc, 0xfffd, 0x1d159:
		return true
	}
	if unicode.Is(unicode.Prepended_Concatenation_Mark, r) { // a format character in name only
		return false
	}
	return r < 0 || r > unicode.MaxRune || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
}
