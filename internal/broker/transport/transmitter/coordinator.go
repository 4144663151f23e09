package transmitter

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const (
	// unknownMax is how many ids are remembered as none of a destination.
	unknownMax = 10_000
	// unresolvedCost bounds what share of the time scans for unresolved conversations take.
	unresolvedCost = 20
	// unresolvedAtOnce is how many conversations are located in one go.
	unresolvedAtOnce = 500
)

// destination is the coordinator's record of a destination. While its worker runs it belongs to that.
type destination struct {
	transportstore.Destination

	worker *worker
	// isClean reports that the last worker has left nothing in transit that could be sent, and nothing has to be compared.
	isClean bool
	// probesSince is when the database was first seen to have something to compare.
	probesSince time.Time
	// notBefore is when it may be tried again after a failure; restUntil when it is worth a scan unless something is notified.
	notBefore, restUntil time.Time
	rests                int
}

// ended reports that a worker has ended, and how.
type ended struct {
	destination *destination
	verdict     verdict
}

// coordinator decides for which destinations workers run. All fields belong to its goroutine.
type coordinator struct {
	*Transmitter

	term         *daemon.Term
	notified     *notifier.Subscription
	unresolved   notifier.WakeUp // a conversation waits for a database that this daemon may know
	destinations map[int32]*destination
	unknown      map[int32]time.Time // ids that were notified and belong to no destination, and since when
	ended        chan ended
	stopped      chan struct{}
	working      sync.WaitGroup
	running      int
	senders      senders
	failures     backoff.Failures

	nextScan, nextUnresolved time.Time
	// superseded is under which name we must not speak any more.
	superseded *transportstore.Speaker
}

// run decides until ctx ends, and waits for the workers then.
func (c *coordinator) run(ctx context.Context) {
	working, stop := context.WithCancel(ctx)
	defer c.working.Wait()
	defer close(c.stopped)
	defer stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(c.act(working, time.Now())))
		select {
		case <-ctx.Done():
			return
		case id := <-c.notified.IDs:
			c.messageCame(working, id, time.Now())
		case <-c.notified.Missed:
			c.nextScan, c.nextUnresolved = time.Time{}, time.Time{}
			c.senders.demand.Unasked()
		case <-c.unresolved:
			c.nextUnresolved = time.Time{}
		case e := <-c.ended:
			c.workerEnded(working, e, time.Now())
		case <-timer.C:
		}
	}
}

// act does what is due, and returns when to act again.
func (c *coordinator) act(ctx context.Context, now time.Time) (next time.Time) {
	if !now.Before(c.nextScan) {
		c.nextScan = c.scan(ctx, now)
	}
	if c.Locate != nil && !now.Before(c.nextUnresolved) {
		c.nextUnresolved = c.resolve(ctx, now)
	}
	c.tendSenders(ctx, now)
	next = c.nextScan
	if c.term.Notifier.IsListening() && !c.senders.demand.IsPolling() {
		next = earliest(next, c.senders.nextAsk)
	}
	if c.Locate != nil {
		next = earliest(next, c.nextUnresolved)
	}
	for _, d := range c.destinations {
		if d.worker == nil && d.restUntil.After(now) {
			next = earliest(next, d.restUntil)
		}
	}
	return next
}

// messageCame records that a message was put on the lane of a destination. One that we know needs no scan. Queues without activation
// are notified of here too: an id that is then not found is taken for one of them, for a while.
func (c *coordinator) messageCame(ctx context.Context, id int32, now time.Time) {
	d := c.destinations[id]
	if d == nil && now.Sub(c.unknown[id]) < unknownTime {
		return
	}
	c.senders.notified(now, c.running)
	switch {
	case d == nil:
		if len(c.unknown) >= unknownMax {
			clear(c.unknown)
		}
		c.unknown[id] = now
		c.nextScan = time.Time{}
	case d.worker != nil:
		d.worker.more.Notify()
	case !now.Before(d.notBefore):
		c.start(ctx, d, now)
	}
}

// scan finds the destinations that have something to send, and starts workers for them.
func (c *coordinator) scan(ctx context.Context, now time.Time) (next time.Time) {
	if c.superseded != nil && !c.isNamedAnew(ctx) {
		return now.Add(notifier.SafetyInterval)
	}
	found, err := c.readDestinations(ctx)
	if err != nil {
		return c.senders.failed(now, c.failures.Failed(err))
	}
	c.failures.Succeeded()
	next = now.Add(notifier.SafetyInterval)
	for _, one := range found {
		d := c.destinations[one.ID]
		if d == nil {
			d = &destination{}
			c.destinations[one.ID] = d
			c.notified.Own(one.ID)
			delete(c.unknown, one.ID)
		}
		switch {
		case !one.HasProbes:
			d.probesSince = time.Time{}
		case d.probesSince.IsZero():
			d.probesSince = now
		}
		if d.worker != nil {
			d.worker.more.Notify()
			if one.HasProbes && now.Sub(d.probesSince) > stuckTime {
				// It has begun before there was something to compare, and may be kept at work by just that.
				d.probesSince = now
				d.worker.stop()
			}
			continue
		}
		d.Destination = one
		d.isClean = d.isClean && !one.HasProbes
		if one.Due > 0 {
			d.notBefore = now.Add(one.Due)
		}
		switch at := latest(d.notBefore, d.restUntil); {
		case at.After(now):
			next = earliest(next, at)
		default:
			c.start(ctx, d, now)
		}
	}
	c.senders.scanned(now, time.Since(now), len(found) > 0 && c.running > 0, c.running)
	return next
}

func (c *coordinator) readDestinations(ctx context.Context) (found []transportstore.Destination, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	return transportstore.ReadDestinations(ctx, c.pool.DB())
}

