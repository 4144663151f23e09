package value

import (
	"strings"
	"unicode/utf8"
)

// A Pattern is a pattern of LIKE and PATINDEX: % for any text, _ for one character, [abc], [a-z] and [^a] for one of a class.
type Pattern struct {
	items  []patternItem
	byCase bool
}

// ByCase gives the pattern of a collation for which case counts, or does not.
func (p Pattern) ByCase(byCase bool) Pattern {
	p.byCase = byCase
	return p
}

type patternItem struct {
	kind   byte // '%', '_', '[' or 'c' for a character itself
	letter rune
	ranges [][2]rune
	isNot  bool
}

// CompilePattern reads a pattern. The character behind escape stands for itself; escape is 0 where there is none.
func CompilePattern(text string, escape rune) Pattern {
	var p Pattern
	for text != "" {
		r, size := decode(text)
		text = text[size:]
		switch {
		case escape != 0 && r == escape && text != "":
			r, size = decode(text)
			text = text[size:]
			p.items = append(p.items, patternItem{kind: 'c', letter: r})
		case r == '%' || r == '_':
			p.items = append(p.items, patternItem{kind: byte(r)})
		case r == '[':
			item, rest := class(text, escape)
			text = rest
			p.items = append(p.items, item)
		default:
			p.items = append(p.items, patternItem{kind: 'c', letter: r})
		}
	}
	return p
}

// class reads a class behind its bracket; one that is not closed matches nothing.
func class(text string, escape rune) (item patternItem, rest string) {
	item.kind = '['
	if after, found := strings.CutPrefix(text, "^"); found {
		item.isNot, text = true, after
	}
	next := func() (r rune, isEscaped bool) {
		r, size := decode(text)
		text = text[size:]
		if escape != 0 && r == escape && text != "" {
			r, size = decode(text)
			text = text[size:]
			return r, true
		}
		return r, false
	}
	for isFirst := true; text != ""; isFirst = false {
		from, isEscaped := next()
		if from == ']' && !isEscaped && !isFirst {
			return item, text
		}
		if from == ']' && !isEscaped { // nothing is in the class
			return item, text
		}
		to := from
		if strings.HasPrefix(text, "-") && len(text) > 1 && text[1] != ']' {
			text = text[1:]
			to, _ = next()
		}
		item.ranges = append(item.ranges, [2]rune{from, to})
	}
	return patternItem{kind: '['}, ""
}

func (i patternItem) matches(r rune, byCase bool) bool {
	switch {
	case i.kind == '_':
		return true
	case i.kind == 'c' && byCase:
		return i.letter == r
	case i.kind == 'c':
		return EqualLetters(i.letter, r)
	case byCase:
		for _, rg := range i.ranges {
			if rg[0] <= r && r <= rg[1] {
				return !i.isNot
			}
		}
		return i.isNot
	}
	for _, rg := range i.ranges {
		if rg[0] == rg[1] && EqualLetters(rg[0], r) ||
			rg[0] != rg[1] && CompareLetters(rg[0], r) <= 0 && CompareLetters(r, rg[1]) <= 0 {
			return !i.isNot
		}
	}
	return i.isNot
}

// Matches reports whether the whole text matches. Blanks at the end of the text may be left over, those of the pattern may not.
func (p Pattern) Matches(text string) bool {
	letters := lettersOf(text)
	if p.match(p.items, letters) {
		return true
	}
	for len(letters) > 0 && letters[len(letters)-1] == ' ' {
		letters = letters[:len(letters)-1]
		if p.match(p.items, letters) {
			return true
		}
	}
	return false
}

// Index gives the place of the first match in UTF-16 units from 1, as PATINDEX does; 0 where nothing matches.
func (p Pattern) Index(text string) int {
	items := p.items
	isOpen := len(items) > 0 && items[0].kind == '%'
	for len(items) > 0 && items[0].kind == '%' {
		items = items[1:]
	}
	letters := lettersOf(text)
	units := 1
	for from := 0; ; from++ {
		if p.match(items, letters[from:]) {
			return units
		}
		if !isOpen || from >= len(letters) {
			return 0
		}
		units++
		if letters[from] > 0xFFFF {
			units++
		}
	}
}

func lettersOf(text string) []rune {
	letters := make([]rune, 0, len(text))
	for i := 0; i < len(text); {
		if text[i] < utf8.RuneSelf {
			letters = append(letters, rune(text[i]))
			i++
			continue
		}
		r, size := decode(text[i:])
		letters = append(letters, r)
		i += size
	}
	return letters
}

// match matches with one step back to the last %, so that its time grows with the product of both lengths at most.
func (p Pattern) match(items []patternItem, letters []rune) bool {
	i, at := 0, 0
	star, mark := -1, 0
	for at < len(letters) {
		switch {
		case i < len(items) && items[i].kind == '%':
			star, mark = i, at
			i++
		case i < len(items) && items[i].matches(letters[at], p.byCase):
			i++
			at++
		case star >= 0:
			mark++
			i, at = star+1, mark
		default:
			return false
		}
	}
	for i < len(items) && items[i].kind == '%' {
		i++
	}
	return i == len(items)
}
