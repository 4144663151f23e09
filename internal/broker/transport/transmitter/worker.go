package transmitter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/notifier"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const (
	// The most that a destination holds in memory and in transit, about; and the most that is taken from its lane at once.
	windowRows  = 8000
	windowBytes = 4 << 20
	takeRows    = 1000
	takeBytes   = 1 << 20
	// The batches that travel at once: to each target so many, to all of them together no more than a server takes from one peer.
	batchRows     = 1000
	batchBytes    = 512 << 10
	batchesMax    = 4
	largeMax      = 2
	travellingMax = 16
)

// worker transmits to one destination, for as long as there is something to do. All fields belong to one goroutine; deliveries
// run beside it.
type worker struct {
	*Transmitter
	destination *destination
	speaker     transportstore.Speaker
	term        int64
	way         Way
	stop        context.CancelFunc

	window           *window
	acknowledgements []transportstore.Acknowledgement
	answers          chan answer
	more             notifier.WakeUp  // there may be something on the lane
	demand           *notifier.Demand // while it is polling nobody is notified of what is put on a lane
	travelling       int              // batches
	largeTravelling  int
	delivering       sync.WaitGroup

	probes    bool // conversations are compared with their far sides, and nothing else is sent
	isFull    bool // the last take left something on the lane, as far as is known
	isDry     bool // it did not, and nothing was notified since
	takeDue   time.Time
	answerDue time.Time
	filledAt  time.Time // when the lane had something last
	worked    bool
	reload    cursor
	failure   error // of the destination
}

// cursor is how far what was left in transit has been read.
type cursor struct {
	isDone             bool
	endpoint, sequence int64
}

// answer is the outcome of a batch.
type answer struct {
	pieces  []piece
	isLarge bool
	results []transportstore.Result
	err     error
}

// verdict is how a worker has ended.
type verdict struct {
	// isClean reports that nothing is in transit that could be sent now.
	isClean bool
	worked  bool
	// again reports that there is more to read at once.
	again bool
	// failure is of the destination, broken of the database or of this daemon.
	failure, broken error
	retryIn         time.Duration
	superseded      string
}

// begin finds out in whose name to speak and how to get to the destination, and transmits.
func (w *worker) begin(ctx context.Context) verdict {
	err := w.ask(ctx)
	if err != nil {
		return verdict{broken: err}
	}
	if w.way, err = w.Resolve(w.destination.Address); err != nil {
		w.failure = err
	}
	return w.run(ctx)
}

// errTermOver means that another daemon leads, or is about to.
var errTermOver = errors.New("the term of this daemon is over")

// errSuperseded means that another daemon, or another copy of the database, speaks for it.
var errSuperseded = errors.New("superseded")

// run transmits until nothing is left, the destination fails, or ctx ends.
func (w *worker) run(ctx context.Context) (v verdict) {
	delivering, cut := context.WithCancel(ctx)
	defer w.delivering.Wait()
	defer cut()
	err := w.work(ctx, delivering)
	var deadline *time.Timer
	if w.travelling > 0 {
		// A run that has been answered need not be sent again.
		deadline = time.AfterFunc(lastAnswers, cut)
		for w.travelling > 0 {
			if late := w.take(<-w.answers); err == nil {
				err = late
			}
		}
		deadline.Stop()
	}
	switch {
	case ctx.Err() != nil:
		return verdict{broken: ctx.Err()}
	case errors.Is(err, errSuperseded):
		v.superseded = err.Error()
	case err != nil:
		return verdict{broken: err, worked: w.worked}
	}
	if len(w.acknowledgements) > 0 {
		if err := w.acknowledge(ctx); err != nil {
			return verdict{broken: err, worked: w.worked}
		}
	}
	v.worked = w.worked
	v.isClean = w.failure == nil && v.superseded == "" && len(w.window.conversations) == 0 && len(w.window.left) == 0 &&
		!w.probes
	v.again = w.window.hasProbed
	if w.failure != nil {
		v.failure = w.failure
		v.retryIn, v.broken = w.reportAttempt(ctx, w.failure.Error())
	}
	return v
}

// work is the loop of a worker.
func (w *worker) work(ctx, delivering context.Context) error {
	w.reload.isDone = w.destination.isClean
	w.reload.sequence = -1
	if !w.reload.isDone {
		if err := w.readProbes(ctx); err != nil {
			return err
		}
	}
	for w.failure == nil {
		again := w.window.recall(time.Now())
		w.dispatch(delivering)
		isDone, err := w.step(ctx, again)
		if isDone || err != nil {
			return err
		}
		if err := w.takeAll(); err != nil {
			return err
		}
	}
	return nil
}

