package value

import (
	"strconv"
	"strings"
)

// A DateOrder is the order of year, month and day in a date of numbers, as SET DATEFORMAT says it: "mdy", "dmy", "ymd" ...
type DateOrder string

// A dateProblem says why text is no date.
type dateProblem uint8

const (
	dateFits dateProblem = iota
	dateSyntax
	dateRange
)

// A dateText is text that is read as a date, and what was found in it.
type dateText struct {
	rest     string
	order    DateOrder
	moment   Moment
	numbers  []string // of the date, in their order
	month    int      // of a name, 0 without
	hasTime  bool
	hasZone  bool
	digits   int  // of the second's fraction
	isISO    bool // with T
	problem  dateProblem
	hadEmpty bool
}

// twoDigitCutoff is the last year that two digits mean.
const twoDigitCutoff = 2049

// parseDate reads a date, a time of day, or both, in the forms that SQL Server reads.
func parseDate(text string, order DateOrder) *dateText {
	d := &dateText{rest: strings.Trim(text, " \t\r\n\u00a0"), order: order}
	d.moment.Days = daysBefore1900
	if d.rest == "" {
		d.hadEmpty = true
		return d
	}
	for d.rest != "" && d.problem == dateFits {
		d.part()
	}
	if d.problem == dateFits {
		d.date()
	}
	return d
}

func (d *dateText) fail(p dateProblem) {
	if d.problem == dateFits {
		d.problem = p
	}
}

func (d *dateText) skip(set string) { d.rest = strings.TrimLeft(d.rest, set) }

// part reads the next number, word or mark.
func (d *dateText) part() {
	switch c := d.rest[0]; {
	case c >= '0' && c <= '9':
		n := d.number()
		after := strings.TrimLeft(d.rest, " ")
		switch {
		case strings.HasPrefix(d.rest, ":"), isHalfOfDay(after) && !d.hasTime && len(n) <= 2:
			d.timeOfDay(n)
		case d.hasTime && len(d.numbers) >= 3:
			d.fail(dateSyntax)
		default:
			d.numbers = append(d.numbers, n)
			if strings.HasPrefix(d.rest, "T") || strings.HasPrefix(d.rest, "t") {
				d.isISO = true
				d.rest = d.rest[1:]
			}
		}
	case strings.IndexByte("-/.", c) >= 0 && (len(d.numbers) > 0 || d.month > 0) && !d.hasTime:
		d.rest = d.rest[1:]
		if len(d.numbers)+min(d.month, 1) > 2 {
			d.fail(dateSyntax)
		}
	case (c == '+' || c == '-') && d.hasTime:
		d.zone()
	case (c == 'Z' || c == 'z') && d.hasTime && len(d.rest) == 1:
		d.rest, d.hasZone = "", true
	case c == ' ', c == ',', c == '\t':
		d.rest = d.rest[1:]
	default:
		d.word()
	}
}

func (d *dateText) number() string {
	n := 0
	for n < len(d.rest) && d.rest[n] >= '0' && d.rest[n] <= '9' {
		n++
	}
	digits := d.rest[:n]
	d.rest = d.rest[n:]
	return digits
}

func (d *dateText) word() {
	n := 0
	for n < len(d.rest) && (d.rest[n]|0x20) >= 'a' && (d.rest[n]|0x20) <= 'z' {
		n++
	}
	word := strings.ToLower(d.rest[:n])
	if n >= 3 && d.month == 0 {
		for i, name := range monthNames {
			if name = strings.ToLower(name); word == name || word == name[:3] || word == "sept" && i == 8 {
				d.month, d.rest = i+1, d.rest[n:]
				return
			}
		}
	}
	d.fail(dateSyntax)
}

func isHalfOfDay(text string) bool {
	if len(text) < 2 || text[1]|0x20 != 'm' || len(text) > 2 && text[2] != ' ' {
		return false
	}
	return text[0]|0x20 == 'a' || text[0]|0x20 == 'p'
}

// timeOfDay reads a time behind its hour.
func (d *dateText) timeOfDay(hours string) {
	if d.hasTime || len(hours) > 2 {
		d.fail(dateSyntax)
		return
	}
	d.hasTime = true
	hour, minute, second := atoi(hours), 0, 0
	if d.take(":") {
		minute = d.field()
	}
	var ticks int64
	if d.take(":") {
		second = d.field()
		switch {
		case d.take("."):
			ticks = d.fraction()
		case d.take(":"):
			digits := d.number()
			d.digits = len(digits)
			if digits == "" || len(digits) > 3 {
				d.fail(dateSyntax)
			}
			ticks = int64(atoi(digits)) * 10_000
		}
	}
	if after := strings.TrimLeft(d.rest, " "); isHalfOfDay(after) {
		isAfternoon := after[0]|0x20 == 'p'
		d.rest = after[2:]
		switch {
		case hour > 12 && !isAfternoon, hour == 0 && isAfternoon:
			d.fail(dateRange)
		case hour == 12 && !isAfternoon:
			hour = 0
		case hour < 12 && isAfternoon:
			hour += 12
		}
	}
	if hour > 23 || minute > 59 || second > 59 {
		d.fail(dateRange)
	}
	d.moment.Ticks = int64(hour*3600+minute*60+second)*ticksPerSecond + ticks
	d.skip(" ")
}

