package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Part is one thing that a daemon does.
type Part interface {
	// Prepare opens what the part needs, and says what is wrong with its settings. It is given the parts before it already prepared.
	Prepare(ctx context.Context) error
	// Run works until ctx ends, or has nothing to do and returns nil. An error ends the daemon; what may pass is logged and tried again.
	Run(ctx context.Context) error
	// Close gives back what Prepare has opened, when nothing runs any more. It is also called when Prepare has failed.
	Close()
}

// LedPart is a part whose work the daemon does that leads a database.
type LedPart interface {
	Part
	// Lead does the work of a term until ctx ends, or until it learns that the term is over, which ends ctx for the others. Run runs beside
	// it, over all terms, and its ctx ends when the last call of Lead has returned.
	Lead(ctx context.Context, term *Term)
}

// Simple is embedded by parts that have nothing to prepare, to run or to close.
type Simple struct{}

// Prepare does nothing.
func (Simple) Prepare(context.Context) error { return nil }

// Run does nothing.
func (Simple) Run(context.Context) error { return nil }

// Close does nothing.
func (Simple) Close() {}

// Run prepares parts in their order, calls ready, runs them beside each other until ctx ends or one of them fails, which ends the
// others, and closes them in the opposite order.
func Run(ctx context.Context, parts []Part, ready func()) error {
	prepared := 0
	defer func() {
		for _, part := range slices.Backward(parts[:prepared]) {
			part.Close()
		}
	}()
	for _, part := range parts {
		prepared++
		if err := part.Prepare(ctx); err != nil {
			return err
		}
	}
	ready()
	return Together(ctx, runs(parts)...)
}

// runs gives how to run some parts.
func runs[P Part](parts []P) []func(ctx context.Context) error {
	all := make([]func(ctx context.Context) error, len(parts))
	for i, part := range parts {
		all[i] = part.Run
	}
	return all
}

// Together runs functions beside each other until all have returned; one that fails ends the others.
func Together(ctx context.Context, runs ...func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	failures := make([]error, len(runs))
	var running sync.WaitGroup
	for i, run := range runs {
		running.Go(func() {
			if failures[i] = run(ctx); failures[i] != nil {
				stop()
			}
		})
	}
	running.Wait()
	return errors.Join(failures...)
}