// step does what is to be done next, or waits. It is done when there is nothing to wait for; again is when something becomes due.
func (w *worker) step(ctx context.Context, again time.Time) (isDone bool, err error) {
	hasRoom := w.window.hasRoom(time.Now()) && !w.probes
	mayTake := hasRoom && (!w.isDry || w.lingers())
	switch {
	case len(w.acknowledgements) > 0 && (!mayTake || !time.Now().Before(w.answerDue)):
		return false, w.acknowledge(ctx)
	case hasRoom && !w.reload.isDone:
		return false, w.readUnacknowledged(ctx)
	case mayTake && w.isTakeDue():
		return false, w.takeRuns(ctx)
	case w.travelling == 0 && again.IsZero() && !mayTake:
		return true, nil
	}
	if late := w.window.nextLate(time.Now()); !hasRoom && !late.IsZero() && (again.IsZero() || late.Before(again)) {
		again = late
	}
	return false, w.wait(ctx, mayTake, again)
}

// lingers reports whether to try to take from an empty lane again: while senders do not notify, somebody has to scan, and where something
// came just now, taking the next is cheaper than a scan before it. Messages that were left alone are for the next worker.
func (w *worker) lingers() bool {
	return len(w.window.left) == 0 && w.demand.IsPolling() && time.Since(w.filledAt) < quietTime
}

// takeAll takes in the answers that are there.
func (w *worker) takeAll() error {
	for w.travelling > 0 {
		select {
		case a := <-w.answers:
			if err := w.take(a); err != nil {
				return err
			}
		default:
			return nil
		}
	}
	return nil
}

// isTakeDue reports whether it is time to take from the lane: messages that come while others travel are better taken together.
func (w *worker) isTakeDue() bool {
	return w.isFull || w.travelling == 0 && !w.isDry || !time.Now().Before(w.takeDue)
}

// wait waits for an answer, or for news.
func (w *worker) wait(ctx context.Context, mayTake bool, again time.Time) error {
	if mayTake && (again.IsZero() || w.takeDue.Before(again)) {
		again = w.takeDue
	}
	if len(w.acknowledgements) > 0 && (again.IsZero() || w.answerDue.Before(again)) {
		again = w.answerDue
	}
	var pause <-chan time.Time
	if !again.IsZero() {
		pause = time.After(time.Until(again))
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case a := <-w.answers:
		return w.take(a)
	case <-w.more:
		w.isDry = false
	case <-pause:
	}
	return nil
}

// dispatch sends what can be sent.
func (w *worker) dispatch(ctx context.Context) {
	for w.failure == nil && w.travelling-w.largeTravelling < travellingMax {
		pieces := w.window.compose(batchRows, batchBytes, time.Now())
		if len(pieces) == 0 {
			break
		}
		w.travelling++
		w.delivering.Go(func() { w.answers <- w.deliver(ctx, pieces) })
	}
	for w.failure == nil && w.largeTravelling < largeMax {
		large, found := w.window.composeLarge(time.Now())
		if !found {
			break
		}
		w.travelling++
		w.largeTravelling++
		w.delivering.Go(func() { w.answers <- w.deliverLarge(ctx, large) })
	}
}

// take takes in an answer.
func (w *worker) take(a answer) error {
	w.travelling--
	if a.isLarge {
		w.largeTravelling--
	}
	w.window.arrive(a.pieces, a.isLarge, time.Now())
	if a.err != nil {
		w.window.release(a.pieces)
		if broken, ok := errors.AsType[databaseError](a.err); ok {
			return broken
		}
		if w.failure == nil {
			w.failure = a.err
		}
		return nil
	}
	w.worked = true
	acknowledgements, isSuperseded := w.window.answer(a.pieces, a.results, time.Now())
	w.acknowledgements = append(w.acknowledgements, acknowledgements...)
	if slices.ContainsFunc(acknowledgements, func(a transportstore.Acknowledgement) bool {
		return a.Result.Outcome != transportstore.Accepted
	}) {
		// The database is to hold back the rest of such a conversation before more of it is taken.
		w.answerDue = time.Time{}
	}
	if isSuperseded {
		return fmt.Errorf("%w: %s", errSuperseded, describe(a.results))
	}
	w.Observer.Answered(a.results)
	return nil
}

// describe gives the reason why a batch was answered Superseded.
func describe(results []transportstore.Result) string {
	for _, result := range results {
		if result.Outcome == transportstore.Superseded {
			return result.Description
		}
	}
	return ""
}

// databaseError is a failure of our own database, for which no destination is to blame.
type databaseError struct{ error }

func (e databaseError) Unwrap() error { return e.error }
