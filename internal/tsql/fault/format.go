package fault

import (
	"fmt"
	"strconv"
	"strings"
)

// Format fills a text as FORMATMESSAGE and RAISERROR do: %s, %d, %i, %u, %o, %x, %X with flags, width, precision and the
// sizes h, l and I64; %ls and %.*ls as system messages have them. An argument that is missing or nil prints (null).
func Format(text string, arguments ...any) string {
	if !strings.Contains(text, "%") {
		return text
	}
	var b strings.Builder
	next := func() any {
		if len(arguments) == 0 {
			return nil
		}
		a := arguments[0]
		arguments = arguments[1:]
		return a
	}
	for text != "" {
		before, after, found := strings.Cut(text, "%")
		b.WriteString(before)
		if !found {
			break
		}
		spec, rest, ok := directive(after)
		text = rest
		switch {
		case !ok:
			b.WriteByte('%')
		case spec.verb == '%':
			b.WriteByte('%')
		default:
			b.WriteString(spec.print(next))
		}
	}
	return b.String()
}

// BadDirective gives the part of a text of the user from a percent sign on that begins no directive; empty where there is none.
func BadDirective(text string) string {
	for {
		_, after, found := strings.Cut(text, "%")
		if !found {
			return ""
		}
		spec, rest, ok := directive(after)
		if !ok || spec.verb == 'S' || spec.verb == 'f' {
			return "%" + after
		}
		text = rest
	}
}

// BadSubstitute gives the place, from 1 on, of the argument that is not of the type which its directive in a text of the user asks for: a
// number where a text is asked for, or a text where a number is. 0 where all are; nil is of each type.
func BadSubstitute(text string, arguments ...any) int {
	place := 0
	isWrong := func(wantsText bool) bool {
		place++
		if place > len(arguments) || arguments[place-1] == nil {
			return false
		}
		_, isText := arguments[place-1].(string)
		return isText != wantsText
	}
	for {
		_, after, found := strings.Cut(text, "%")
		if !found {
			return 0
		}
		s, rest, ok := directive(after)
		if !ok {
			return 0
		}
		text = rest
		if s.verb == '%' {
			continue
		}
		if s.width == "*" && isWrong(false) || s.precision == "*" && isWrong(false) || isWrong(s.verb == 's') {
			return place
		}
	}
}

// A spec is one directive of a text.
type spec struct {
	flags            string
	width, precision string // digits, * for an argument, or nothing
	isLong           bool   // the size l, with which system messages write %.*ls without a length
	verb             byte
}

// directive reads a directive behind its percent sign.
func directive(text string) (spec, string, bool) {
	var s spec
	at := 0
	for at < len(text) && strings.IndexByte("-+0# ", text[at]) >= 0 {
		at++
	}
	s.flags = text[:at]
	s.width, at = number(text, at)
	if at < len(text) && text[at] == '.' {
		s.precision, at = number(text, at+1)
	}
	for _, size := range []string{"I64", "l", "h"} {
		if strings.HasPrefix(text[at:], size) {
			at += len(size)
			s.isLong = size == "l"
			break
		}
	}
	if at >= len(text) || strings.IndexByte("sSdiuoxXf%", text[at]) < 0 {
		return spec{}, text, false
	}
	s.verb = text[at]
	rest := text[at+1:]
	if s.verb == 'S' {
		rest = strings.TrimPrefix(rest, "_MSG") // of system messages
	}
	return s, rest, true
}

func number(text string, at int) (string, int) {
	if at < len(text) && text[at] == '*' {
		return "*", at + 1
	}
	from := at
	for at < len(text) && text[at] >= '0' && text[at] <= '9' {
		at++
	}
	return text[from:at], at
}

// print gives the text of a directive; system messages give no length for the star of %.*ls, which then prints all.
func (s spec) print(next func() any) string {
	var format strings.Builder
	format.WriteString("%" + s.flags)
	for _, part := range []struct{ mark, text string }{{"", s.width}, {".", s.precision}} {
		switch {
		case part.text == "*" && s.isLong && part.mark == ".":
		case part.text == "*":
			n, _ := next().(int64)
			format.WriteString(part.mark + strconv.FormatInt(n, 10))
		case part.text != "":
			format.WriteString(part.mark + part.text)
		}
	}
	argument := next()
	if argument == nil {
		return "(null)"
	}
	verb := s.verb
	switch verb { // f stands in system messages alone
	case 'i', 'd':
		verb = 'd'
	case 'u':
		verb, argument = 'd', unsigned(argument)
	case 'o', 'x', 'X':
		argument = unsigned(argument)
	case 's', 'S':
		verb, argument = 's', fmt.Sprint(argument)
	}
	if text, isText := argument.(string); isText && verb != 's' { // a number that the caller has written already
		return text
	}
	return fmt.Sprintf(format.String()+string(verb), argument)
}

// unsigned gives a negative number as C prints it: in 32 bits where it fits.
func unsigned(argument any) any {
	n, isNumber := argument.(int64)
	if !isNumber {
		i, isInt := argument.(int)
		if !isInt {
			return argument
		}
		n = int64(i)
	}
	if n >= -1<<31 && n < 0 {
		return uint32(n)
	}
	return uint64(n)
}
