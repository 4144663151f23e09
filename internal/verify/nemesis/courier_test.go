//go:build unix

package nemesis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/transport"
	activationstore "github.com/parley-broker/parley/internal/store/activation"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
	"github.com/parley-broker/parley/parleytest"
)

// place is where a database is; after a failover it is elsewhere.
type place struct{ pool atomic.Pointer[pgxpool.Pool] }

func placeOf(pool *pgxpool.Pool) *place {
	p := &place{}
	p.pool.Store(pool)
	return p
}

// door is a database as a Deliverer, with nothing between: what the daemon's inbox does, and no more.
type door struct{ *place }

func (d door) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	return transportstore.AcceptArrival(ctx, d.pool.Load(), transportstore.Arrival{
		Speaker: batch.Speaker, Runs: batch.Runs, Identities: make([]string, len(batch.Runs)),
	})
}

func (d door) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, _ transport.Passage) (int64, error) {
	return transportstore.AcceptFragment(ctx, d.pool.Load(), fragment)
}

// courier is a transmitter under the control of a test: it carries what one database has to send to a faulty link into another,
// forgets what it was about to do, and is replaced by others.
type courier struct {
	t      testing.TB
	from   *place
	to     *faultyDeliverer
	random *rand.Rand
	term   int64
	name   string
	// faults reports that the databases may fail.
	faults bool
	// lives counts leaders.
	lives int
	// anew asks it to make itself a new leader.
	anew atomic.Bool
	// superseded counts runs that were refused because a newer term or epoch speaks.
	superseded atomic.Int64
}

// lead renews the courier's term; or makes it a new leader, as when a daemon has died. It leads not at once when another one does.
func (c *courier) lead(ctx context.Context, anew bool) (bool, error) {
	if anew && c.term != 0 {
		if err := activationstore.Resign(ctx, c.from.pool.Load(), c.term); err != nil {
			return false, err
		}
		c.term = 0
	}
	if c.term == 0 {
		c.lives++
		c.name = fmt.Sprint("courier ", c.lives)
	}
	term, leads, err := activationstore.Lead(ctx, c.from.pool.Load(), c.name, c.term, 3*time.Second, 0)
	c.term = term
	return leads, err
}

// carry moves what there is once: new runs, or all that was never acknowledged. It gives how many runs it moved.
func (c *courier) carry(ctx context.Context) (moved int, err error) {
	from := c.from.pool.Load()
	if leads, err := c.lead(ctx, c.anew.Swap(false) || !c.to.isHonest() && c.random.IntN(40) == 0); err != nil || !leads {
		return 0, err
	}
	if _, err := from.Exec(ctx, "select parley.fire_timers()"); err != nil {
		return 0, err
	}
	speaker, leads, err := transportstore.ReadSpeaker(ctx, from, c.term)
	if err != nil || !leads {
		return 0, err
	}
	destinations, err := transportstore.ReadDestinations(ctx, from)
	if err != nil {
		return 0, fmt.Errorf("read the destinations: %w", err)
	}
	for _, destination := range destinations {
		probes, err := transportstore.ReadProbes(ctx, from, destination.ID, 100)
		if err != nil {
			return moved, fmt.Errorf("read what to compare: %w", err)
		}
		if err := c.deliver(ctx, speaker, probes); err != nil && !errors.Is(err, errLost) {
			return moved, err
		}
		runs, err := c.take(ctx, destination.ID)
		if err != nil {
			return moved, err
		}
		moved += len(runs)
		if err := c.deliver(ctx, speaker, runs); err != nil && !errors.Is(err, errLost) {
			return moved, err
		}
	}
	return moved, nil
}

// take takes new runs and, now and then, whatever was not acknowledged.
func (c *courier) take(ctx context.Context, destination int32) ([]transportstore.Run, error) {
	rowsMax, bytesMax := 1+c.random.IntN(40), int64(1+c.random.IntN(100_000))
	runs, err := transportstore.TakeRuns(ctx, c.from.pool.Load(), c.term, destination, rowsMax, bytesMax)
	if err != nil {
		return nil, fmt.Errorf("take runs: %w", err)
	}
	if len(runs) > 0 && c.random.IntN(4) > 0 {
		return runs, nil
	}
	var afterEndpoint, afterSequence int64 = 0, -1
	for {
		page, err := transportstore.UnacknowledgedRuns(ctx, c.from.pool.Load(), destination, afterEndpoint, afterSequence, rowsMax, bytesMax)
		if err != nil {
			return nil, fmt.Errorf("read what is not acknowledged: %w", err)
		}
		if len(page) == 0 {
			return runs, nil
		}
		runs = append(runs, page...)
		last := page[len(page)-1]
		afterEndpoint, afterSequence = last.EndpointID, last.FirstSequence+int64(max(0, len(last.Bodies)-1))
	}
}

