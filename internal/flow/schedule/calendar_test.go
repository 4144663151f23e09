package schedule_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/schedule"
)

func read(t interface {
	Helper()
	Fatal(args ...any)
}, written string,
) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Read(json.RawMessage(written))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// spans gives when a schedule is open between two times.
func spans(s *schedule.Schedule, from, to time.Time) string {
	var found []string
	for at := from; at.Before(to); {
		isOpen, until := s.At(at)
		if until.IsZero() || until.After(to) {
			until = to
		}
		if isOpen {
			found = append(found, at.UTC().Format("02T15:04")+" to "+until.UTC().Format("02T15:04"))
		}
		at = until
	}
	return strings.Join(found, ", ")
}

func TestAWindowIsOpenOnceWhateverTheClockDoes(t *testing.T) {
	t.Parallel()
	spring, autumn := time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		rule, windows string
		from          time.Time
		want          string
	}{
		{"in the skipped hour it is open at once", `"02:00-02:30"`, spring, "29T01:00 to 29T01:30"},
		{"one that begins in it begins at once", `"02:30-04:00"`, spring, "29T01:00 to 29T02:00"},
		{"one that ends in it ends at once", `"01:00-02:30"`, spring, "29T00:00 to 29T01:00"},
		{"one around it is an hour shorter", `"00:00-05:00"`, spring, "28T23:00 to 29T03:00"},
		{"in the doubled hour it is open in the first", `"02:15-02:45"`, autumn, "25T00:15 to 25T00:45"},
		{"the doubled hour itself is the first", `"02:00-03:00"`, autumn, "25T00:00 to 25T01:00"},
		{"one around it is an hour longer", `"01:00-04:00"`, autumn, "24T23:00 to 25T03:00"},
		{"one across midnight belongs to its beginning", `"22:00-02:30"`, autumn, "24T20:00 to 25T00:30"},
		{"one to the end of the day has all of it", `"12:00-24:00"`, autumn.Add(24 * time.Hour), "25T12:00 to 25T23:00"},
	} {
		s := read(t, `{"time_zone": "Europe/Berlin", "windows": [`+c.windows+`]}`)
		if got := spans(s, c.from, c.from.Add(15*time.Hour)); got != c.want {
			t.Errorf("%s: %s is open %s, not %s", c.rule, c.windows, got, c.want)
		}
	}
	brazil := read(t, `{"time_zone": "America/Sao_Paulo", "weekdays": ["Saturday"]}`)
	if got := spans(brazil, time.Date(2018, 2, 16, 0, 0, 0, 0, time.UTC), time.Date(2018, 2, 20, 0, 0, 0, 0, time.UTC)); got != "17T02:00 to 18T03:00" {
		t.Errorf("a day whose last hour comes twice is open %s", got)
	}
	samoa := read(t, `{"time_zone": "Pacific/Apia", "windows": ["08:00-09:00"], "from": "2011-12-30", "to": "2011-12-30"}`)
	if isOpen, until := samoa.At(time.Date(2011, 12, 29, 0, 0, 0, 0, time.UTC)); isOpen || !until.IsZero() {
		t.Errorf("a day that a zone has left out has a window, %t until %s", isOpen, until)
	}
}

func TestAllConditionsOfADayHaveToHold(t *testing.T) {
	t.Parallel()
	at := func(text string) time.Time {
		read, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return read
	}
	for _, c := range []struct {
		written, at string
		isOpen      bool
		until       string
	}{
		{`{"weekdays": ["Monday"], "days": [1, 2, 3, 4, 5, 6, 7]}`, "2026-11-28T00:00:00Z", false, "2026-12-07T00:00:00Z"},
		{`{"days": [-1], "windows": ["23:00-01:00"]}`, "2026-11-28T00:00:00Z", false, "2026-11-30T23:00:00Z"},
		{`{"days": [-1], "windows": ["23:00-01:00"]}`, "2026-12-01T00:30:00Z", true, "2026-12-01T01:00:00Z"},
		{`{"from": "2026-12-01", "to": "2026-12-24"}`, "2026-11-28T00:00:00Z", false, "2026-12-01T00:00:00Z"},
		{`{"from": "2026-12-01", "to": "2026-12-24"}`, "2026-12-24T23:59:59Z", true, "2026-12-25T00:00:00Z"},
		{`{"from": "2026-12-01", "to": "2026-12-24"}`, "2026-12-25T00:00:00Z", false, ""},
		{`{"to": "2026-12-24", "windows": ["22:00-06:00"]}`, "2026-12-25T05:00:00Z", true, "2026-12-25T06:00:00Z"},
		{`{"months": ["February"], "days": [29], "weekdays": ["sunday"]}`, "2026-01-01T00:00:00Z", false, "2032-02-29T00:00:00Z"},
		{`{"months": ["February"], "days": [30]}`, "2026-01-01T00:00:00Z", false, ""},
		{`{"windows": ["08:00-12:00", "12:00-13:00", "11:00-11:30"]}`, "2026-01-01T11:45:00Z", true, "2026-01-01T13:00:00Z"},
		{`{"time_zone": "Asia/Kathmandu", "weekdays": ["Friday", "Saturday"]}`, "2026-11-27T00:00:00Z", true, "2026-11-28T18:15:00Z"},
		{`{"time_zone": "Europe/Berlin"}`, "2026-11-27T00:00:00Z", true, ""},
		{`{}`, "2026-11-27T00:00:00Z", true, ""},
	} {
		isOpen, until := read(t, c.written).At(at(c.at))
		want := time.Time{}
		if c.until != "" {
			want = at(c.until)
		}
		if isOpen != c.isOpen || !until.Equal(want) {
			t.Errorf("%s at %s: open %t until %s, not %t until %s", c.written, c.at, isOpen, until.UTC(), c.isOpen, c.until)
		}
	}
}

