package faultinjection

import (
	"context"
	"sync"

	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Deliver implements transport.Deliverer.
func (c *Courier) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	defer c.release()
	defer c.remember(batch)
	switch fault := c.fate(Faults()); fault {
	case Lose:
		return nil, errFault
	case Mute:
		_, _ = c.Next.Deliver(ctx, batch)
		return nil, errFault
	case Late:
		kept, ctx := copied(batch), context.WithoutCancel(ctx)
		c.postpone(func() { _, _ = c.Next.Deliver(ctx, kept) })
		return nil, errFault
	case Repeat:
		for range 1 + c.number(2) {
			if results, err := c.Next.Deliver(ctx, batch); c.number(3) == 0 {
				return results, err
			}
		}
		return c.Next.Deliver(ctx, batch)
	case Race:
		return c.race(ctx, batch)
	case Shuffle:
		return c.shuffle(ctx, batch)
	case Truncate:
		batch.Runs = batch.Runs[:c.number(len(batch.Runs)+1)]
		if len(batch.Runs) > 0 {
			_, _ = c.Next.Deliver(ctx, batch)
		}
		return nil, errFault
	case Echo, Stale, Forge:
		c.speakOfOld(ctx, fault)
		return c.Next.Deliver(ctx, batch)
	default:
		return c.Next.Deliver(ctx, batch)
	}
}

// race delivers twice at the same time.
func (c *Courier) race(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	var other sync.WaitGroup
	defer other.Wait()
	other.Go(func() { _, _ = c.Next.Deliver(ctx, batch) })
	return c.Next.Deliver(ctx, batch)
}

// shuffle turns the runs over, and their results back.
func (c *Courier) shuffle(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	c.mu.Lock()
	order := c.random.Perm(len(batch.Runs))
	c.mu.Unlock()
	shuffled := batch
	shuffled.Runs = make([]transportstore.Run, len(order))
	for i, from := range order {
		shuffled.Runs[i] = batch.Runs[from]
	}
	results, err := c.Next.Deliver(ctx, shuffled)
	if err != nil || len(results) != len(order) {
		return nil, err
	}
	back := make([]transportstore.Result, len(order))
	for i, from := range order {
		back[from] = results[i]
	}
	return back, nil
}

// speakOfOld delivers something from the past, perhaps with an epoch or term that is over.
func (c *Courier) speakOfOld(ctx context.Context, fault Fault) {
	batch, found := c.old()
	if !found {
		return
	}
	switch {
	case fault == Forge:
		batch.Speaker.Token[0] ^= 0xff
	case fault == Stale && batch.Speaker.Epoch > 0 && c.number(2) == 0:
		batch.Speaker.Epoch--
	case fault == Stale && batch.Speaker.Term > 0:
		batch.Speaker.Term--
	}
	results, err := c.Next.Deliver(ctx, batch)
	if c.OnFaultAnswer != nil {
		c.OnFaultAnswer(fault, batch, results, err)
	}
}

// DeliverFragment implements transport.Deliverer.
func (c *Courier) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	defer c.release()
	switch c.fate([]Fault{Lose, Mute, Late, Repeat, Truncate}) {
	case Lose:
		return 0, errFault
	case Mute:
		_, _ = c.Next.DeliverFragment(ctx, fragment, passage)
		return 0, errFault
	case Late:
		kept, ctx := fragment, context.WithoutCancel(ctx)
		kept.Data = append([]byte(nil), fragment.Data...)
		c.postpone(func() { _, _ = c.Next.DeliverFragment(ctx, kept, passage) })
		return 0, errFault
	case Repeat:
		_, _ = c.Next.DeliverFragment(ctx, fragment, passage)
		return c.Next.DeliverFragment(ctx, fragment, passage)
	case Truncate:
		if fragment.Security == nil { // a part of what is sealed opens nothing
			fragment.Data = fragment.Data[:c.number(len(fragment.Data)+1)]
			_, _ = c.Next.DeliverFragment(ctx, fragment, passage)
		}
		return 0, errFault
	default:
		return c.Next.DeliverFragment(ctx, fragment, passage)
	}
}
