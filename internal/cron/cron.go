// Package cron says when a cron expression is due next, in the time of a zone.
//
// A day on which the clock changes has an hour too few or too many. An hour that is left out is due at the moment at which the clock is put
// forward, once, however many times lie in it; an hour that comes twice is due the first time. An expression whose hour is * is of every
// hour that passes, and is due in both.
package cron

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // the zones are the same on every machine, also where none are installed

	"github.com/adhocore/gronx"
)

// Expression is a cron expression that can be read.
type Expression struct {
	given       string // as its user wrote it
	text        string
	isEveryHour bool
}

// Parse reads an expression of five fields, of six with seconds in front, or a word such as @daily.
func Parse(text string) (Expression, error) {
	if !gronx.IsValid(text) {
		return Expression{}, fmt.Errorf("cron expression %q cannot be read", text)
	}
	fields, err := gronx.Segments(text)
	if err != nil || len(fields) < 6 {
		return Expression{}, fmt.Errorf("cron expression %q cannot be read", text)
	}
	return Expression{given: text, text: strings.Join(fields, " "), isEveryHour: fields[2] == "*"}, nil
}

// Next gives the first time after another one at which the expression is due, on a second. It fails when there is none for years.
func (e Expression) Next(after time.Time, zone *time.Location) (time.Time, error) {
	if e.isEveryHour {
		return e.nextOfEveryHour(after.In(zone))
	}
	clock := shownBy(after.In(zone))
	for {
		next, err := e.tick(clock)
		if err != nil {
			return time.Time{}, err
		}
		// A time that the clock shows for the second time was due at the first.
		if at := firstShowing(next, zone); at.After(after) {
			return at, nil
		}
		clock = next
	}
}

// nextOfEveryHour goes by the hours that pass: within each offset from UTC, and on from where the next one begins.
func (e Expression) nextOfEveryHour(after time.Time) (time.Time, error) {
	for {
		_, offset := after.Zone()
		next, err := e.tick(after.In(time.FixedZone("", offset)))
		if err != nil {
			return time.Time{}, err
		}
		_, changes := after.ZoneBounds()
		if changes.IsZero() || next.Before(changes) {
			return next.In(after.Location()), nil
		}
		// The second before the change, as the clock counts after it: the change itself may be due.
		_, offset = changes.Zone()
		if next, err = e.tick(changes.Add(-time.Second).In(time.FixedZone("", offset))); err != nil {
			return time.Time{}, err
		}
		if _, again := changes.In(after.Location()).ZoneBounds(); again.IsZero() || next.Before(again) {
			return next.In(after.Location()), nil
		}
		after = changes.In(after.Location())
	}
}

func (e Expression) tick(after time.Time) (time.Time, error) {
	next, err := gronx.NextTickAfter(e.text, after.Truncate(time.Second), false)
	if err != nil || !next.After(after) {
		return time.Time{}, fmt.Errorf("cron expression %q is never due", e.given) // the library says no more than that it tried
	}
	return next, nil
}

// shownBy gives what a clock of the zone shows, as a time of UTC.
func shownBy(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// firstShowing gives when a clock of the zone shows a time first; of a time that it leaves out, when it is put forward.
func firstShowing(clock time.Time, zone *time.Location) time.Time {
	at := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, zone)
	begins, ends := at.ZoneBounds()
	switch shown := shownBy(at); {
	case shown.After(clock):
		return begins
	case shown.Before(clock):
		return ends
	}
	if begins.IsZero() {
		return at
	}
	before := begins.Add(-time.Second)
	_, offset := before.Zone()
	if earlier := clock.Add(-time.Duration(offset) * time.Second); earlier.Before(begins) {
		return earlier.In(zone)
	}
	return at
}