func TestEachSettingOfAScheduleThatIsWrongIsAFaultOfItsOwn(t *testing.T) {
	t.Parallel()
	_, err := schedule.Read(json.RawMessage(`{"time_zone": "Mars/Olympus", "from": "2026-13-01", "windows": ["8-9", "24:00-08:00", "09:00-09:00"],
		"weekdays": ["Mon"], "days": [0, 32], "months": 5, "hours": []}`))
	var got []string
	for _, f := range schedule.Faults(err) {
		got = append(got, strings.Join(f.Path, "."))
	}
	want := "hours months time_zone from windows.0 windows.1 windows.2 weekdays.0 days.0 days.1"
	if strings.Join(got, " ") != want {
		t.Errorf("the faults are of %v and not of %s", got, want)
	}
	for _, written := range []string{`[]`, `{"from": "2026-02-01", "to": "2026-01-01"}`} {
		if _, err := schedule.Read(json.RawMessage(written)); len(schedule.Faults(err)) != 1 {
			t.Errorf("%s has the fault %v", written, err)
		}
	}
}

// zones have changes of an hour, of half an hour, at midnight, of their offset itself, and of a whole day.
var zones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Beirut", "Africa/Cairo", "Asia/Kathmandu",
	"Pacific/Apia", "America/St_Johns", "Africa/Casablanca", "Asia/Pyongyang", "America/Caracas", "Antarctica/Troll", "Europe/Istanbul",
}

// clockAt gives what a clock shows, in minutes of a clock that is never changed.
func clockAt(t time.Time) int64 {
	_, offset := t.Zone()
	return (t.Unix() + int64(offset)) / 60
}

func TestAScheduleIsOpenWhenAClockOnTheWallSaysSo(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(zones).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		// Around a change of the clock, where there is one within the years.
		near := time.Date(rapid.IntRange(2008, 2030).Draw(t, "year"), time.Month(rapid.IntRange(1, 12).Draw(t, "month")), 1, 0, 0, 0, 0, zone)
		if _, change := near.ZoneBounds(); !change.IsZero() && change.Year() < 2035 {
			near = change
		}
		length := rapid.OneOf(rapid.IntRange(1, 4), rapid.IntRange(1, 47)).Draw(t, "length") * 30
		changed := int(clockAt(near.Add(-time.Minute).In(zone))+1) % 1440 / 30
		begin := (rapid.OneOf(rapid.IntRange(-4, 4), rapid.IntRange(0, 47)).Draw(t, "begin") + changed + 48) % 48 * 30
		end := (begin + length) % (24 * 60)
		weekday := near.Add(-time.Hour).In(zone).Weekday()
		if rapid.Bool().Draw(t, "other day") {
			weekday = time.Weekday(rapid.IntRange(0, 6).Draw(t, "weekday"))
		}
		s := read(t, fmt.Sprintf(`{"time_zone": %q, "windows": ["%02d:%02d-%02d:%02d"], "weekdays": [%q, %q]}`, name, begin/60, begin%60,
			end/60, end%60, weekday, (weekday+3)%7))

		// The clock is watched minute by minute: a window opens when the clock first shows or passes its beginning, and closes when a minute
		// ends that is the last one before its end, or the clock passes that.
		first, last := near.Add(-4*24*time.Hour).Truncate(time.Minute), near.Add(4*24*time.Hour)
		open := map[int64]bool{}
		for n := clockAt(first)/1440 - 3; n <= clockAt(last)/1440+1; n++ {
			midnight := n * 1440
			of := time.Unix(midnight*60, 0).UTC().Weekday()
			if of != weekday && of != (weekday+3)%7 {
				continue
			}
			opened, closed, exists := int64(0), int64(0), false
			for at := first.Add(-96 * time.Hour); at.Before(last.Add(48 * time.Hour)); at = at.Add(time.Minute) {
				clock, before := clockAt(at.In(zone)), clockAt(at.Add(-time.Minute).In(zone))
				exists = exists || clock >= midnight && clock < midnight+1440
				if opened == 0 && clock >= midnight+int64(begin) {
					opened = at.Unix() / 60
				}
				// One to midnight has all of its day, also an hour that comes twice before it.
				until := midnight + int64(begin+length)
				if closed == 0 && (before+1 >= until && begin+length != 1440 || clock >= until) {
					closed = at.Unix() / 60
				}
			}
			if closed <= opened {
				closed = opened + int64(length)
			}
			for minute := opened; exists && minute < closed; minute++ {
				open[minute] = true
			}
		}
		for at := first; at.Before(last); {
			isOpen, until := s.At(at)
			if until.IsZero() || !until.After(at) {
				t.Fatalf("at %s it is %t until %s", at, isOpen, until)
			}
			for ; at.Before(until) && at.Before(last); at = at.Add(time.Minute) {
				if open[at.Unix()/60] != isOpen {
					t.Fatalf("at %s (%s) it is open: %t, and the clock says %t", at, at.In(zone), isOpen, open[at.Unix()/60])
				}
			}
		}
	})
}
