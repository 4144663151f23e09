package biztalk

import (
	"strings"
	"time"
)

// schedule translates when a location takes in, or a port sends. Days and times are those of UTC, unless the file names a zone.
func (e *endpoint) schedule(at *node, settings object) {
	made := object{}
	for _, window := range []struct{ enabled, from, to string }{
		{"ReceiveLocationServiceWindowEnabled", "ReceiveLocationFromTime", "ReceiveLocationToTime"},
		{"ServiceWindowEnabled", "FromTime", "ToTime"},
	} {
		if !isTrue(at.value(window.enabled)) {
			continue
		}
		from, isFrom := instant(at.value(window.from))
		to, isTo := instant(at.value(window.to))
		if !isFrom || !isTo || from.Format(time.TimeOnly) == to.Format(time.TimeOnly) {
			e.stop(at, strings.TrimSpace("the service window "+at.value(window.from)+" "+at.value(window.to)), "its times cannot be read",
				`say it in schedule: windows: ["08:00-18:00"]`)
			continue
		}
		made["windows"] = []any{clock(from) + "-" + clock(to)}
	}
	for _, bound := range []struct{ enabled, day, setting string }{
		{"ReceiveLocationStartDateEnabled", "ReceiveLocationStartDate", "from"},
		{"ReceiveLocationEndDateEnabled", "ReceiveLocationEndDate", "to"},
	} {
		if !isTrue(at.value(bound.enabled)) {
			continue
		}
		if day, is := instant(at.value(bound.day)); is {
			made[bound.setting] = day.Format(time.DateOnly)
		} else {
			e.stop(at, "the day "+at.value(bound.day), "it cannot be read", "say it in schedule: "+bound.setting)
		}
	}
	if zone := at.value("ScheduleTimeZone"); len(made) > 0 && zone != "" && !strings.EqualFold(zone, "UTC") {
		e.stop(at, "the time zone "+zone, "zones have their names in the tz database here", "give it in schedule: time_zone: Europe/Berlin")
	}
	if kind := at.value("ScheduleRecurrenceType"); kind != "" && kind != "None" && kind != "0" {
		e.stop(at, "the schedule "+kind, "days that recur are written otherwise", "say them in schedule: weekdays, days, months")
	}
	if len(made) > 0 {
		settings["schedule"] = made
	}
}

// instant reads a time, which is one of UTC where it names no offset.
func instant(written string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04", time.DateOnly, time.TimeOnly} {
		if read, err := time.Parse(layout, strings.TrimSpace(written)); err == nil {
			return read.UTC(), true
		}
	}
	return time.Time{}, false
}

// clock writes a time of the day.
func clock(at time.Time) string {
	if at.Second() == 0 {
		return at.Format("15:04")
	}
	return at.Format(time.TimeOnly)
}
