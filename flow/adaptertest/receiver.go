package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-broker/parley/flow/adapter"
)

// Source is where a location takes messages from.
type Source struct {
	Kind     adapter.Kind
	Endpoint adapter.Endpoint
	// Put offers an input with a body, and returns when it is offered. A source that waits for an answer offers it again, in the background,
	// until the answer says that it was taken.
	Put func(body string)
	// Left gives how many inputs are at the source; nil where it keeps none.
	Left func() int
	// HasKeys says that the ledger knows an input that comes again: it is taken once.
	HasKeys bool
}

// CheckReceiver holds the receivers of an adapter to the rules.
func CheckReceiver(t *testing.T, s Source) {
	t.Helper()
	in := &Intake{}
	stop := s.run(t, in)
	s.Put("one")
	s.Put("two")
	s.untilTaken(t, in, "one", "two")

	// An intake that is away loses nothing.
	var refusals atomic.Int64
	in.setRefuse(func([]adapter.Input) error {
		if refusals.Add(1) <= 2 {
			return errors.New("the database is away")
		}
		return nil
	})
	s.Put("three")
	s.untilTaken(t, in, "one", "three", "two")
	if refusals.Load() < 3 {
		t.Errorf("adapter %s has dropped an input that was not taken", s.Kind.Name)
	}

	// Nothing is taken while intake is throttled, but for an input for which the receiver was waiting already.
	in.Throttle(true)
	s.Put("four")
	<-time.After(quiet)
	s.Put("five")
	<-time.After(quiet)
	if slices.Contains(in.Bodies(), "five") {
		t.Errorf("adapter %s takes inputs while intake is throttled", s.Kind.Name)
	}
	in.Throttle(false)
	s.untilTaken(t, in, "five", "four", "one", "three", "two")

	if err := stop(); err != nil {
		t.Errorf("adapter %s ends with its context by the error %v", s.Kind.Name, err)
	}
	if s.HasKeys {
		s.crash(t, in)
	}
}

// quiet is how long nothing is to happen.
const quiet = 300 * time.Millisecond

// run runs receivers, one after the other, as a host does: one that fails is begun again.
func (s Source) run(t *testing.T, in adapter.Intake) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		for {
			made, err := s.Kind.NewReceiver(s.Endpoint)
			if err == nil {
				err = made.Run(ctx, in)
			}
			if ctx.Err() != nil {
				ended <- err
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	var isStopped bool
	stop = func() error {
		if isStopped {
			return nil
		}
		isStopped = true
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(Patience):
			return fmt.Errorf("a receiver of adapter %s does not end", s.Kind.Name)
		}
	}
	t.Cleanup(func() { _ = stop() })
	return stop
}

// crash ends the process between the commit and what follows it.
func (s Source) crash(t *testing.T, in *Intake) {
	t.Helper()
	before := len(in.Bodies())
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	defer cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// One that ends before, for want of a connection, is begun again, as a host does.
		for ctx.Err() == nil {
			if made, err := s.Kind.NewReceiver(s.Endpoint); err == nil {
				_ = made.Run(ctx, &dying{in, cancel})
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	s.Put("six")
	select {
	case <-ended:
	case <-time.After(Patience):
		t.Fatalf("a receiver of adapter %s does not end", s.Kind.Name)
	}
	if got := len(in.Bodies()); got != before+1 {
		t.Fatalf("%d inputs are taken before the crash, and not %d", got, before+1)
	}
	stop := s.run(t, in)
	s.Put("seven")
	s.untilTaken(t, in, "five", "four", "one", "seven", "six", "three", "two")
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// dying is an intake whose process ends when it has taken something.
type dying struct {
	*Intake
	end func()
}

// Take takes, and the process ends before it can say so.
func (d *dying) Take(ctx context.Context, inputs []adapter.Input) ([]adapter.Result, error) {
	if _, err := d.Intake.Take(ctx, inputs); err != nil {
		return nil, err
	}
	d.end()
	return nil, context.Canceled
}

// Removed is not reached any more.
func (d *dying) Removed(context.Context, []string) error { return context.Canceled }

// untilTaken waits until so many inputs are taken, and requires their bodies, sorted.
func (s Source) untilTaken(t *testing.T, in *Intake, want ...string) {
	t.Helper()
	until(t, fmt.Sprintf("adapter %s has taken %d inputs", s.Kind.Name, len(want)), func() bool { return len(in.Bodies()) >= len(want) })
	if s.Left != nil {
		until(t, fmt.Sprintf("the sources of adapter %s are removed", s.Kind.Name), func() bool { return s.Left() == 0 })
	}
	got := in.Bodies()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("adapter %s has taken %q, and not %q", s.Kind.Name, got, want)
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}
