package schedules

import (
	"fmt"
	"slices"
	"time"

	"github.com/parley-broker/parley/internal/cron"
	schedulesstore "github.com/parley-broker/parley/internal/store/schedules"
)

const (
	// mostMissed bounds the messages that are put at once for times that were missed.
	mostMissed = 1000
	// late is how old a time may be that is not missed: a daemon takes over within it.
	late = time.Minute
)

// plan says for which times of a schedule a message is put now, and when it is due next.
func plan(due schedulesstore.Due) schedulesstore.Run {
	next, err := successor(due)
	if err != nil {
		return schedulesstore.Run{Fault: err.Error()}
	}
	if due.NextAt == nil {
		// It is new, or goes on after a pause: what was before does not count.
		at, err := next(due.Now)
		if err != nil {
			return schedulesstore.Run{Fault: err.Error()}
		}
		return schedulesstore.Run{NextAt: &at}
	}
	run := schedulesstore.Run{}
	at, passed := *due.NextAt, 0
	for ; !at.After(due.Now); passed++ {
		run.DueAt = append(run.DueAt, at)
		if len(run.DueAt) > mostMissed {
			// Of more than these nobody wants to see each: only how many there were.
			run.DueAt = run.DueAt[1:]
		}
		if at, err = next(at); err != nil {
			return schedulesstore.Run{Fault: err.Error()}
		}
	}
	run.NextAt = &at
	switch due.Missed {
	case "ONCE":
		run.DueAt = run.DueAt[max(0, len(run.DueAt)-1):]
	case "SKIP":
		run.DueAt = slices.DeleteFunc(run.DueAt, func(at time.Time) bool { return at.Before(due.Now.Add(-late)) })
	}
	run.Missed = passed - len(run.DueAt)
	return run
}

// successor gives what says when a schedule is due after a time.
func successor(due schedulesstore.Due) (func(time.Time) (time.Time, error), error) {
	if due.Every != nil {
		every := int64(*due.Every * float64(time.Second))
		return func(after time.Time) (time.Time, error) {
			// By the first one, so that nothing drifts.
			times := int64(after.Sub(due.StartedAt))/every + 1
			return due.StartedAt.Add(time.Duration(times * every)), nil
		}, nil
	}
	zone, err := time.LoadLocation(due.TimeZone)
	if err != nil {
		return nil, fmt.Errorf("time zone %q is not known to the daemon: %w", due.TimeZone, err)
	}
	expression, err := cron.Parse(*due.Cron)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) (time.Time, error) { return expression.Next(after, zone) }, nil
}
