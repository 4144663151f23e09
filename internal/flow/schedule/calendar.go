package schedule

import "time"

// date is a day of the calendar.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	year, month, day := t.Date()
	return date{year, month, day}
}

// midnight gives the beginning of the day as the clock shows it, in seconds since 1970 of a clock that is never changed.
func (d date) midnight() int64 { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Unix() }

func (d date) plus(days int) date {
	return dateOf(time.Date(d.year, d.month, d.day+days, 0, 0, 0, 0, time.UTC))
}

func (d date) before(other date) bool { return d.midnight() < other.midnight() }

// has reports whether the windows of a day count.
func (s *Schedule) has(d date) bool {
	at := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC)
	if s.from != (date{}) && d.before(s.from) || s.to != (date{}) && s.to.before(d) {
		return false
	}
	last := time.Date(d.year, d.month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	return (s.weekdays == nil || s.weekdays[at.Weekday()]) && (s.months == nil || s.months[d.month]) &&
		(s.days == nil || s.days[d.day] || s.days[d.day-last-1])
}

// reach gives when the clock of the zone first shows a time, or jumps over it. With arriving it gives when the time before it ends: of an
// hour that comes twice that is the end of the first one.
func (s *Schedule) reach(clock int64, arriving bool) time.Time {
	t := time.Unix(clock-2*day, 0).In(s.zone)
	for {
		_, offset := t.Zone()
		_, end := t.ZoneBounds()
		wanted := clock - int64(offset)
		if end.IsZero() || wanted < end.Unix() || arriving && wanted == end.Unix() {
			return time.Unix(max(t.Unix(), wanted), 0)
		}
		t = end.In(s.zone)
	}
}

// span is a time in which the schedule is open.
type span struct{ begin, end time.Time }

// spans gives when a day's windows are open. A window in an hour that the clock skips is open at once, for its length; one in an hour that
// comes twice is open in the first.
func (s *Schedule) spans(d date) []span {
	midnight := d.midnight()
	if !s.reach(midnight, false).Before(s.reach(midnight+day, false)) {
		return nil // the zone has no such day
	}
	open := make([]span, 0, len(s.windows))
	for _, w := range s.windows {
		one := span{s.reach(midnight+w.begin, false), s.reach(midnight+w.end, w.end != day)}
		if !one.begin.Before(one.end) {
			one.end = one.begin.Add(time.Duration(w.end-w.begin) * time.Second)
		}
		open = append(open, one)
	}
	return open
}

// horizon is how many days are searched for the next window: the 29th of February is of a given day of the week once in forty years.
const horizon = 60 * 366

// At reports whether the schedule is open at a time, and until when it is, or is not; the zero time where that never changes.
func (s *Schedule) At(t time.Time) (isOpen bool, until time.Time) {
	if s == nil || !s.isBounded() {
		return true, time.Time{}
	}
	today := dateOf(t.In(s.zone))
	var end time.Time
	// A window of the day before yesterday may still be open: one that ends tomorrow, and begins on a day without an hour.
	for n := -2; n <= horizon; n++ {
		d := today.plus(n)
		if s.to != (date{}) && s.to.before(d) {
			break
		}
		if s.from != (date{}) && d.before(s.from) {
			n += int((s.from.midnight()-d.midnight())/day) - 1
			continue
		}
		if !s.has(d) {
			if isOpen && !end.After(s.reach(d.midnight(), false)) {
				break
			}
			continue
		}
		for _, one := range s.spans(d) {
			switch {
			case isOpen && !one.begin.After(end):
				if one.end.After(end) {
					end = one.end
				}
			case isOpen:
				return true, end
			case !one.end.After(t):
			case one.begin.After(t):
				return false, one.begin
			default:
				isOpen, end = true, one.end
			}
		}
	}
	return isOpen, end
}

// isBounded reports whether there is a time at which the schedule is not open.
func (s *Schedule) isBounded() bool {
	return s.from != (date{}) || s.to != (date{}) || len(s.windows) != 1 || s.windows[0] != whole || s.weekdays != nil || s.days != nil ||
		s.months != nil
}

// String gives the name of the zone, in which people read the times of the schedule.
func (s *Schedule) String() string { return s.zone.String() }
