//go:build unix

package nemesis_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/verify/checker"
)

// party is a database with a service that begins dialogs and one that is talked to, NAME/initiator and NAME/target.
type party struct {
	name string
	mu   sync.Mutex
	// at reports where it is now.
	at func() string
	// server is the number of the one it is on.
	server int
}

// dsn leads to the party's database.
func (p *party) dsn() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at()
}

// workload is sessions at random in several databases that keep ledgers.
type workload struct {
	t       testing.TB
	seed    uint64
	birth   time.Time
	parties []*party
	over    atomic.Bool
	// lossy reports that committed transactions may vanish: a database with asynchronous replication fails over.
	lossy bool

	mu       sync.Mutex
	observed checker.Observed
	// committed is when a sender knew of its commit.
	committed map[checker.Undone]time.Duration
	dialogs   map[string][]string // handles of initiators, by party
	targets   map[string][]string
	done      map[string]int
	log       timeline
}

func newWorkload(t testing.TB, seed uint64, parties []*party) *workload {
	t.Helper()
	w := &workload{
		t: t, seed: seed, birth: time.Now(), parties: parties, committed: map[checker.Undone]time.Duration{},
		dialogs: map[string][]string{}, targets: map[string][]string{}, done: map[string]int{},
	}
	t.Cleanup(func() {
		if t.Failed() {
			keep(t, "history.jsonl", w.log.bytes())
		}
	})
	return w
}

// now is the clock of the run; it is never zero, which stands for unknown.
func (w *workload) now() time.Duration { return time.Since(w.birth) + 1 }

// run lets the actors loose; the function it returns stops them.
func (w *workload) run(actorsEach int) (stop func()) {
	var work sync.WaitGroup
	number := uint64(0)
	for _, p := range w.parties {
		for range actorsEach {
			for _, role := range []func(*actor) error{(*actor).begin, (*actor).serve, (*actor).listen, (*actor).finish} {
				number++
				a := &actor{
					workload: w, party: p, random: rand.New(rand.NewPCG(w.seed, number)), name: fmt.Sprintf("%s.%d", p.name, number),
				}
				work.Go(func() { a.run(role) })
			}
		}
	}
	work.Go(w.probe)
	return func() {
		w.over.Store(true)
		work.Wait()
	}
}

// actor is one session of the workload with a random source of its own. It is a stream in each dialog that it sends on.
type actor struct {
	*workload
	party  *party
	random *rand.Rand
	name   string
	conn   *pgx.Conn

	sent []sending
	got  []delivery
}

type sending struct {
	checker.Sent
	at time.Duration
	// undone is set when a savepoint took it back.
	undone bool
}

// delivery is a message that ledger.receive has given.
type delivery struct {
	Handle        string
	IsEnd         bool
	Dialog        string
	FromInitiator bool
	Stream        *string
	N             *int64
	Hash          *string
	Seq           int64
}

// run does one transaction after the other, and connects again after each fault.
func (a *actor) run(role func(*actor) error) {
	defer func() {
		if a.conn != nil {
			_ = a.conn.Close(context.Background())
		}
	}()
	for !a.over.Load() {
		if a.conn == nil || a.conn.IsClosed() {
			conn, err := tryConnect(a.party.dsn())
			if err != nil {
				pause(time.Duration(20+a.random.IntN(80)) * time.Millisecond)
				continue
			}
			a.conn = conn
		}
		err := a.transaction(role)
		switch {
		case err == nil:
		case a.conn.IsClosed() || isFault(err):
			_ = a.conn.Close(context.Background())
			a.log.add(a.now(), a.name, "fault", err.Error())
		case harmless[code(err)]:
		default:
			a.t.Errorf("%s: %v", a.name, err)
			return
		}
	}
}

// transaction does one transaction, or rolls it back, and records what the client knows of it then.
func (a *actor) transaction(role func(*actor) error) error {
	a.sent, a.got = nil, nil
	if err := a.try("begin"); err != nil {
		return err
	}
	err := role(a)
	if err != nil || a.random.IntN(12) == 0 {
		if undo := a.try("rollback"); undo != nil {
			return cmp.Or(err, undo)
		}
		a.recordRollback()
		return err
	}
	if err := a.try("commit"); err != nil {
		// The outcome is unknown.
		a.log.add(a.now(), a.name, "unknown", err.Error())
		return err
	}
	a.recordCommit()
	return nil
}

func (a *actor) try(sql string, args ...any) error {
	_, err := a.conn.Exec(context.Background(), sql, args...)
	return err
}

func (a *actor) recordCommit() {
	now := a.now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sent {
		if s.undone {
			a.observed.Undone = append(a.observed.Undone, checker.Undone{Direction: s.Direction, Hash: s.Hash})
			continue
		}
		a.committed[checker.Undone{Direction: s.Direction, Hash: s.Hash}] = now
		a.done["sent"]++
		a.log.add(now, a.name, "sent", s.Dialog, s.FromInitiator, s.N)
		if !a.lossy {
			a.observed.Survived = append(a.observed.Survived, s.Sent)
		}
	}
	for _, d := range a.got {
		a.done["received"]++
		a.log.add(now, a.name, "received", d.Dialog, d.FromInitiator, d.Stream, d.N, d.IsEnd)
		if !a.lossy && d.Stream != nil {
			a.observed.SurvivedReceipts = append(a.observed.SurvivedReceipts, d.received())
		}
	}
}

