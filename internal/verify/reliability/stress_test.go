package reliability_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// movers is the number of the actor that moves conversations.
const movers = 9

// stressSeconds is how long the random workload runs. PARLEY_STRESS_SECONDS makes it longer.
const stressSeconds = 6

// Senders, receivers, enders and movers at random, with rollbacks, savepoints and transactions that stay open; then everything is received
// and ended, and the ledger shows it; keeps S1 to S5, S9 to S12, S19.
func TestRandomInterleavingsKeepThePromises(t *testing.T) {
	t.Parallel()
	seconds := stressSeconds
	if v := os.Getenv("PARLEY_STRESS_SECONDS"); v != "" {
		seconds, _ = strconv.Atoi(v)
	}
	seed := rand.Uint64()
	if v := os.Getenv("PARLEY_STRESS_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	t.Logf("PARLEY_STRESS_SEED=%d", seed)
	st := newStress(t, newFixture(t), seed)
	done := st.start(t)
	pause(time.Duration(seconds) * time.Second)
	done()
	st.judge(t)
}

func newStress(t *testing.T, b *fixture, seed uint64) *stress {
	t.Helper()
	return &stress{ledger: newPlays(t, b), t: t, seed: seed}
}

// start lets the actors loose; the function it returns stops them.
func (st *stress) start(t *testing.T) (done func()) {
	t.Helper()
	return st.let(
		t, movers,
		(*actor).sendSome, (*actor).sendSome, (*actor).sendSome, (*actor).sendSlowly,
		(*actor).receiveSome, (*actor).receiveSome, (*actor).receiveSome, (*actor).receiveRepeatably,
		(*actor).endOne, (*actor).moveOne,
	)
}

// let has a session play each role until the function it returns stops them. One of them, if not -1, moves conversations.
func (st *stress) let(t *testing.T, mover int, roles ...func(*actor) error) (done func()) {
	t.Helper()
	var work sync.WaitGroup
	for i, role := range roles {
		a := &actor{
			stress: st, s: st.session(t), random: rand.New(rand.NewPCG(st.seed, uint64(i))), name: fmt.Sprint("actor ", i),
			moves: i == mover,
		}
		work.Go(func() { a.run(role) })
	}
	return func() {
		st.over.Store(true)
		work.Wait()
	}
}

// judge receives and ends everything that is left, and asks the ledger.
func (st *stress) judge(t *testing.T) {
	t.Helper()
	st.finish(t)
	h := st.history(t)
	t.Logf("%d sent, %d received, %d ends", len(h.Sent), len(h.Received), len(h.Ended))
	if len(h.Received) == 0 || len(h.EndsReceived) == 0 {
		t.Error("the workload did nothing")
	}
}

type stress struct {
	*ledger
	t    *testing.T
	seed uint64
	over atomic.Bool
	// faults reports that sessions may be lost.
	faults bool

	dialogs   sync.Mutex
	initiator []string // handles
	target    []string
}

// actor is one session of the workload with a random source of its own.
type actor struct {
	*stress
	s      *session
	random *rand.Rand
	name   string
	sent   []sending
	moves  bool
}

// These may happen to any session: the dialog has just ended, another session was first, or two transactions worked on the same
// conversations in different order.
var harmless = map[string]bool{
	"40P01":      true,
	broker(8426): true, broker(8427): true, broker(8429): true, broker(8436): true, broker(8438): true, broker(8458): true, "40001": true,
}

// run does one transaction after the other.
func (a *actor) run(role func(*actor) error) {
	for !a.over.Load() && !a.t.Failed() {
		err := a.transaction(role)
		switch {
		case err == nil || harmless[code(err)]:
		case a.faults && a.s.conn.IsClosed():
			// The server may be starting still.
			if s, err := connect(a.t, a.dsn); err == nil {
				a.s = s
			}
		default:
			a.t.Errorf("%s: %v", a.name, err)
		}
	}
}

// transaction does one transaction, or rolls it back. Its error is the first one.
func (a *actor) transaction(role func(*actor) error) error {
	a.sent = nil
	isolation := ""
	// MOVE of the last conversation of a group leaves the group behind when the snapshot is older than the end of the last but one.
	if a.random.IntN(20) == 0 && !a.moves {
		isolation = " isolation level repeatable read"
	}
	if err := a.s.try("begin" + isolation); err != nil {
		return err
	}
	err := role(a)
	a.letGo(a.s, err != nil)
	if err != nil || a.random.IntN(10) == 0 {
		return cmp.Or(err, a.s.try("rollback"))
	}
	if err := a.s.try("commit"); err != nil {
		return err
	}
	a.recordCommitted(a.sent)
	return nil
}

// pick gives a random handle; empty when there is none yet.
func (a *actor) pick(handles *[]string) string {
	a.dialogs.Lock()
	defer a.dialogs.Unlock()
	// Mostly young ones: the old have ended.
	if n := len(*handles); n > 0 {
		return (*handles)[max(0, n-1-a.random.IntN(8))]
	}
	return ""
}

func (a *actor) add(handles *[]string, handle string) {
	a.dialogs.Lock()
	defer a.dialogs.Unlock()
	*handles = append(*handles, handle)
}

func (a *actor) sendSome() error {
	handle := a.pick(&a.initiator)
	if handle == "" || a.random.IntN(10) == 0 {
		var err error
		if handle, err = tryAsk[string](a.s, "select parley.begin_dialog('initiator', 'target')::text"); err != nil {
			return err
		}
		// Others may try it at once; when this is rolled back they find it gone.
		defer a.add(&a.initiator, handle)
	}
	for range 1 + a.random.IntN(4) {
		if err := a.sendOne(handle); err != nil {
			return err
		}
	}
	return nil
}

func (a *actor) sendOne(handle string) error {
	undo := a.random.IntN(20) == 0
	if undo {
		if err := a.s.try("savepoint a"); err != nil {
			return err
		}
	}
	m, err := a.send(a.s, handle, a.name)
	if err != nil {
		return err
	}
	if undo {
		return a.s.try("rollback to savepoint a")
	}
	a.sent = append(a.sent, m)
	return nil
}

// sendSlowly keeps its place in the queue while others send and receive.
func (a *actor) sendSlowly() error {
	if err := a.sendSome(); err != nil {
		return err
	}
	pause(time.Duration(a.random.IntN(300)) * time.Millisecond)
	return a.sendSome()
}

func (a *actor) receiveSome() error {
	queue := "target_queue"
	if a.random.IntN(3) == 0 {
		queue = "initiator_queue"
	}
	got, err := a.receive(a.s, queue, a.random.IntN(4)*a.random.IntN(4))
	if err != nil {
		return err
	}
	for i, d := range got {
		switch {
		case d.IsEnd:
			if err := a.s.try("select ledger.end_conversation($1::uuid, null)", d.Handle); err != nil {
				return err
			}
		case queue == "target_queue" && i == 0:
			a.add(&a.target, d.Handle)
			if a.random.IntN(2) == 0 {
				return a.sendOne(d.Handle)
			}
		}
	}
	if len(got) == 0 {
		pause(time.Duration(a.random.IntN(5)) * time.Millisecond)
	}
	return nil
}

func (a *actor) receiveRepeatably() error {
	if err := a.s.try("rollback; begin isolation level repeatable read; select 1"); err != nil {
		return err
	}
	pause(time.Duration(a.random.IntN(20)) * time.Millisecond)
	return a.receiveSome()
}

func (a *actor) endOne() error {
	pause(time.Duration(a.random.IntN(20)) * time.Millisecond)
	handles := &a.initiator
	if a.random.IntN(3) == 0 {
		handles = &a.target
	}
	handle := a.pick(handles)
	if handle == "" {
		return nil
	}
	if a.random.IntN(4) == 0 {
		return a.s.try("select ledger.end_conversation($1::uuid, $2)", handle, fmt.Sprint("error ", a.random.IntN(1000)))
	}
	return a.s.try("select ledger.end_conversation($1::uuid, null)", handle)
}

func (a *actor) moveOne() error {
	pause(time.Duration(a.random.IntN(20)) * time.Millisecond)
	moved, other := a.pick(&a.target), a.pick(&a.target)
	if moved == "" {
		return nil
	}
	group, err := tryAsk[string](a.s,
		"select coalesce((select conversation_group_id from parley.conversation_endpoints where conversation_handle = $1::uuid)::text, '')", other)
	if err != nil || group == "" {
		return err
	}
	return a.s.try(move, moved, group)
}
