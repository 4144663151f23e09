package orchestrator_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/parley-broker/parley/internal/flow/orchestrator"
	"github.com/parley-broker/parley/internal/sqltest"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// A batch has the deliveries of a lease that a node has in its hands.
type batch struct {
	node          *node
	orchestration string
	claimed       []*flowstore.Claimed
	deliveries    []*delivery // nil where an instance only has to go on
	isLate        bool        // its lease is over
}

func value[T any](r *rapid.T, db sqltest.Querier, query string, arguments ...any) (v T) {
	if err := db.QueryRow(context.Background(), query, arguments...).Scan(&v); err != nil {
		r.Fatalf("%s: %s", query, sqltest.Describe(err))
	}
	return v
}

func exec(r *rapid.T, db sqltest.Querier, statement string, arguments ...any) {
	if _, err := db.Exec(context.Background(), statement, arguments...); err != nil {
		r.Fatalf("%s: %s", statement, sqltest.Describe(err))
	}
}

// publishBy publishes a message in a session.
func (m *model) publishBy(r *rapid.T, db sqltest.Querier, ended int) []*delivery {
	return m.publishOf(r, db, ended, rapid.SampledFrom([]string{"begin", "begin", "answer", "answer", "part", "part", "part"}).Draw(r, "kind"),
		rapid.SampledFrom([]string{"a", "a", "a", "b"}).Draw(r, "key"))
}

func (m *model) publishOf(r *rapid.T, db sqltest.Querier, ended int, kind, key string) []*delivery {
	m.bodies++
	message := &modelMessage{kind: kind, key: key, body: fmt.Sprint(m.bodies), began: m.step}
	if rapid.IntRange(0, 5).Draw(r, "suspends") == 0 {
		message.body += "s"
	}
	message.id = value[int64](r, db, `select parley_flow.publish($1::text, jsonb_build_object('urn:p#Key', $2::text), $3::text)`,
		message.body, message.key, m.name(message.kind))
	sent := m.world.publish(message, ended)
	r.Logf("%s %s of %s is message %d, for %d", message.kind, message.body, message.key, message.id, len(sent))
	if len(sent) == 0 && ended > 0 {
		m.unrouted = append(m.unrouted, message)
	} else if len(sent) == 0 {
		m.openUnrouted = append(m.openUnrouted, message)
	}
	return sent
}

func (m *model) publish(r *rapid.T) { m.publishBy(r, m.DB, m.step) }

// crowd has an instance keep more beginnings than it takes, as events, and then end: what it has not read is decided about by the step that
// ends it.
func (m *model) crowd(r *rapid.T) {
	if m.hasCrowded {
		r.Skip("once is enough, and it takes long")
	}
	m.hasCrowded = true
	if m.transaction != nil {
		m.commit(r)
	}
	m.startAll(r)
	m.work(r)
	find := func() *modelInstance {
		at := slices.IndexFunc(m.instances, func(i *modelInstance) bool { return !i.isConvoy && i.phase == 0 && !i.isSuspended })
		if at < 0 {
			return nil
		}
		return m.instances[at]
	}
	if find() == nil {
		m.publishOf(r, m.DB, m.step, "begin", "a")
		m.step++
		m.work(r)
	}
	i := find()
	if i == nil {
		r.Skip("it has ended, or is suspended")
	}
	for _, kind := range []string{"begin", "begin", "answer"} {
		m.publishOf(r, m.DB, m.step, kind, i.key)
		m.step++
		m.work(r) // one step for each: the answer finds the beginnings as events
	}
}

func (m *model) startAll(r *rapid.T) {
	for name, isStopped := range m.isStopped {
		if isStopped {
			exec(r, m.DB, "select parley_flow.start($1, 'orchestration')", m.name(name))
			m.isStopped[name] = false
		}
	}
}

// publishIn publishes in a transaction that stays open: its message is there when that commits, for those who waited before.
func (m *model) publishIn(r *rapid.T) {
	if m.transaction == nil {
		tx, err := m.Pool.Begin(m.Context())
		if err != nil {
			r.Fatal(err)
		}
		m.transaction, m.beganAt = tx, m.step
	}
	sent := m.publishBy(r, m.transaction, 0)
	for _, d := range sent {
		d.began = m.beganAt // its place in an order is that of its transaction
	}
	m.open = append(m.open, sent...)
}

func (m *model) end(r *rapid.T) {
	if m.transaction == nil {
		r.Skip("no transaction is open")
	}
	if rapid.IntRange(0, 3).Draw(r, "rolls back") == 0 {
		if err := m.transaction.Rollback(m.Context()); err != nil {
			r.Fatal(err)
		}
		m.deliveries = slices.DeleteFunc(m.deliveries, func(d *delivery) bool { return slices.Contains(m.open, d) })
		m.transaction, m.open, m.openUnrouted = nil, nil, nil
		return
	}
	m.commit(r)
}

