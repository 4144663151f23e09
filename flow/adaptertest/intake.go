// Package adaptertest holds the rules that an adapter of the integration engine keeps, as tests: an adapter of a team passes them as those
// of Parley do. [CheckKind] is about definitions, [CheckReceiver] about locations, [CheckSender] about ports; [Intake] is a host of tests.
package adaptertest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/flow/adapter"
)

// Intake is a host of tests: what it takes is in a list, and in a ledger that outlives receivers.
type Intake struct {
	// Refuse, where it is set, is asked before a batch is taken; its error is that of Take, and nothing happens.
	Refuse func(inputs []adapter.Input) error
	// Answer, where it is set, answers requests: clients wait for what it gives.
	Answer func(result adapter.Result, input adapter.Input, gone <-chan struct{}) adapter.Reply

	mu          sync.Mutex
	taken       []Taken
	rows        map[string]*row
	order       []string
	isThrottled bool
	released    chan struct{}
}

// Taken is an input that was taken, with its body read.
type Taken struct {
	Input adapter.Input
	Body  string
}

type row struct {
	message   int64
	entry     json.RawMessage
	isRemoved bool
}

// setRefuse sets Refuse while receivers run.
func (i *Intake) setRefuse(refuse func(inputs []adapter.Input) error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Refuse = refuse
}

// Bodies gives the bodies that were taken, in their order.
func (i *Intake) Bodies() []string {
	var bodies []string
	for _, t := range i.Inputs() {
		bodies = append(bodies, t.Body)
	}
	return bodies
}

// Inputs gives what was taken, in its order.
func (i *Intake) Inputs() []Taken {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.taken)
}

// Throttle begins or ends the throttling of intake.
func (i *Intake) Throttle(isThrottled bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if isThrottled && !i.isThrottled {
		i.released = make(chan struct{})
	} else if !isThrottled && i.isThrottled {
		close(i.released)
	}
	i.isThrottled = isThrottled
}

// Await waits while intake is throttled.
func (i *Intake) Await(ctx context.Context) error {
	i.mu.Lock()
	released, isThrottled := i.released, i.isThrottled
	i.mu.Unlock()
	if !isThrottled {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-released:
		return nil
	}
}

// Throttled reports whether intake is throttled.
func (i *Intake) Throttled() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.isThrottled
}

// Known gives those of keys that the ledger has.
func (i *Intake) Known(_ context.Context, keys []string) (map[string]bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known := map[string]bool{}
	for _, key := range keys {
		if i.rows[key] != nil {
			known[key] = true
		}
	}
	return known, nil
}

// Taken gives what was taken and is not removed.
func (i *Intake) Taken(context.Context) ([]adapter.Entry, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	var entries []adapter.Entry
	for _, key := range i.order {
		if r := i.rows[key]; !r.isRemoved {
			entries = append(entries, adapter.Entry{Key: key, Entry: r.entry})
		}
	}
	return entries, nil
}

// Removed records that sources are gone.
func (i *Intake) Removed(_ context.Context, keys []string) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, key := range keys {
		if r := i.rows[key]; r != nil {
			r.isRemoved = true
		}
	}
	return nil
}

// Take takes all inputs, or none where one cannot be read.
func (i *Intake) Take(ctx context.Context, inputs []adapter.Input) ([]adapter.Result, error) {
	i.mu.Lock()
	refuse := i.Refuse
	i.mu.Unlock()
	if refuse != nil {
		if err := refuse(inputs); err != nil {
			return nil, err
		}
	}
	bodies := make([]string, len(inputs))
	for n, input := range inputs {
		body, err := read(ctx, input)
		if err != nil {
			return nil, err
		}
		bodies[n] = body
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.rows == nil {
		i.rows = map[string]*row{}
	}
	results := make([]adapter.Result, len(inputs))
	for n, input := range inputs {
		if r := i.rows[input.Key]; input.Key != "" && r != nil {
			results[n] = adapter.Result{Outcome: adapter.Repeated, Message: r.message}
			continue
		}
		i.taken = append(i.taken, Taken{input, bodies[n]})
		results[n] = adapter.Result{Outcome: adapter.Published, Message: int64(len(i.taken)), Messages: 1}
		if input.Failure != nil {
			results[n].Outcome, results[n].Failure = adapter.Suspended, input.Failure
		}
		if input.Key != "" {
			i.rows[input.Key] = &row{message: results[n].Message, entry: input.Entry, isRemoved: input.Entry == nil}
			i.order = append(i.order, input.Key)
		}
	}
	return results, nil
}

// TakeIn is for adapters of databases.
func (i *Intake) TakeIn(context.Context, adapter.Transaction, []adapter.Input) ([]adapter.Result, error) {
	return nil, fmt.Errorf("this intake has no transactions, and took %d inputs in none", len(i.Inputs()))
}

// Responds reports whether there is something that answers.
func (i *Intake) Responds() bool { return i.Answer != nil }

// Request takes an input, and gives the answer to it.
func (i *Intake) Request(ctx context.Context, input adapter.Input, gone <-chan struct{}) (adapter.Reply, error) {
	results, err := i.Take(ctx, []adapter.Input{input})
	if err != nil {
		return adapter.Reply{}, err
	}
	return i.Answer(results[0], input, gone), nil
}

func read(ctx context.Context, input adapter.Input) (string, error) {
	if input.Open == nil {
		return string(input.Body), nil
	}
	opened, err := input.Open(ctx)
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(opened)
	if closeErr := opened.Close(); err == nil {
		err = closeErr
	}
	if err == nil && input.Size >= 0 && int64(len(body)) != input.Size {
		err = fmt.Errorf("the input has %d bytes, and said that it has %d", len(body), input.Size)
	}
	return string(body), err
}

// Keys gives the keys of the ledger, sorted.
func (i *Intake) Keys() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Sorted(maps.Keys(i.rows))
}

// Patience is how long a test waits for a state.
const Patience = time.Minute
