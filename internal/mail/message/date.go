package message

import (
	"strconv"
	"strings"
	"time"
)

// zones are the names that have an offset, in hours (RFC 5322 section 4.3). All others stand for an offset that is not known, -0000.
var zones = map[string]int{"EDT": -4, "EST": -5, "CDT": -5, "CST": -6, "MDT": -6, "MST": -7, "PDT": -7, "PST": -8}

var months = []string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

var weekdays = []string{"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"}

// ParseDate reads a date as RFC 5322 has it, with the old forms and comments, and as C programs write it (Fri Nov 21 09:55:06 1997). The
// day of the week says nothing, in whatever language it stands. Dots may part hour, minute and second. A date whose offset is missing or
// not known is one of UTC.
func ParseDate(value string) (date time.Time, isDate bool) {
	tokens, _ := lex(value)
	d := dateReader{tokens: dropComments(tokens), month: -1}
	for len(d.tokens) > 0 {
		if !d.take() {
			return time.Time{}, false
		}
	}
	return d.date()
}

// dateReader goes through the tokens of a date.
type dateReader struct {
	tokens    []token
	numbers   []string // day and year, in their order
	month     int
	clock     []int // hour, minute, second
	offset    int   // in seconds
	hasOffset bool  // as a number
}

// take reads what the tokens begin with.
func (d *dateReader) take() bool {
	one := d.tokens[0]
	if one.kind == ',' || one.kind == '.' {
		d.tokens = d.tokens[1:]
		return true
	}
	if one.kind != atom {
		return false
	}
	text := strings.ToLower(one.text)
	isNumber := strings.Trim(text, "0123456789") == ""
	switch {
	case isNumber && d.isTime():
		return d.time(d.tokens[1].kind)
	case isNumber:
		d.numbers = append(d.numbers, text)
	case strings.Count(text, "-") == 2 && text[0] != '-': // 21-Nov-1997
		var parts []token
		for part := range strings.SplitSeq(text, "-") {
			parts = append(parts, token{kind: atom, text: part})
		}
		d.tokens = append(parts, d.tokens[1:]...)
		return true
	case d.month < 0 && nameOf(text, months) >= 0:
		d.month = nameOf(text, months)
	case len(d.clock) == 0 && nameOf(text, weekdays) >= 0:
	case d.isBefore(',') && d.month < 0 && len(d.numbers) == 0 && len(d.clock) == 0: // Mi, 21 Nov 1997
	case len(d.clock) > 0:
		return d.zone(strings.ToUpper(text))
	default:
		return false
	}
	d.tokens = d.tokens[1:]
	return true
}

// nameOf gives the place of a name in a list by its first letters, three at least; -1 where it is none.
func nameOf(text string, names []string) int {
	for i, name := range names {
		if len(text) >= 3 && strings.HasPrefix(name, text) {
			return i
		}
	}
	return -1
}

// isBefore says whether what the tokens begin with stands before a sign, or before a dot and that sign.
func (d *dateReader) isBefore(sign byte) bool {
	rest := d.tokens[1:]
	if len(rest) > 1 && rest[0].kind == '.' {
		rest = rest[1:]
	}
	return len(rest) > 0 && rest[0].kind == sign
}

// isTime says whether the number that the tokens begin with is an hour: a colon stands behind it, or dots part three numbers.
func (d *dateReader) isTime() bool {
	if len(d.tokens) > 1 && d.tokens[1].kind == ':' {
		return true
	}
	if len(d.tokens) < 5 || len(d.clock) > 0 {
		return false
	}
	for i, one := range d.tokens[1:5] {
		_, isNumber := shortNumber(one)
		if one.isApart || (i%2 == 0) != (one.kind == '.') || (i%2 == 1) != isNumber {
			return false
		}
	}
	return true
}

// time reads hour, minute and second, which a sign parts, and passes by a fraction of it.
func (d *dateReader) time(sign byte) bool {
	if len(d.clock) > 0 {
		return false
	}
	for {
		number, isNumber := shortNumber(d.tokens[0])
		if !isNumber {
			return false
		}
		d.clock, d.tokens = append(d.clock, number), d.tokens[1:]
		if len(d.clock) == 3 || len(d.tokens) < 2 || d.tokens[0].kind != sign {
			break
		}
		d.tokens = d.tokens[1:]
	}
	if len(d.tokens) > 1 && d.tokens[0].kind == '.' && !d.tokens[1].isApart && strings.Trim(d.tokens[1].text, "0123456789") == "" {
		d.tokens = d.tokens[2:]
	}
	return len(d.clock) > 1
}

func shortNumber(one token) (int, bool) {
	number, err := strconv.ParseUint(one.text, 10, 8)
	return int(number), err == nil && len(one.text) <= 2
}

// zone reads what stands behind the time: an offset, a name, or both in one. The offset counts.
func (d *dateReader) zone(text string) bool {
	d.tokens = d.tokens[1:]
	name, digits := text, ""
	if at := strings.IndexAny(text, "+-"); at >= 0 {
		name, digits = text[:at], text[at:]
	}
	if digits == "" {
		if name == "AM" || name == "PM" {
			return false
		}
		if hours, has := zones[name]; has && !d.hasOffset {
			d.offset = hours * 3600
		}
		return true
	}
	if len(d.tokens) > 1 && d.tokens[0].kind == ':' && len(digits) == 3 { // +02:00
		digits += d.tokens[1].text
		d.tokens = d.tokens[2:]
	}
	number, err := strconv.ParseUint(digits[1:], 10, 16)
	hours, minutes := int(number/100), int(number%100)
	if err != nil || len(digits) != 5 || hours > 23 || minutes > 59 || d.hasOffset {
		return false
	}
	d.offset, d.hasOffset = hours*3600+minutes*60, true
	if digits[0] == '-' {
		d.offset = -d.offset
	}
	return true
}

// date puts together what was read.
func (d *dateReader) date() (time.Time, bool) {
	if d.month < 0 || len(d.numbers) != 2 || len(d.clock) < 2 {
		return time.Time{}, false
	}
	if len(d.numbers[0]) == 4 {
		d.numbers[0], d.numbers[1] = d.numbers[1], d.numbers[0]
	}
	day, isDay := shortNumber(token{text: d.numbers[0]})
	year, err := strconv.ParseUint(d.numbers[1], 10, 16)
	if !isDay || err != nil || len(d.numbers[1]) < 2 || len(d.numbers[1]) > 4 {
		return time.Time{}, false
	}
	switch len(d.numbers[1]) {
	case 2:
		year += 1900
		if year < 1950 {
			year += 100
		}
	case 3:
		year += 1900
	}
	clock := [3]int{}
	copy(clock[:], d.clock)
	if clock[0] > 23 || clock[1] > 59 || clock[2] > 60 {
		return time.Time{}, false
	}
	written := time.Date(int(year), time.Month(d.month+1), day, 0, 0, 0, 0, time.UTC)
	if written.Day() != day {
		return time.Time{}, false
	}
	date := written.Add(time.Duration(clock[0]*3600+clock[1]*60+clock[2]-d.offset) * time.Second)
	return date, date.Year() >= 1 && date.Year() <= 9999
}
