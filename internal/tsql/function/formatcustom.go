package function

import (
	"strings"

	"github.com/cockroachdb/apd/v3"
)

// A picture is a custom format of numbers: what stands before the digits, the digits, and what stands behind them.
type picture struct {
	parts     []picturePart
	whole     int  // 0 and # before the point
	needed    int  // digits before the point that are always there
	fraction  int  // 0 and # behind the point
	kept      int  // digits behind the point that are always there
	isGrouped bool // a comma stands between digits
	thousands int  // commas before the point, each of which divides by 1000
	percents  int  // powers of ten of % and of its relative
}

// A picturePart is a place for a digit, the point, or a text that stays.
type picturePart struct {
	kind byte // 0 or # for a digit, . for the point, t for a text
	text string
}

// formatCustom writes a number by a picture; sections for positive, negative and zero stand between semicolons.
func formatCustom(d *apd.Decimal, pattern string) (string, bool) {
	sections, ok := sectionsOf(pattern)
	if !ok {
		return "", false
	}
	chosen, isNegative := sections[0], d.Negative && !d.IsZero()
	switch {
	case len(sections) > 2 && d.IsZero():
		chosen, isNegative = sections[2], false
	case len(sections) > 1 && isNegative && sections[1] != "":
		chosen, isNegative = sections[1], false
	}
	p, ok := pictureOf(chosen)
	if !ok {
		return "", false
	}
	positive := new(apd.Decimal).Abs(d)
	positive.Exponent += int32(p.percents - 3*p.thousands)
	whole, fraction, _ := digitsOf(positive, p.fraction)
	isZero := strings.Trim(whole+fraction, "0") == ""
	text := p.fill(strings.TrimLeft(whole, "0"), fraction)
	if isNegative && !isZero {
		text = "-" + text
	}
	return text, true
}

// sectionsOf cuts a pattern at the semicolons that are not quoted.
func sectionsOf(pattern string) (sections []string, ok bool) {
	from := 0
	var quote byte
	for at := 0; at < len(pattern); at++ {
		switch c := pattern[at]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\\':
			at++
		case c == '\'' || c == '"':
			quote = c
		case c == ';':
			sections = append(sections, pattern[from:at])
			from = at + 1
		}
	}
	return append(sections, pattern[from:]), quote == 0
}

// pictureOf reads a section.
func pictureOf(section string) (p picture, ok bool) {
	hasPoint := false
	commas := 0
	text := func(s string) { p.parts = append(p.parts, picturePart{kind: 't', text: s}) }
	for at := 0; at < len(section); at++ {
		switch c := section[at]; c {
		case '0', '#':
			p.parts = append(p.parts, picturePart{kind: c})
			if hasPoint {
				p.placeBehind(c)
				continue
			}
			p.isGrouped = p.isGrouped || commas > 0 && p.whole > 0
			commas = 0
			p.whole++
			if c == '0' || p.needed > 0 {
				p.needed++
			}
		case '.':
			if !hasPoint {
				hasPoint, p.thousands, commas = true, commas, 0
				p.parts = append(p.parts, picturePart{kind: '.'})
			}
		case ',':
			if !hasPoint {
				commas++
			}
		case '%':
			p.percents += 2
			text("%")
		case '\\':
			if at+1 >= len(section) {
				return p, false
			}
			at++
			text(section[at : at+1])
		case '\'', '"':
			end := strings.IndexByte(section[at+1:], c)
			if end < 0 {
				return p, false
			}
			text(section[at+1 : at+1+end])
			at += end + 1
		case 'E', 'e':
			if rest := strings.TrimLeft(section[at+1:], "+-"); strings.HasPrefix(rest, "0") {
				return p, false // powers of ten are not written by a picture
			}
			text(string(c))
		default:
			text(string(c))
		}
	}
	if !hasPoint {
		p.thousands = commas
	}
	return p, true
}

// placeBehind adds a place behind the point.
func (p *picture) placeBehind(kind byte) {
	p.fraction++
	if kind == '0' {
		p.kept = p.fraction
	}
}

// fill puts digits into the picture: all that there are before the first place, as many as there are places behind the point.
func (p picture) fill(whole, fraction string) string {
	if len(whole) < p.needed {
		whole = strings.Repeat("0", p.needed-len(whole)) + whole
	}
	for len(fraction) > p.kept && strings.HasSuffix(fraction, "0") {
		fraction = fraction[:len(fraction)-1]
	}
	var b strings.Builder
	place, behind := 0, 0
	isBehind := false
	for _, part := range p.parts {
		switch part.kind {
		case 't':
			b.WriteString(part.text)
		case '.':
			isBehind = true
			if fraction != "" {
				b.WriteByte('.')
			}
		default:
			if isBehind {
				if behind < len(fraction) {
					b.WriteByte(fraction[behind])
				}
				behind++
				continue
			}
			// The first place takes all digits for which there are no others.
			from, to := len(whole)-p.whole+place, len(whole)-p.whole+place+1
			if place == 0 {
				from = 0
			}
			place++
			for at := max(from, 0); at < to; at++ {
				b.WriteByte(whole[at])
				if left := len(whole) - at - 1; p.isGrouped && left > 0 && left%3 == 0 {
					b.WriteByte(',')
				}
			}
		}
	}
	return b.String()
}