func (d *dateText) take(mark string) bool {
	rest, found := strings.CutPrefix(d.rest, mark)
	d.rest = rest
	return found
}

// field reads minutes or seconds.
func (d *dateText) field() int {
	digits := d.number()
	if digits == "" || len(digits) > 2 {
		d.fail(dateSyntax)
		return 0
	}
	return atoi(digits)
}

// fraction reads the fraction of a second; beyond ticks it is rounded.
func (d *dateText) fraction() int64 {
	digits := d.number()
	d.digits = len(digits)
	if digits == "" || len(digits) > 9 {
		d.fail(dateSyntax)
		return 0
	}
	n, _ := strconv.ParseInt((digits + "000000000")[:9], 10, 64)
	return (n + 50) / 100
}

// zone reads an offset such as -08:00.
func (d *dateText) zone() {
	sign := 1
	if d.rest[0] == '-' {
		sign = -1
	}
	d.rest = d.rest[1:]
	hours, colon, minutes := d.number(), d.take(":"), d.number()
	if len(hours) < 1 || len(hours) > 2 || len(minutes) != 2 || !colon {
		d.fail(dateSyntax)
		return
	}
	d.hasZone = true
	d.moment.Offset = sign * (atoi(hours)*60 + atoi(minutes))
	if d.moment.Offset > 840 || d.moment.Offset < -840 || atoi(minutes) > 59 {
		d.fail(dateRange)
	}
}

func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil && digits != "" {
		return 1 << 30
	}
	return n
}

// date makes a date of the numbers and the month that were found.
func (d *dateText) date() {
	var year, month string
	day := "1"
	switch n := d.numbers; {
	case len(n) == 0 && d.month == 0 && d.hasTime:
		return
	case d.month > 0 && len(n) == 1 && len(n[0]) == 4:
		year = n[0]
	case d.month > 0 && len(n) == 1:
		year = n[0]
	case d.month > 0 && len(n) == 2 && len(n[0]) == 4:
		year, day = n[0], n[1]
	case d.month > 0 && len(n) == 2:
		day, year = n[0], n[1]
	case d.month == 0 && len(n) == 1 && len(n[0]) == 8:
		year, month, day = n[0][:4], n[0][4:6], n[0][6:]
	case d.month == 0 && len(n) == 1 && len(n[0]) == 6:
		year, month, day = n[0][:2], n[0][2:4], n[0][4:]
	case d.month == 0 && len(n) == 1 && len(n[0]) == 4:
		year, month = n[0], "1"
	case d.month == 0 && len(n) == 3:
		year, month, day = d.inOrder(n)
	default:
		d.fail(dateSyntax)
		return
	}
	y, m, dd := atoi(year), atoi(month), atoi(day)
	if d.month > 0 {
		m = d.month
	}
	switch {
	case len(year) <= 2 && y > twoDigitCutoff%100:
		y += 1900
	case len(year) <= 2:
		y += 2000
	case len(year) != 4:
		d.fail(dateSyntax)
		return
	}
	if y < 1 || y > 9999 || m < 1 || m > 12 || dd < 1 || dd > 31 {
		d.fail(dateRange)
		return
	}
	d.moment.Days = DaysOf(y, m, dd)
	if _, _, counted := d.moment.Date(); counted != dd {
		d.fail(dateRange)
	}
}

// inOrder says which of three numbers is which: a year of four digits may stand first or last.
func (d *dateText) inOrder(n []string) (year, month, day string) {
	order := string(d.order)
	switch {
	case len(n[0]) == 4 && (order[0] != 'y' || d.isISO):
		order = "y" + strings.ReplaceAll(order, "y", "")
		if d.isISO {
			order = "ymd"
		}
	case len(n[2]) == 4 && order[2] != 'y':
		order = strings.ReplaceAll(order, "y", "") + "y"
	}
	for i, c := range order {
		switch c {
		case 'y':
			year = n[i]
		case 'm':
			month = n[i]
		default:
			day = n[i]
		}
	}
	return year, month, day
}