func (a *actor) recordRollback() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done["rolled back"]++
	for _, s := range a.sent {
		a.observed.Undone = append(a.observed.Undone, checker.Undone{Direction: s.Direction, Hash: s.Hash})
	}
	for _, d := range a.got {
		if d.Stream != nil && !a.lossy {
			a.observed.PutBack = append(a.observed.PutBack, d.received())
		}
	}
}

func (d delivery) received() checker.Received {
	return checker.Received{
		Direction: checker.Direction{Dialog: d.Dialog, FromInitiator: d.FromInitiator}, Stream: *d.Stream, N: *d.N, Hash: *d.Hash, Seq: d.Seq,
	}
}

// begin sends some messages on a dialog, which it may begin: what a program does that wants something of another database.
func (a *actor) begin() error {
	pause(time.Duration(a.random.IntN(15)) * time.Millisecond)
	handle := a.pick(a.dialogs)
	if handle == "" || a.random.IntN(6) == 0 {
		target := a.parties[a.random.IntN(len(a.parties))]
		err := a.conn.QueryRow(context.Background(), "select parley.begin_dialog($1, $2)::text", a.party.name+"/initiator", target.name+"/target").Scan(&handle)
		if err != nil {
			return err
		}
		// Others may try it at once; when this is rolled back they find it gone.
		defer a.add(a.dialogs, handle)
	}
	for range 1 + a.random.IntN(4) {
		if err := a.send(handle); err != nil {
			return err
		}
	}
	return nil
}

// send sends one message, now and then a large one, and takes one in twenty back.
func (a *actor) send(handle string) error {
	fill := fmt.Sprint(a.random.Uint64(), strings.Repeat("x", a.random.IntN(200)))
	switch a.random.IntN(200) {
	case 0:
		fill += strings.Repeat("very long ", 150_000) // travels in fragments
	case 1, 2:
		fill += strings.Repeat("long ", 10_000)
	}
	undone := a.random.IntN(20) == 0
	if undone {
		if err := a.try("savepoint a"); err != nil {
			return err
		}
	}
	s := sending{at: a.now(), undone: undone}
	s.Stream = a.name
	err := a.conn.QueryRow(context.Background(), "select n, dialog::text, from_initiator, hash from ledger.send($1::uuid, $2, $3, $4)",
		handle, a.name, fill, int64(s.at)).Scan(&s.N, &s.Dialog, &s.FromInitiator, &s.Hash)
	if err != nil {
		return err
	}
	a.sent = append(a.sent, s)
	if undone {
		return a.try("rollback to savepoint a")
	}
	return nil
}

// serve receives at the target, and answers half the time.
func (a *actor) serve() error {
	if err := a.receive("target_queue"); err != nil {
		return err
	}
	for i, d := range a.got {
		switch {
		case d.IsEnd:
			if err := a.try("select ledger.end_conversation($1::uuid, null)", d.Handle); err != nil {
				return err
			}
		case i == 0:
			a.add(a.targets, d.Handle)
			if a.random.IntN(2) == 0 && !a.got[len(a.got)-1].IsEnd {
				if err := a.send(d.Handle); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// listen receives the answers.
func (a *actor) listen() error {
	if err := a.receive("initiator_queue"); err != nil {
		return err
	}
	for _, d := range a.got {
		if d.IsEnd {
			if err := a.try("select ledger.end_conversation($1::uuid, null)", d.Handle); err != nil {
				return err
			}
		}
	}
	return nil
}

// finish ends a dialog, mostly at the initiator, sometimes with an error.
func (a *actor) finish() error {
	pause(time.Duration(50+a.random.IntN(100)) * time.Millisecond)
	handles := a.dialogs
	if a.random.IntN(3) == 0 {
		handles = a.targets
	}
	handle := a.pick(handles)
	if handle == "" {
		return nil
	}
	var text *string
	if a.random.IntN(4) == 0 {
		why := fmt.Sprint("error ", a.random.IntN(1000))
		text = &why
	}
	return a.try("select ledger.end_conversation($1::uuid, $2)", handle, text)
}

func (a *actor) receive(queue string) error {
	rows, err := a.conn.Query(context.Background(), `
		select handle::text, is_end, dialog::text, from_initiator, stream, n, hash, seq
		from ledger.receive($1, nullif($2, 0))`, queue, a.random.IntN(4)*a.random.IntN(4))
	if err != nil {
		return err
	}
	if a.got, err = pgx.CollectRows(rows, pgx.RowToStructByPos[delivery]); err != nil {
		return err
	}
	if len(a.got) == 0 {
		pause(time.Duration(5+a.random.IntN(20)) * time.Millisecond)
	}
	return nil
}

// pick gives the handle of a young dialog of the actor's party; empty when there is none yet.
func (a *actor) pick(handles map[string][]string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := handles[a.party.name]
	if n := len(list); n > 0 {
		return list[max(0, n-1-a.random.IntN(6))]
	}
	return ""
}

func (a *actor) add(handles map[string][]string, handle string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	handles[a.party.name] = append(handles[a.party.name], handle)
}
