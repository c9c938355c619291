package term

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

// inline collects the text in a block.
func (p *page) inline(parent ast.Node, l look, out *prose) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			s := string(n.Segment.Value(p.source))
			if !n.IsRaw() {
				s = unescape(s)
			}
			out.add(s, l)
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.add("\n", l)
			}
		case *ast.String:
			out.add(clean(string(n.Value)), l)
		case *ast.CodeSpan:
			p.marked("`", l|code, out, func() { out.add(p.span(n), l|code) })
		case *ast.Emphasis:
			mark, l := "*", l
			if n.Level == 1 {
				l |= italic
			} else {
				mark, l = "**", l|bold
			}
			p.marked(mark, l, out, func() { p.inline(n, l, out) })
		case *extast.Strikethrough:
			p.marked("~~", l|struck, out, func() { p.inline(n, l|struck, out) })
		case *ast.Link:
			p.pointer(n, unescape(string(n.Destination)), l, out)
		case *ast.Image:
			out.add("image: ", l|aside)
			p.pointer(n, unescape(string(n.Destination)), l, out)
		case *ast.AutoLink:
			address := string(n.Label(p.source))
			out.add(address, l|link)
			out.add(behind(address), l|aside)
		case *ast.RawHTML:
			out.add(string(n.Segments.Value(p.source)), l)
		case *extast.TaskCheckBox:
			box := "[ ] "
			if n.IsChecked {
				box = "[✓] "
			}
			out.add(box, l|aside)
		default:
			p.inline(n, l, out)
		}
	}
}

// marked puts Markdown marks around a text without colors.
func (p *page) marked(mark string, l look, out *prose, body func()) {
	if p.paint != unpainted {
		mark = ""
	}
	out.add(mark, l)
	body()
	out.add(mark, l)
}

// pointer shows a link or an image: its text, and its address unless the text is the address.
func (p *page) pointer(n ast.Node, address string, l look, out *prose) {
	from := out.text.Len()
	p.inline(n, l|link, out)
	said := out.text.String()[from:]
	switch {
	case address == "" || said == address || "mailto:"+said == address:
		out.add(behind(address), l|aside)
	case said == "":
		out.add(address, l|link)
	default:
		out.add(" ("+address+")", l|aside)
	}
}

// behind returns the host of an address that begins with the name of another host, as in
// https://bank.example@evil.example.
func behind(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return ""
	}
	return " (" + line(u.Hostname()) + ")"
}

// span shows a code span, which may contain a line end.
func (p *page) span(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.Write(t.Segment.Value(p.source))
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// unescape resolves escapes and references. It cleans the result, because a reference can name a
// control character.
func unescape(s string) string {
	if !strings.ContainsAny(s, `\&`) {
		return s
	}
	var b strings.Builder
	for at := 0; at < len(s); at++ {
		switch s[at] {
		case '\\':
			if at+1 < len(s) && util.IsPunct(s[at+1]) {
				at++
			}
			b.WriteByte(s[at])
		case '&':
			if shown, n := reference(s[at:]); n > 0 {
				b.WriteString(strings.ReplaceAll(clean(shown), "\n", " "))
				at += n - 1
				continue
			}
			b.WriteByte('&')
		default:
			b.WriteByte(s[at])
		}
	}
	return b.String()
}

// longestReference is longer than any name of a character.
const longestReference = 40

// reference returns the character of a `&name;`, `&#10;` or `&#xa;` at the start of a text, and the
// length of the reference.
func reference(s string) (shown string, n int) {
	end := strings.IndexByte(s[:min(len(s), longestReference)], ';')
	if end < 2 {
		return "", 0
	}
	name := s[1:end]
	if name[0] != '#' {
		if entity, ok := util.LookUpHTML5EntityByName(name); ok {
			return string(entity.Characters), end + 1
		}
		return "", 0
	}
	digits, base, most := name[1:], 10, 7
	if digits != "" && (digits[0] == 'x' || digits[0] == 'X') {
		digits, base, most = digits[1:], 16, 6
	}
	point, err := strconv.ParseUint(digits, base, 32)
	if err != nil || len(digits) > most || digits[0] == '+' {
		return "", 0
	}
	if point == 0 {
		point = 0xfffd
	}
	return string(rune(point)), end + 1
}