func (m *model) commit(r *rapid.T) {
	if err := m.transaction.Commit(m.Context()); err != nil {
		r.Fatal(err)
	}
	for _, d := range m.open {
		d.ended = m.step
	}
	m.unrouted = append(m.unrouted, m.openUnrouted...)
	m.transaction, m.open, m.openUnrouted = nil, nil, nil
}

// changeState stops an orchestration, or starts it.
func (m *model) changeState(r *rapid.T) {
	name := rapid.SampledFrom([]string{"life", "convoy"}).Draw(r, "orchestration")
	m.isStopped[name] = !m.isStopped[name]
	exec(r, m.DB, "select parley_flow."+map[bool]string{true: "stop", false: "start"}[m.isStopped[name]]+"($1, 'orchestration')", m.name(name))
}

// claim has a node claim some of what waits, or all.
func (m *model) claim(r *rapid.T) {
	n := m.nodes[rapid.IntRange(0, len(m.nodes)-1).Draw(r, "node")]
	m.claimBy(r, n, rapid.SampledFrom([]int{1, 2, 100}).Draw(r, "each"), 0)
}

func (m *model) claimBy(r *rapid.T, n *node, each int, timeout time.Duration) (isEmpty bool) {
	claimed, err := flowstore.ClaimMessages(m.Context(), m.DB, flowstore.Claim{
		Host: "Send", Holder: n.name, Lanes: 20, Each: each, Lease: time.Hour, Timeout: timeout, Top: 2000,
	})
	if err != nil {
		r.Fatal(sqltest.Describe(err))
	}
	byLease, order := map[int64]*batch{}, []*batch{}
	for at := range claimed {
		c, kind := &claimed[at], ""
		for _, name := range []string{"life", "convoy"} {
			if m.name(name) == c.SendPort {
				kind = name
			}
		}
		if kind == "" {
			continue // it is left from an application whose check has failed
		}
		if m.isStopped[kind] {
			r.Fatalf("message %d was claimed for %s, which is stopped", c.Message, kind)
		}
		b := byLease[c.Lease]
		if b == nil {
			b = &batch{node: n, orchestration: kind}
			byLease[c.Lease], order = b, append(order, b)
		}
		b.claimed, b.deliveries = append(b.claimed, c), append(b.deliveries, m.match(r, c))
	}
	m.batches = append(m.batches, order...)
	return len(claimed) == 0
}

// match gives the delivery that was claimed, and holds that none stands before it; nil of an instance that only has to go on.
func (m *model) match(r *rapid.T, c *flowstore.Claimed) *delivery {
	key := ""
	if c.OrderKey != nil {
		key = *c.OrderKey
	}
	if c.Message == 0 {
		return nil
	}
	isOf := func(d *delivery) bool { return d.ended > 0 && !d.isInHand && d.key() == key }
	at := slices.IndexFunc(m.deliveries, func(d *delivery) bool { return isOf(d) && d.message.id == c.Message })
	if at < 0 {
		r.Fatalf("message %d was claimed for %q, which has not to get it, or has got it", c.Message, key)
	}
	d := m.deliveries[at]
	for _, other := range m.deliveries {
		if key != "" && isOf(other) && other.ended < d.began {
			r.Fatalf("message %d was claimed for %q before %d, which stands before it", c.Message, key, other.message.id)
		}
	}
	d.isInHand = true
	r.Logf("claimed %d for %q", c.Message, key)
	return d
}

// run has a node run a batch. It may be killed meanwhile, or its lease may be over.
func (m *model) run(r *rapid.T) {
	if len(m.batches) == 0 {
		r.Skip("nothing is in hand")
	}
	at := rapid.IntRange(0, len(m.batches)-1).Draw(r, "batch")
	b := m.batches[at]
	m.batches = slices.Delete(m.batches, at, at+1)
	n := b.node
	if rapid.IntRange(0, 2).Draw(r, "is killed") == 0 {
		n.isSent.Store(rapid.Bool().Draw(r, "is sent"))
		n.left.Store(rapid.Int64Range(0, 9).Draw(r, "writes"))
	}
	m.runBatch(r, b)
}

func (m *model) runBatch(r *rapid.T, b *batch) {
	n := b.node
	outcome := n.runner.Run(m.Context(), orchestrator.Orchestration{
		Name: m.name(b.orchestration), Version: 1, State: "Started", Settings: m.settings[b.orchestration], Batch: 100,
	}, b.claimed)
	n.left.Store(-1)
	isKilled := n.isKilled.Load()
	if isKilled {
		m.bury(n)
	} else if outcome.Err != nil && !b.isLate {
		r.Fatalf("a step has failed: %v", outcome.Err)
	}
	left := value[int](r, m.DB, "select count(*)::int from parley_store._p_in_flight where lease_id = $1", b.claimed[0].Lease)
	r.Logf("ran %d of %s, killed %v, late %v: %d left (%v)", len(b.claimed), b.orchestration, isKilled, b.isLate, left, outcome.Err)
	switch {
	case b.isLate && len(outcome.Done) > 0:
		r.Fatalf("%d deliveries were recorded whose lease was over", len(outcome.Done))
	case b.isLate:
	case left == 0:
		m.take(r, b)
	case left == len(b.claimed):
		m.giveBack(r, b)
	default:
		r.Fatalf("of %d deliveries of a transaction %d are left", len(b.claimed), left)
	}
}

