package demo

import (
	"context"
	"sync"
)

// crew is goroutines with one fate: when one fails, the context of all ends, and its error is the cause.
type crew struct {
	fail    context.CancelCauseFunc
	working sync.WaitGroup
}

func newCrew(ctx context.Context) (*crew, context.Context) {
	ctx, fail := context.WithCancelCause(ctx)
	return &crew{fail: fail}, ctx
}

// start runs work in a goroutine of its own.
func (c *crew) start(work func() error) {
	c.working.Go(func() {
		if err := work(); err != nil {
			c.fail(err)
		}
	})
}

// each runs work for all items at once, and returns when all are done.
func each[T any](ctx context.Context, items []T, work func(context.Context, T) error) error {
	c, ctx := newCrew(ctx)
	for _, item := range items {
		c.start(func() error { return work(ctx, item) })
	}
	c.working.Wait()
	defer c.fail(nil)
	return context.Cause(ctx)
}
