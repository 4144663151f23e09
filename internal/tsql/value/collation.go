package value

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Collation is the one collation of values: case does not count, accents do; blanks at the end do not count. Marks stand before
// digits and digits before letters, as in the server's default collation of the code page 1252.
const Collation = "SQL_Latin1_General_CP1_CI_AS"

// CompareText gives -1, 0 or 1 for two texts by the collation.
func CompareText(a, b string) int {
	a, b = strings.TrimRight(a, " "), strings.TrimRight(b, " ")
	if a == b {
		return 0
	}
	accents := 0
	for a != "" && b != "" {
		first, second := nextLetter(a), nextLetter(b)
		if first.weight != second.weight {
			return sign(first.weight - second.weight)
		}
		if accents == 0 {
			accents = sign(first.accent - second.accent)
		}
		a, b = a[first.size:], b[second.size:]
	}
	switch {
	case a != "":
		return againstBlank(a)
	case b != "":
		return -againstBlank(b)
	}
	return accents
}

// againstBlank compares what is left of a text with the blanks that the shorter one is thought to end in.
func againstBlank(rest string) int {
	for rest != "" {
		letter := nextLetter(rest)
		if blank := weightOf(' '); letter.weight != blank {
			return sign(letter.weight - blank)
		}
		rest = rest[letter.size:]
	}
	return 0
}

// EqualText reports whether two texts are equal by the collation.
func EqualText(a, b string) bool { return CompareText(a, b) == 0 }

// EqualLetters reports whether two characters are equal by the collation.
func EqualLetters(a, b rune) bool {
	if a == b {
		return true
	}
	return foldLetter(a) == foldLetter(b)
}

// CompareLetters gives -1, 0 or 1 for two characters, as a range of LIKE compares them.
func CompareLetters(a, b rune) int {
	first, second := letterOf(a), letterOf(b)
	if first.weight != second.weight {
		return sign(first.weight - second.weight)
	}
	return sign(first.accent - second.accent)
}

func foldLetter(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

// A letter is the next character of a text, as the collation weighs it.
type letter struct {
	size   int
	weight int // of the base letter
	accent int
}

func nextLetter(text string) letter {
	if text[0] < utf8.RuneSelf {
		return letter{size: 1, weight: weightOf(rune(text[0]))}
	}
	r, size := decode(text)
	found := letterOf(r)
	found.size = size
	return found
}

func letterOf(r rune) letter {
	if r < utf8.RuneSelf {
		return letter{weight: weightOf(r)}
	}
	decomposed := []rune(norm.NFD.String(string(foldLetter(r))))
	base := decomposed[0]
	accent := 0
	for _, mark := range decomposed[1:] {
		accent = accent<<8 | int(mark-0x2FF)
	}
	return letter{weight: weightOf(base), accent: accent}
}

// weightOf gives the place of a character: marks, then digits, then letters.
func weightOf(r rune) int {
	switch {
	case r >= '0' && r <= '9':
		return 1<<24 + int(r)
	case r >= 'A' && r <= 'Z':
		return 2<<24 + int(r|0x20)
	case r >= 'a' && r <= 'z':
		return 2<<24 + int(r)
	case r < utf8.RuneSelf:
		return int(r)
	case unicode.IsLetter(r):
		return 2<<24 + int(foldLetter(r))
	case unicode.IsDigit(r):
		return 1<<24 + int(r)
	}
	return int(r)
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