// take takes that a batch is recorded.
func (m *model) take(r *rapid.T, b *batch) {
	taken, woken := []*delivery{}, []int64{}
	for at, d := range b.deliveries {
		if d != nil {
			taken = append(taken, d)
			continue
		}
		var number int64
		_, _ = fmt.Sscanf(*b.claimed[at].OrderKey, "i%d", &number)
		woken = append(woken, number)
	}
	m.world.run(taken, woken)
	m.learn(r)
}

// learn finds the numbers of instances that have begun.
func (m *model) learn(r *rapid.T) {
	known := []int64{}
	for _, i := range m.instances {
		known = append(known, i.number)
	}
	for _, isConvoy := range []bool{false, true} {
		name := m.name(map[bool]string{true: "convoy", false: "life"}[isConvoy])
		rows, err := m.DB.Query(m.Context(), `select instance_id from parley_flow.instances where orchestration = $1 and instance_id <> all ($2)
			order by instance_id`, name, known)
		if err != nil {
			r.Fatal(err)
		}
		numbers, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			r.Fatal(err)
		}
		for _, i := range m.instances {
			if i.number == 0 && i.isConvoy == isConvoy && len(numbers) > 0 {
				i.number, numbers = numbers[0], numbers[1:]
			}
		}
	}
}

// giveBack ends the lease of a batch as a node does that stops, or as time does of one that was killed.
func (m *model) giveBack(r *rapid.T, b *batch) {
	lease := b.claimed[0].Lease
	if rapid.Bool().Draw(r, "is released") {
		exec(r, m.DB, "select parley_flow._p_release('Send', $1)", lease)
	} else {
		m.expire(r, lease)
	}
	for _, d := range b.deliveries {
		if d != nil {
			d.isInHand = false
		}
	}
}

func (m *model) expire(r *rapid.T, lease int64) {
	exec(r, m.DB, "update parley_store._p_lease set until = clock_timestamp() - interval '1 s' where lease_id = $1", lease)
	m.maintain(r)
	exec(r, m.DB, "delete from parley_flow._p_suspect")
}

// loseLease lets the lease of a batch run out while its node thinks that it has it.
func (m *model) loseLease(r *rapid.T) {
	at := slices.IndexFunc(m.batches, func(b *batch) bool { return !b.isLate })
	if at < 0 {
		r.Skip("nothing is in hand")
	}
	b := m.batches[at]
	m.expire(r, b.claimed[0].Lease)
	b.isLate = true
	for _, d := range b.deliveries {
		if d != nil {
			d.isInHand = false
		}
	}
}

func (m *model) maintain(r *rapid.T) {
	if got := value[string](r, m.DB, "select coalesce(string_agg(task || ': ' || error, '; '), '') from parley_flow.maintain()"); got != "" {
		r.Fatal(got)
	}
}

// some gives an instance, those that satisfy something first.
func (m *model) some(r *rapid.T, is func(*modelInstance) bool) *modelInstance {
	found := []*modelInstance{}
	for _, i := range m.instances {
		if is(i) {
			found = append(found, i)
		}
	}
	if len(found) == 0 {
		r.Skip("no instance is like that")
	}
	return found[rapid.IntRange(0, len(found)-1).Draw(r, "instance")]
}

// passTime lets the time-out of an instance come.
func (m *model) passTime(r *rapid.T) {
	i := m.some(r, func(i *modelInstance) bool { return !i.isConvoy && i.phase == 0 })
	exec(r, m.DB, "update parley_flow._p_instance_timer set at = clock_timestamp() - interval '1 second' where instance_id = $1", i.number)
	i.isDue = true
	m.fire(r)
}

func (m *model) fire(r *rapid.T) {
	if _, _, err := flowstore.FireTimers(m.Context(), m.DB, "Send"); err != nil {
		r.Fatal(sqltest.Describe(err))
	}
}

func (m *model) resume(r *rapid.T) {
	i := m.some(r, func(i *modelInstance) bool { return i.isSuspended && !i.isResumed })
	if got := value[int](r, m.DB, "select parley_flow.resume_instances(jsonb_build_object('instances', jsonb_build_array($1::bigint)))", i.number); got != 1 {
		r.Fatalf("%d were resumed", got)
	}
	i.isResumed = true
}

func (m *model) terminateOne(r *rapid.T) {
	i := m.some(r, func(*modelInstance) bool { return true })
	if got := value[int](r, m.DB, "select parley_flow.terminate_instances(jsonb_build_object('instances', jsonb_build_array($1::bigint)))", i.number); got != 1 {
		r.Fatalf("%d were terminated", got)
	}
	m.terminate(i)
}