// start runs a worker for a destination.
func (c *coordinator) start(ctx context.Context, d *destination, now time.Time) {
	if c.superseded != nil {
		return
	}
	if !c.term.IsFresh() {
		// This process was paused, or the database does not answer: the next renewal of the lease reports whether we still lead.
		d.restUntil = now.Add(notifier.PollInterval)
		return
	}
	ctx, stop := context.WithCancel(ctx)
	w := &worker{
		Transmitter: c.Transmitter, destination: d, term: c.term.Number, window: newWindow(),
		answers: make(chan answer, travellingMax+largeMax), more: notifier.NewWakeUp(), demand: &c.senders.demand, stop: stop,
	}
	d.worker = w
	c.running++
	c.working.Go(func() {
		e := ended{destination: d, verdict: w.begin(ctx)}
		stop()
		select {
		case c.ended <- e:
		case <-c.stopped:
		}
	})
}

// workerEnded records how a worker has ended, and when its destination is to be scanned again.
func (c *coordinator) workerEnded(ctx context.Context, e ended, now time.Time) {
	d, v := e.destination, e.verdict
	isNotified := len(d.worker.more) > 0
	speaker := d.worker.speaker
	d.worker = nil
	d.isClean = v.isClean
	c.running--
	if v.worked {
		d.rests = 0
	}
	switch {
	case v.superseded != "":
		c.giveUp(ctx, speaker, d, v.superseded)
	case v.broken != nil:
		d.restUntil = now.Add(backoff.EmptyLane.Longest)
		if !errors.Is(v.broken, context.Canceled) && !errors.Is(v.broken, errTermOver) {
			d.restUntil = now.Add(c.failures.Failed(v.broken))
		}
	case v.failure != nil:
		c.Observer.AttemptFailed(d.Address, v.failure)
		// The others that this database could not reach should not all come at once.
		d.notBefore = now.Add(v.retryIn + backoff.Jitter(v.retryIn/8, 1))
		d.Attempts++
		transport.TransmissionFailed.In(c.Logger).Warn("messages could not be transmitted", "address", d.Address,
			"error", v.failure, "attempts", d.Attempts, "retry_in", v.retryIn)
	case v.again:
		d.restUntil, c.nextScan = time.Time{}, now
	case !v.isClean:
		d.restUntil = now.Add(stuckTime)
	case !v.worked && !isNotified:
		// It was said to have something; somebody holds it.
		d.rests++
		d.restUntil = now.Add(backoff.EmptyLane.Pause(d.rests))
	default:
		d.restUntil = time.Time{}
		if isNotified {
			c.nextScan = now
		}
	}
	c.nextScan = earliest(c.nextScan, latest(d.restUntil, d.notBefore, now.Add(notifier.PollInterval)))
}

// giveUp stops speaking under a name that somebody else has taken.
func (c *coordinator) giveUp(ctx context.Context, speaker transportstore.Speaker, d *destination, reason string) {
	if _, err := c.askSpeaker(ctx, c.term.Number); errors.Is(err, errTermOver) {
		return // another daemon leads, as it should
	}
	if c.superseded == nil {
		c.Logger.Error("another copy of this broker speaks for it; nothing is transmitted until this daemon leads anew or the copy is gone",
			"broker", speaker.Instance, "epoch", speaker.Epoch, "term", speaker.Term, "address", d.Address, "reason", reason)
		c.Observer.Superseded(true)
	}
	c.superseded = &speaker
	err := c.do(ctx, func(ctx context.Context, db parley.DB) error {
		_, err := transportstore.ReportAttempt(ctx, db, c.term.Number, d.ID, reason)
		return err
	})
	if err != nil && ctx.Err() == nil {
		c.failures.Failed(err)
	}
	for _, other := range c.destinations {
		if other.worker != nil {
			other.worker.stop()
		}
	}
}

// isNamedAnew reports whether we may speak again, because the database goes on under another epoch.
func (c *coordinator) isNamedAnew(ctx context.Context) bool {
	speaker, err := c.askSpeaker(ctx, c.term.Number)
	if err != nil || speaker == *c.superseded {
		return false
	}
	c.Logger.Info("this broker speaks again", "broker", speaker.Instance, "epoch", speaker.Epoch)
	c.Observer.Superseded(false)
	c.superseded = nil
	return true
}

// resolve finds the databases of conversations whose route is LOCAL, and returns when to scan for more.
func (c *coordinator) resolve(ctx context.Context, now time.Time) (next time.Time) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	unresolved, err := transportstore.ReadUnresolved(ctx, c.pool.DB(), unresolvedAtOnce)
	var locations []Location
	if err == nil && len(unresolved) > 0 {
		locations, err = c.Locate(ctx, unresolved)
	}
	bound := map[Location][]int64{}
	for i, location := range locations {
		bound[location] = append(bound[location], unresolved[i].EndpointID)
	}
	found := false
	for location, endpoints := range bound {
		if err == nil {
			err = c.pool.Do(ctx, func(conn *pgx.Conn) error {
				return transportstore.BindConversations(ctx, conn, c.term.Number, endpoints, location.Address, location.Status)
			})
		}
		if location.Address != "" {
			c.nextScan, found = now, true
		}
	}
	switch {
	case err != nil:
		return now.Add(c.failures.Failed(err))
	case len(unresolved) == unresolvedAtOnce && found:
		return now
	case c.senders.demand.IsPolling() || !c.term.Notifier.IsListening():
		return now.Add(max(notifier.WatchInterval, unresolvedCost*time.Since(now)))
	}
	return now.Add(max(notifier.SafetyInterval, unresolvedCost*time.Since(now)))
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}

func latest(last time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.After(last) {
			last = t
		}
	}
	return last
}
