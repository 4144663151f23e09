//go:build unix

package nemesis_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/verify/checker"
)

// lostHistory are the codes of the Errors with which a dialog may end whose history was lost: on the side that lost it, on the other
// one, and where the other one has forgotten the dialog altogether.
var lostHistory = []int32{-9719, -9720, -8462}

// pair is party a on a server that fails over, and party b on another one, with honest couriers or with daemons between them.
type pair struct {
	t                testing.TB
	primary, standby *server
	other            *server
	a, b             *party
	places           [2]*place // of a and of b
	couriers         [2]*courier
	work             *workload
	stop             func()
}

// newPair starts two servers and a standby of the first, synchronous or not.
func newPair(t testing.TB, isSynchronous bool) *pair {
	t.Helper()
	p := &pair{t: t}
	var starting sync.WaitGroup
	starting.Go(func() {
		p.primary = newServer(t, "primary")
		p.primary.createDatabase(t, "a")
		p.standby = p.primary.copyTo(t, "standby", true)
	})
	starting.Go(func() {
		p.other = newServer(t, "other")
		p.other.createDatabase(t, "b")
	})
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	if isSynchronous {
		p.primary.administer(t, "alter system set synchronous_standby_names = 'standby'", "select pg_reload_conf()")
	}
	p.a = &party{name: "a", at: func() string { return p.primary.DSN("a") }}
	p.b = &party{name: "b", at: func() string { return p.other.DSN("b") }}
	for _, each := range []*party{p.a, p.b} {
		conn := connect(t, each.dsn())
		each.openServices(t, conn)
		_ = conn.Close(context.Background())
	}
	p.a.route(t, p.b, "tcp://b:4022")
	p.b.route(t, p.a, "tcp://a:4022")
	p.places = [2]*place{placeOf(p.pool(p.a.dsn())), placeOf(p.pool(p.b.dsn()))}
	p.couriers = [2]*courier{p.courier(p.places[0], p.places[1]), p.courier(p.places[1], p.places[0])}
	p.work = newWorkload(t, 1, []*party{p.a, p.b})
	p.carry()
	return p
}

func (p *pair) pool(dsn string) *pgxpool.Pool {
	p.t.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(pool.Close)
	return pool
}

func (p *pair) courier(from, to *place) *courier {
	c := &courier{t: p.t, from: from, to: newFaultyDeliverer(p.t, 1, door{to}), random: rand.New(rand.NewPCG(1, 1)), faults: true}
	c.to.reform()
	return c
}

// carry lets the couriers work until stop is called, or the test ends.
func (p *pair) carry() {
	ctx, cancel := context.WithCancel(context.Background())
	var carrying sync.WaitGroup
	for _, c := range p.couriers {
		carrying.Go(func() { c.run(ctx) })
	}
	p.stop = func() {
		cancel()
		carrying.Wait()
	}
	p.t.Cleanup(func() { p.stop() })
}

// failOver ends the primary on the spot and promotes the standby, to which a's address leads from then on.
func (p *pair) failOver() {
	p.t.Helper()
	p.primary.stopImmediately(p.t)
	// Messages that a has acknowledged to b, and that b has forgotten because of that, are to be found in the standby.
	if !p.work.lossy {
		p.work.observed.Acknowledged = p.couriers[1].to.marks()
		p.work.observed.Forgotten = p.marks(p.b, `
			select e.conversation_id::text, e.is_initiator, (parley._p_positions(e.endpoint_id)).kept
			from parley._p_endpoint as e
			where e.far_endpoint_id < 0`)
	}
	p.standby.promote(p.t)
	p.a.move(p.standby)
	if !p.work.lossy {
		p.work.observed.Expects = p.marks(p.a, `
			select e.conversation_id::text, not e.is_initiator, (parley._p_positions(e.endpoint_id)).expected
			from parley._p_endpoint as e
			where e.far_endpoint_id < 0`)
	}
	if p.places[0] != nil {
		p.places[0].pool.Store(p.pool(p.a.dsn()))
	}
}