// deliver delivers runs, those that are too large in fragments, and reports to the database what the other one has.
func (c *courier) deliver(ctx context.Context, speaker transportstore.Speaker, runs []transportstore.Run) error {
	if len(runs) == 0 {
		return nil
	}
	for _, run := range runs {
		if run.Size > 0 {
			if err := c.deliverFragments(ctx, speaker, run); err != nil {
				return err
			}
		}
	}
	together := map[int64]int{}
	for _, run := range runs {
		together[run.EndpointID]++
	}
	results, err := c.to.Deliver(ctx, transport.Batch{Passage: transport.Outset(), Speaker: speaker, Runs: runs})
	if err != nil {
		return err
	}
	var acknowledged []transportstore.Acknowledgement
	for i, result := range results {
		if result.Outcome == transportstore.Superseded {
			c.superseded.Add(1)
		}
		if !c.to.isHonest() && c.random.IntN(6) == 0 {
			continue // this courier died before it could report it
		}
		acknowledged = append(acknowledged, transportstore.Acknowledgement{
			EndpointID: runs[i].EndpointID, FirstSequence: runs[i].FirstSequence, IsAlone: together[runs[i].EndpointID] == 1,
			IsProbe: runs[i].Probe != nil, Result: result,
		})
	}
	if !c.to.isHonest() && c.random.IntN(4) == 0 {
		c.random.Shuffle(len(acknowledged), func(i, j int) { acknowledged[i], acknowledged[j] = acknowledged[j], acknowledged[i] })
	}
	for again := true; again; again = !c.to.isHonest() && c.random.IntN(6) == 0 {
		if _, err := transportstore.AcknowledgeRuns(ctx, c.from.pool.Load(), c.term, acknowledged); err != nil {
			return fmt.Errorf("acknowledge: %w", err)
		}
	}
	return nil
}

func (c *courier) deliverFragments(ctx context.Context, speaker transportstore.Speaker, run transportstore.Run) error {
	for offset := int64(0); offset < run.Size; {
		data, err := transportstore.ReadBodyPart(ctx, c.from.pool.Load(), run.EndpointID, run.FirstSequence, offset, 1<<20)
		if err != nil {
			return fmt.Errorf("read a part of a body: %w", err)
		}
		stored, err := c.to.DeliverFragment(ctx, transportstore.Fragment{
			Speaker: speaker, ConversationID: run.ConversationID, FromInitiator: run.FromInitiator, Sequence: run.FirstSequence,
			Offset: offset, Size: run.Size, Data: data, ToService: run.ToService, ToBroker: run.ToBroker,
		}, transport.Outset())
		if err != nil {
			return err
		}
		if data == nil || stored < 0 {
			return nil // it has been acknowledged meanwhile, or is refused: the result of the run has the reason
		}
		offset = stored
	}
	return nil
}

// run carries until ctx ends.
func (c *courier) run(ctx context.Context) {
	for ctx.Err() == nil {
		moved, err := c.carry(ctx)
		if err != nil && ctx.Err() == nil && !harmless[code(err)] {
			if !c.faults || !isFault(err) {
				c.t.Errorf("courier: %v", err)
				return
			}
			c.term = 0
			pause(50 * time.Millisecond)
		}
		if moved == 0 {
			pause(5 * time.Millisecond)
		}
	}
}

// newPartyOf makes a party of a database of its own on the server of all tests.
func newPartyOf(t testing.TB, name string) (*party, *pgxpool.Pool) {
	t.Helper()
	pool := parleytest.Database(t)
	p := &party{name: name, at: func() string { return parleytest.DSN(t, pool) }}
	conn := connect(t, p.dsn())
	defer conn.Close(context.Background())
	prepare(t, conn)
	p.openServices(t, conn)
	return p, pool
}

// Batches, runs, fragments and answers are lost, repeated and turned round, and couriers die; keeps S1 to S8, S11, S12,
// S19, T3 to T5, L1.
func TestCourierWhoRepeatsTurnsRoundAndLosesChangesNothing(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{1, draw(t)} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			t.Parallel()
			courierRun(t, seed, 4*time.Second)
		})
	}
}

func courierRun(t *testing.T, seed uint64, duration time.Duration) {
	t.Helper()
	a, poolA := newPartyOf(t, "a")
	b, poolB := newPartyOf(t, "b")
	a.route(t, b, "tcp://b:4022")
	b.route(t, a, "tcp://a:4022")
	couriers := []*courier{
		{t: t, from: placeOf(poolA), to: newFaultyDeliverer(t, seed, door{placeOf(poolB)}), random: rand.New(rand.NewPCG(seed, 101))},
		{t: t, from: placeOf(poolB), to: newFaultyDeliverer(t, seed+1, door{placeOf(poolA)}), random: rand.New(rand.NewPCG(seed, 102))},
	}
	ctx, stopCouriers := context.WithCancel(t.Context())
	var carrying sync.WaitGroup
	for _, c := range couriers {
		carrying.Go(func() { c.run(ctx) })
	}
	work := newWorkload(t, seed, []*party{a, b})
	stop := work.run(1)
	pause(duration)
	stop()
	for _, c := range couriers {
		c.to.reform()
	}
	if !t.Failed() {
		work.drain()
	}
	stopCouriers()
	carrying.Wait()
	for _, c := range couriers {
		t.Logf("%d leaders; %s", c.lives, counts(c.to.did))
	}
	if t.Failed() {
		return
	}
	court := parleytest.Database(t)
	bench := connect(t, parleytest.DSN(t, court))
	defer bench.Close(context.Background())
	prepare(t, bench)
	h := work.judge(t, bench)
	t.Logf("%d messages sent, %d received, %d ends received, %s", len(h.Sent), len(h.Received), len(h.EndsReceived), counts(work.done))
	if len(h.Received) == 0 || len(h.EndsReceived) == 0 {
		t.Error("the workload did nothing")
	}
}
