package cron_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/cron"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// due gives the next times of an expression after one.
func due(t *testing.T, expression, in, after string, count int) (times []string) {
	t.Helper()
	e, err := cron.Parse(expression)
	if err != nil {
		t.Fatal(err)
	}
	at, err := time.Parse(time.RFC3339, after)
	if err != nil {
		t.Fatal(err)
	}
	for range count {
		if at, err = e.Next(at, zone(t, in)); err != nil {
			t.Fatal(err)
		}
		times = append(times, at.Format(time.RFC3339))
	}
	return times
}

func TestNextTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"every five minutes":  {"*/5 * * * *", "UTC", "2026-03-01T00:03:10Z", []string{"2026-03-01T00:05:00Z", "2026-03-01T00:10:00Z"}},
		"not the time itself": {"0 3 * * *", "Europe/Berlin", "2026-01-02T03:00:00+01:00", []string{"2026-01-03T03:00:00+01:00"}},
		"weekdays":            {"30 8 * * 1-5", "UTC", "2026-11-27T08:30:00Z", []string{"2026-11-30T08:30:00Z"}},
		"a word":              {"@daily", "America/New_York", "2026-06-01T12:00:00Z", []string{"2026-06-02T00:00:00-04:00"}},
		"seconds":             {"*/20 * * * * *", "UTC", "2026-06-01T12:00:05Z", []string{"2026-06-01T12:00:20Z", "2026-06-01T12:00:40Z", "2026-06-01T12:01:00Z"}},
		"leap day":            {"0 0 29 2 *", "UTC", "2026-06-01T12:00:00Z", []string{"2028-02-29T00:00:00Z"}},
		"an hour that the clock leaves out is due once, when it is put forward": {
			"*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		"an hour that comes twice is due the first time": {
			"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"from within the second time": {"45 2 * * *", "Europe/Berlin", "2026-10-25T02:10:00+01:00", []string{"2026-10-26T02:45:00+01:00"}},
		"every hour that passes": {
			"30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00+02:00",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01:00", "2026-10-25T03:30:00+01:00"},
		},
		"every hour that passes in spring": {
			"0 * * * *", "Europe/Berlin", "2026-03-29T01:00:00+01:00",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"},
		},
		"half an hour at Lord Howe":     {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T03:00:00+10:30", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
		"a day that Samoa did not have": {"0 12 30 12 *", "Pacific/Apia", "2011-12-29T12:00:00-10:00", []string{"2011-12-31T00:00:00+14:00", "2012-12-30T12:00:00+14:00"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := due(t, c.expression, c.zone, c.after, len(c.want))
			for i, want := range c.want {
				if got[i] != want {
					t.Errorf("got %v, want %v", got, c.want)
					return
				}
			}
		})
	}
}

func TestExpressionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "often", "* * * *", "61 * * * *", "* 25 * * *", "* * * 13 *", "@sometimes", "a b c d e"} {
		if _, err := cron.Parse(text); err == nil {
			t.Errorf("%q is read", text)
		}
	}
	e, err := cron.Parse("0 0 31 2 *")
	if err != nil {
		return
	}
	if at, err := e.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC); err == nil || err.Error() != `cron expression "0 0 31 2 *" is never due` {
		t.Errorf("the 31st of February is due at %v: %v", at, err)
	}
}
