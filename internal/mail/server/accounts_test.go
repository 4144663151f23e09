package server // The count is not exported.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	governorstore "github.com/parley-broker/parley/internal/store/governor"
)

// A certificate is reported from 30 days before its end on, and once more when it has expired.
func TestEndOfACertificateIsReportedInTime(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	now := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]string{
		30 * day: "", 30*day - 1: problemExpiring, 1: problemExpiring, 0: problemExpired, -day: problemExpired, 365 * day: "",
	} {
		got := ""
		for _, problem := range expiry("send connector", "out", "/a.pem", now.Add(left), now) {
			got += problem.Code
			if at := now.Add(left).Format(time.RFC3339); !strings.Contains(problem.Cause, at) || problem.Object != "out" || problem.Kind != "send connector" {
				t.Errorf("%v before its end: %+v", left, problem)
			}
		}
		if got != want {
			t.Errorf("%v before its end: %q, want %q", left, got, want)
		}
	}
	if got := expiry("send connector", "out", "/a.pem", time.Time{}, now); len(got) > 0 {
		t.Errorf("one that cannot be read: %+v", got)
	}
}

// A latency counts under the first bound that it does not exceed, and a percentile is the first bound that so many do not exceed.
func TestLatenciesCountUnderTheirBounds(t *testing.T) {
	t.Parallel()
	var l latencies
	for range 50 {
		l.Observe(10 * time.Millisecond)
	}
	for range 45 {
		l.Observe(10*time.Millisecond + 1)
	}
	l.Observe(48 * time.Hour)
	l.Observe(-time.Hour) // of a machine whose clock is ahead
	for range 3 {
		l.Observe(48*time.Hour + 1)
	}
	histogram, count := l.Read()
	for bound, want := range map[float64]uint64{0.01: 51, 0.025: 96, 24 * 3600: 96, 48 * 3600: 97} {
		if got := histogram.Buckets[bound]; got != want {
			t.Errorf("%d are within %g seconds, want %d", got, bound, want)
		}
	}
	if want := 0.95 + 45e-9 + 4*48*3600 + 3e-9; count != 100 || histogram.Sum < want-1e-6 || histogram.Sum > want+1e-6 {
		t.Errorf("%d of %g seconds, want %g", count, histogram.Sum, want)
	}
	for share, want := range map[float64]float64{0.5: 0.01, 0.51: 0.01, 0.52: 0.025, 0.96: 0.025, 0.97: 48 * 3600, 1: 48 * 3600} {
		if got := percentile(histogram, count, share); got != want {
			t.Errorf("%g of all are within %g seconds, want %g", share, got, want)
		}
	}
	if empty, none := new(latencies).Read(); percentile(empty, none, 0.5) != 0 {
		t.Error("of nothing there is a percentile")
	}
}

// How long a resource was at each level, in all and at the longest, the level that it is at included.
func TestTimeAtEachLevelIsCounted(t *testing.T) {
	t.Parallel()
	const normal, medium, high = governorstore.Normal, governorstore.Medium, governorstore.High
	var l levels
	now := time.Unix(1e9, 0)
	for _, c := range []struct {
		after time.Duration
		level governorstore.Level
	}{{0, normal}, {time.Second, medium}, {2 * time.Second, medium}, {3 * time.Second, high}, {5 * time.Second, medium}, {4 * time.Second, normal}, {time.Second, normal}} {
		now = now.Add(c.after)
		state := governorstore.State{Threshold: governorstore.Threshold{Resource: "memory"}, Level: c.level}
		l.observe(governorstore.Pressure{Level: c.level, States: []governorstore.State{state}, Active: []string{"tarpit"}}, now)
	}
	accounts, highest, active := l.read()
	if len(accounts) != 1 || highest != normal || fmt.Sprint(active) != "[tarpit]" {
		t.Fatalf("%+v, %v, %v", accounts, highest, active)
	}
	a := accounts[0]
	got := fmt.Sprint(a.transitions, a.seconds[normal], a.seconds[medium], a.seconds[high], a.longest[normal], a.longest[medium], a.longest[high])
	if want := "4 2 9 5 1 5 5"; got != want {
		t.Errorf("changes, seconds and longest are %s, want %s", got, want)
	}
}