// marks reads places in the directions of a party's dialogs.
func (p *pair) marks(of *party, query string) []checker.Mark {
	p.t.Helper()
	conn := connect(p.t, of.dsn())
	defer conn.Close(context.Background())
	rows, err := conn.Query(context.Background(), query)
	if err != nil {
		p.t.Fatal(err)
	}
	marks, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (m checker.Mark, err error) {
		err = row.Scan(&m.Dialog, &m.FromInitiator, &m.Next)
		return m, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return marks
}

// move reports that a party is on another server now.
func (p *party) move(to *server) {
	name := p.name
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = func() string { return to.DSN(name) }
}

// awaitReplicated waits until the standby has all that the primary has.
func (p *pair) awaitReplicated() {
	p.t.Helper()
	primary, standby := connect(p.t, p.primary.DSN("postgres")), connect(p.t, p.standby.DSN("postgres"))
	defer primary.Close(context.Background())
	defer standby.Close(context.Background())
	end := ask[string](p.t, primary, "select pg_current_wal_lsn()::text")
	await(p.t, "the standby has caught up", func() bool {
		return ask[bool](p.t, standby, "select pg_last_wal_replay_lsn() >= $1::pg_lsn", end)
	})
}

// cutReplication cuts the standby off its primary.
func (p *pair) cutReplication() {
	p.t.Helper()
	p.standby.administer(p.t, "alter system set primary_conninfo = ''", "select pg_reload_conf()")
	conn := connect(p.t, p.primary.DSN("postgres"))
	defer conn.Close(context.Background())
	await(p.t, "replication is cut", func() bool { return ask[int](p.t, conn, "select count(*)::int from pg_stat_replication") == 0 })
}

// hand is one session that does what a test asks, in transactions of one statement.
type hand struct {
	t    testing.TB
	conn *pgx.Conn
	name string
}

func (p *pair) hand(of *party, name string) *hand {
	p.t.Helper()
	h := &hand{t: p.t, conn: connect(p.t, of.dsn()), name: name}
	p.t.Cleanup(func() { _ = h.conn.Close(context.Background()) })
	return h
}

// begin begins a dialog and gives its handle and its id.
func (h *hand) begin(from, to string) (handle, dialog string) {
	h.t.Helper()
	handle = ask[string](h.t, h.conn, "select parley.begin_dialog($1, $2)::text", from+"/initiator", to+"/target")
	return handle, ask[string](h.t, h.conn, "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1::uuid", handle)
}

func (h *hand) send(handle string) {
	h.t.Helper()
	must(h.t, h.conn, "select ledger.send($1::uuid, $2, $3, 1)", handle, h.name, fmt.Sprint(rand.Uint64()))
}

// receive receives until a number of messages of a dialog have come, and gives the handle of this side.
func (h *hand) receive(queue, dialog string, n int) (handle string) {
	h.t.Helper()
	await(h.t, fmt.Sprintf("%d messages of %s in %s", n, dialog, queue), func() bool {
		must(h.t, h.conn, "select ledger.receive($1, null)", queue)
		return ask[int](h.t, h.conn, `
			select count(*)::int from ledger.received where dialog = $1::uuid and from_initiator = ($2 = 'target_queue')`, dialog, queue) >= n
	})
	return ask[string](h.t, h.conn, `
		select conversation_handle::text
		from parley.conversation_endpoints
		where conversation_id = $1::uuid and (is_initiator = 0) = ($2 = 'target_queue')`, dialog, queue)
}

// awaitAcknowledged waits until nothing is on its way from a party any more.
func (h *hand) awaitAcknowledged() {
	h.t.Helper()
	await(h.t, "all is acknowledged", func() bool {
		return ask[int](h.t, h.conn, "select count(*)::int from parley.transmission_queue") == 0
	})
}

// judge drains, brings the ledgers together, and judges.
func (p *pair) judge() checker.History {
	p.t.Helper()
	p.work.drain()
	p.stop()
	p.other.createDatabase(p.t, "court")
	bench := connect(p.t, p.other.DSN("court"))
	defer bench.Close(context.Background())
	return p.work.judge(p.t, bench)
}

// Keeps F2: what both sides agree on goes on; what one of them has lost ends with an Error on both; nothing is skipped or repeated.
func TestAsynchronousFailoverEndsWhatLostHistoryAndNothingElse(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	newPair(t, false).loseHistory(t)
}

// loseHistory lets a fail over to a standby that lacks the last messages, in all roles of a, and checks what becomes of the dialogs.
func (p *pair) loseHistory(t testing.TB) {
	t.Helper()
	p.work.lossy = true
	p.work.observed.LostHistory = lostHistory
	atA, atB := p.hand(p.a, "hand a"), p.hand(p.b, "hand b")

	// Calm dialogs send something before, and something after.
	type calm struct{ handle, target, dialog string }
	var calms []calm
	open := func() calm {
		handle, dialog := atA.begin("a", "b")
		atA.send(handle)
		target := atB.receive("target_queue", dialog, 1)
		atB.send(target)
		atA.receive("initiator_queue", dialog, 1)
		return calm{handle, target, dialog}
	}
	for range 3 {
		c := open()
		calms = append(calms, c)
		p.work.observed.Untouched = append(p.work.observed.Untouched, c.dialog)
	}
	sender, receiver, idle := open(), open(), open()
	backDialog := func() (initiator, dialog string) {
		initiator, dialog = atB.begin("b", "a")
		atB.send(initiator)
		atA.receive("target_queue", dialog, 1)
		return initiator, dialog
	}
	backInitiator, back := backDialog()
	atA.awaitAcknowledged()
	atB.awaitAcknowledged()
	p.awaitReplicated()
	p.cutReplication()

	// a sends what it will not know of.
	atA.send(sender.handle)
	atB.receive("target_queue", sender.dialog, 2)
	// a acknowledges what it will not have.
	atB.send(receiver.target)
	atA.receive("initiator_queue", receiver.dialog, 2)
	atB.send(backInitiator)
	atA.receive("target_queue", back, 2)
	// Dialogs begin that a will not know of, on either side.
	lateHandle, late := atA.begin("a", "b")
	atA.send(lateHandle)
	atB.receive("target_queue", late, 1)
	_, lateBack := backDialog()
	atA.awaitAcknowledged()
	atB.awaitAcknowledged()

	_ = atA.conn.Close(t.Context())
	p.failOver()
	atA = p.hand(p.a, "hand a")

	// Within this time each of them gets the error, without any send on it: F2.
	informed := func(h *hand, queue, dialog string) bool {
		must(t, h.conn, "select ledger.receive($1, null)", queue)
		return ask[bool](t, h.conn, "select exists (select from ledger.end_received where dialog = $1::uuid and code = any ($2))", dialog, lostHistory)
	}
	for _, c := range []struct {
		name, queue, dialog string
		h                   *hand
	}{
		{"the sender who lost what it had sent", "initiator_queue", sender.dialog, atA},
		{"the receiver of what its sender lost", "target_queue", sender.dialog, atB},
		{"the receiver who lost what it had acknowledged", "initiator_queue", receiver.dialog, atA},
		{"the sender of what its receiver lost", "target_queue", receiver.dialog, atB},
		{"the target who lost what it had acknowledged", "target_queue", back, atA},
		{"the initiator of what its target lost", "initiator_queue", back, atB},
		{"the target of a dialog whose initiator was lost", "target_queue", late, atB},
		{"the initiator of a dialog whose target was lost", "initiator_queue", lateBack, atB},
	} {
		if !awaitFor(30*time.Second, func() bool { return informed(c.h, c.queue, c.dialog) }) {
			t.Errorf("F2: %s (%s) got no error within 30 s", c.name, c.dialog)
		}
	}
	// The others go on.
	for _, c := range append(slices.Clone(calms), idle) {
		atA.send(c.handle)
		atB.receive("target_queue", c.dialog, 2)
		atB.send(c.target)
		atA.receive("initiator_queue", c.dialog, 2)
	}
	p.judge()
}

// Keeps F1, T1, T2: with a synchronous standby a failover loses nothing whose commit was reported, and no dialog notices.
func TestSynchronousFailoverLosesNothing(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	p := newPair(t, true)
	stop := p.work.run(2)
	pause(3 * time.Second)
	p.failOver()
	pause(2 * time.Second)
	stop()
	h := p.judge()
	t.Logf("%d messages sent, %d received, quiet after %v; %d places acknowledged, %d forgotten, %d found; %s", len(h.Sent), len(h.Received),
		h.Quiet-h.Healed, len(h.Acknowledged), len(h.Forgotten), len(h.Expects), counts(p.work.done))
	if len(h.Expects) == 0 {
		t.Error("there was nothing to find after the failover")
	}
}

// Keeps F4: a primary that comes back after its standby was promoted is refused by all others, and its acknowledgements count for nothing.
func TestReturningOldPrimaryIsRefused(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it makes servers of its own")
	}
	p := newPair(t, false)
	atA, atB := p.hand(p.a, "hand a"), p.hand(p.b, "hand b")
	handle, dialog := atA.begin("a", "b")
	atA.send(handle)
	target := atB.receive("target_queue", dialog, 1)
	atB.send(target)
	atA.receive("initiator_queue", dialog, 1)
	atA.awaitAcknowledged()
	atB.awaitAcknowledged()
	p.awaitReplicated()
	_ = atA.conn.Close(t.Context())
	p.failOver()
	atA = p.hand(p.a, "hand a")
	atA.send(handle)
	atB.receive("target_queue", dialog, 2)

	// It comes back, with a daemon of its own, and has something to send.
	p.primary.startAgain(t)
	old := &hand{t: t, conn: connect(t, p.primary.DSN("a")), name: "old"}
	defer old.conn.Close(context.Background())
	old.send(handle)
	p.work.observed.Outcasts = []checker.Outcast{{
		Direction: checker.Direction{Dialog: dialog, FromInitiator: true}, Stream: "old", Invariant: "F4",
	}}
	oldPlace := placeOf(p.pool(p.primary.DSN("a")))
	outcast := p.courier(oldPlace, p.places[1])
	ctx, cancel := context.WithCancel(t.Context())
	var carrying sync.WaitGroup
	carrying.Go(func() { outcast.run(ctx) })
	await(t, "the old primary is refused", func() bool { return outcast.superseded.Load() > 0 })

	// b is led to it: what is delivered there counts for nothing, and comes to the new primary as well.
	newPlace := p.places[0].pool.Swap(oldPlace.pool.Load())
	atB.send(target)
	pause(time.Second)
	p.places[0].pool.Store(newPlace)
	atA.receive("initiator_queue", dialog, 2)
	cancel()
	carrying.Wait()
	p.judge()
}
