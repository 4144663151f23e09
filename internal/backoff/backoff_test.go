package backoff

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestPausesDoubleUpToTheLongest(t *testing.T) {
	t.Parallel()
	p := Policy{First: 100 * time.Millisecond, Longest: time.Second}
	for failures, want := range map[int]time.Duration{
		0: 100 * time.Millisecond, 1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 4: 800 * time.Millisecond,
		5: time.Second, 1000: time.Second,
	} {
		if got := p.Pause(failures); got != want {
			t.Errorf("after %d failures it pauses %v, want %v", failures, got, want)
		}
	}
}

func TestJitterShortensByItsShareAtMost(t *testing.T) {
	t.Parallel()
	shortest, longest := time.Hour, time.Duration(0)
	for range 1000 {
		d := Jitter(time.Second, 0.5)
		shortest, longest = min(shortest, d), max(longest, d)
	}
	if shortest < time.Second/2 || longest > time.Second {
		t.Errorf("from %v to %v", shortest, longest)
	}
	if longest-shortest < time.Second/4 {
		t.Errorf("it hardly varies: from %v to %v", shortest, longest)
	}
	if got := Jitter(0, 1); got != 0 {
		t.Errorf("of nothing it makes %v", got)
	}
}

func TestFailuresInARowAreLoggedOnceAndSoIsTheirEnd(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	f := NewFailures(slog.New(slog.NewTextHandler(&log, nil)), "it cannot be done")
	f.Succeeded()
	for range 3 {
		f.Failed(errors.New("no"))
	}
	f.Succeeded()
	f.Succeeded()
	if begun, over := strings.Count(log.String(), "again and again"), strings.Count(log.String(), "failures=3"); begun != 1 || over != 1 {
		t.Errorf("begin logged %d times, end %d:\n%s", begun, over, log.String())
	}
	if pause := f.Failed(errors.New("no")); pause > Statement.First {
		t.Errorf("after a success it pauses %v", pause)
	}
}
