// Package schedule is the calendar of locations and ports: the days and windows in which they are open, in the time of a zone.
package schedule

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // the zones are the same on every machine, also where none are installed
)

// Schedule says when a location or port is open: within its windows on the days that satisfy all conditions. A nil schedule is always open.
type Schedule struct {
	zone     *time.Location
	from, to date // the first and the last day; the zero value is no bound
	windows  []window
	weekdays map[time.Weekday]bool
	days     map[int]bool // of the month, negative from its end
	months   map[time.Month]bool
}

// window is a part of a day, in seconds of the clock from its midnight; end is behind begin, and may be on the next day.
type window struct{ begin, end int64 }

const day = 24 * 60 * 60

// whole is a day without windows.
var whole = window{0, day}

// definition is a schedule as definitions have it.
type definition struct {
	TimeZone string   `json:"time_zone"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Windows  []string `json:"windows"`
	Weekdays []string `json:"weekdays"`
	Days     []int    `json:"days"`
	Months   []string `json:"months"`
}

// Fault is something wrong with a definition.
type Fault struct { //nolint:errname // it is called as the faults of definitions are
	Path    []string // from the schedule: windows, 0
	Message string
	Remedy  string
}

func (f Fault) Error() string {
	return fmt.Sprintf("%s: %s. %s", strings.Join(append([]string{"schedule"}, f.Path...), "."), f.Message, f.Remedy)
}

// Read reads a definition, and gives nil for one that is empty, which is always open. The error joins a [Fault] for each setting that is
// wrong.
func Read(written json.RawMessage) (*Schedule, error) {
	var settings map[string]json.RawMessage
	if len(written) == 0 || string(written) == "null" {
		return nil, nil
	}
	if err := json.Unmarshal(written, &settings); err != nil {
		return nil, Fault{Message: "it is no object", Remedy: `Write names and values, such as windows: ["08:00-18:00"].`}
	}
	if len(settings) == 0 {
		return nil, nil
	}
	r := &reader{made: &Schedule{zone: time.UTC, windows: []window{whole}}}
	r.read(settings)
	if len(r.faults) > 0 {
		return nil, errors.Join(r.faults...)
	}
	return r.made, nil
}

// Faults gives the faults of an error of [Read].
func Faults(err error) []Fault {
	var found []Fault
	switch e := err.(type) { //nolint:errorlint // it is the error of Read, not one that wraps it
	case Fault:
		found = append(found, e)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			found = append(found, Faults(one)...)
		}
	}
	return found
}

// reader makes a schedule of a definition, and keeps the faults.
type reader struct {
	made   *Schedule
	faults []error
}

func (r *reader) wrong(message, remedy string, path ...string) {
	r.faults = append(r.faults, Fault{Path: path, Message: message, Remedy: remedy})
}

const known = "time_zone, from, to, windows, weekdays, days, months"

func (r *reader) read(settings map[string]json.RawMessage) {
	var d definition
	into := map[string]any{
		"time_zone": &d.TimeZone, "from": &d.From, "to": &d.To, "windows": &d.Windows, "weekdays": &d.Weekdays, "days": &d.Days,
		"months": &d.Months,
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if into[name] == nil {
			r.wrong(fmt.Sprintf("there is no setting %q", name), "Its settings are "+known+".", name)
		} else if err := json.Unmarshal(settings[name], into[name]); err != nil {
			r.wrong("the value is of another kind", "time_zone, from and to are texts, days a list of numbers, the others lists of texts.", name)
		}
	}
	s := r.made
	if d.TimeZone != "" {
		zone, err := time.LoadLocation(d.TimeZone)
		if err != nil || d.TimeZone == "Local" {
			r.wrong(fmt.Sprintf("the time zone %q is not known", d.TimeZone), "Write its name in the tz database, such as Europe/Berlin.",
				"time_zone")
		} else {
			s.zone = zone
		}
	}
	s.from, s.to = r.date("from", d.From), r.date("to", d.To)
	if s.from != (date{}) && s.to != (date{}) && s.to.before(s.from) {
		r.wrong("the last day is before the first", "Let to be the same day as from, or a later one.", "to")
	}
	if len(d.Windows) > 0 {
		s.windows = nil
	}
	for n, text := range d.Windows {
		w, err := readWindow(text)
		if err != nil {
			r.wrong(err.Error(), "Write two times of the day, such as 08:00-18:00, or 22:00-06:00 for one that ends on the next day.",
				"windows", strconv.Itoa(n))
		}
		s.windows = append(s.windows, w)
	}
	slices.SortFunc(s.windows, func(a, b window) int { return cmp.Compare(a.begin, b.begin) })
	s.weekdays = names(r, "weekdays", d.Weekdays, time.Sunday, time.Saturday)
	s.months = names(r, "months", d.Months, time.January, time.December)
	for n, of := range d.Days {
		if of == 0 || of < -31 || of > 31 {
			r.wrong(fmt.Sprintf("no month has a day %d", of), "Write 1 to 31, or -1 for the last day of a month, -2 for the one before it.",
				"days", strconv.Itoa(n))
		}
		if s.days == nil {
			s.days = map[int]bool{}
		}
		s.days[of] = true
	}
}

func (r *reader) date(name, text string) date {
	if text == "" {
		return date{}
	}
	read, err := time.Parse(time.DateOnly, text)
	if err != nil {
		r.wrong(fmt.Sprintf("%q is no date", text), "Write year, month and day, such as 2026-11-28.", name)
	}
	return dateOf(read)
}

// names reads days of the week or months by their English names.
func names[T interface {
	~int
	String() string
}](r *reader, setting string, texts []string, first, last T,
) map[T]bool {
	if len(texts) == 0 {
		return nil
	}
	var all []string
	for one := first; one <= last; one++ {
		all = append(all, one.String())
	}
	chosen := map[T]bool{}
	for n, text := range texts {
		at := slices.IndexFunc(all, func(name string) bool { return strings.EqualFold(name, text) })
		if at < 0 {
			r.wrong(fmt.Sprintf("%q is not known", text), "Write one of "+strings.Join(all, ", ")+".", setting, strconv.Itoa(n))
			continue
		}
		chosen[first+T(at)] = true
	}
	return chosen
}

// readWindow reads two times of the day.
func readWindow(text string) (window, error) {
	begin, end, found := strings.Cut(text, "-")
	first, err := readTime(begin)
	last, lastErr := readTime(end)
	if !found || err != nil || lastErr != nil || first == day || first == last {
		return whole, fmt.Errorf("%q is no window", text)
	}
	if last < first {
		last += day
	}
	return window{first, last}, nil
}

// readTime reads a time of the day, as seconds from midnight.
func readTime(text string) (int64, error) {
	text = strings.TrimSpace(text)
	if text == "24:00" || text == "24:00:00" {
		return day, nil
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if at, err := time.Parse(layout, text); err == nil {
			return int64(at.Hour()*3600 + at.Minute()*60 + at.Second()), nil
		}
	}
	return 0, fmt.Errorf("%q is no time of the day", text)
}
