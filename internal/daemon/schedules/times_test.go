package schedules

import (
	"testing"
	"time"

	schedulesstore "github.com/parley-broker/parley/internal/store/schedules"
)

func TestTimesOfASchedule(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) *time.Time {
		moment := noon.Add(time.Duration(minutes) * time.Minute)
		return &moment
	}
	hourly, minutes, wrong := "0 * * * *", 600.0, "0 0 31 2 *"
	for name, c := range map[string]struct {
		due          schedulesstore.Due
		first, count int // minutes after noon
		missed       int
		next         int
		fails        bool
	}{
		"a new one has a time and no message": {due: schedulesstore.Due{Cron: &hourly, Now: *at(5)}, next: 60},
		"on time":                             {due: schedulesstore.Due{Cron: &hourly, NextAt: at(60), Now: *at(60)}, first: 60, count: 1, next: 120},
		"three missed, once":                  {due: schedulesstore.Due{Cron: &hourly, NextAt: at(60), Now: *at(190)}, first: 180, count: 1, missed: 2, next: 240},
		"three missed, all":                   {due: schedulesstore.Due{Cron: &hourly, NextAt: at(60), Now: *at(190), Missed: "ALL"}, first: 60, count: 3, next: 240},
		"three missed, skipped":               {due: schedulesstore.Due{Cron: &hourly, NextAt: at(60), Now: *at(190), Missed: "SKIP"}, missed: 3, next: 240},
		"skipped but for the last":            {due: schedulesstore.Due{Cron: &hourly, NextAt: at(60), Now: *at(180), Missed: "SKIP"}, first: 180, count: 1, missed: 2, next: 240},
		"not yet":                             {due: schedulesstore.Due{Cron: &hourly, NextAt: at(60), Now: *at(59)}, next: 60},
		"every so often from its start on":    {due: schedulesstore.Due{Every: &minutes, StartedAt: *at(3), NextAt: at(13), Now: *at(14)}, first: 13, count: 1, next: 23},
		"more than a thousand":                {due: schedulesstore.Due{Every: &minutes, StartedAt: *at(0), NextAt: at(10), Now: *at(20000), Missed: "ALL"}, first: 10010, count: 1000, missed: 1000, next: 20010},
		"never":                               {due: schedulesstore.Due{Cron: &wrong, Now: noon}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.due.Missed == "" {
				c.due.Missed = "ONCE"
			}
			c.due.TimeZone = "UTC"
			run := plan(c.due)
			if c.fails {
				if run.Fault == "" || len(run.DueAt) > 0 {
					t.Errorf("got %+v", run)
				}
				return
			}
			if run.Fault != "" || len(run.DueAt) != c.count || run.Missed != c.missed || run.NextAt == nil || !run.NextAt.Equal(*at(c.next)) ||
				c.count > 0 && !run.DueAt[0].Equal(*at(c.first)) {
				t.Errorf("got %d from %v, %d missed, next %v, fault %q", len(run.DueAt), run.DueAt[:min(1, len(run.DueAt))], run.Missed, run.NextAt, run.Fault)
			}
		})
	}
}
