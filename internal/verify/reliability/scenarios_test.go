package reliability_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// play is one run of a scenario: a transaction of several statements on a conversation that has messages on both sides.
type play struct {
	*ledger
	s                 *session
	initiator, target string
	// head is the conversation whose messages are next, and group that of another conversation than target.
	head, group string
	dialog      string
}

type step func(*play) error

// scenarios are transactions that may be cut off after any statement.
var scenarios = map[string][]step{
	"Begin": {
		func(p *play) (err error) {
			p.dialog, err = tryAsk[string](p.s, "select parley.begin_dialog('initiator', 'target', lifetime => 3600)::text")
			return err
		},
		func(p *play) error { return p.sendOn(p.dialog) },
		func(p *play) error { return p.sendOn(p.dialog) },
	},
	"Send": {
		func(p *play) error { return p.sendOn(p.initiator) },
		func(p *play) error { return p.sendOn(p.target) },
		func(p *play) error { return p.s.try("savepoint a") },
		func(p *play) error { return p.sendOn(p.initiator) },
		func(p *play) error { return p.s.try("rollback to savepoint a") },
	},
	"Receive": {
		func(p *play) error { return p.receiveFrom("target_queue", 1) },
		func(p *play) error { return p.sendOn(p.target) },
		func(p *play) error { return p.receiveFrom("target_queue", 0) },
		func(p *play) error { return p.receiveFrom("initiator_queue", 0) },
	},
	"Group": {
		func(p *play) error { return p.s.try("select parley.get_conversation_group('target_queue')") },
		func(p *play) error { return p.receiveFrom("target_queue", 1) },
	},
	"End": {
		func(p *play) error { return p.receiveFrom("target_queue", 0) },
		func(p *play) error { return p.sendOn(p.target) },
		func(p *play) error { return p.s.try("select ledger.end_conversation($1::uuid, null)", p.target) },
		func(p *play) error { return p.receiveFrom("initiator_queue", 0) },
		func(p *play) error { return p.s.try("select ledger.end_conversation($1::uuid, null)", p.initiator) },
	},
	"EndWithError": {
		func(p *play) error { return p.s.try("select ledger.end_conversation($1::uuid, 'why')", p.initiator) },
		func(p *play) error { return p.receiveFrom("target_queue", 1) },
	},
	"Timer": {
		func(p *play) error { return p.s.try("select parley.begin_conversation_timer($1::uuid, 0)", p.target) },
		func(p *play) error { return p.s.try("select parley.fire_timers()") },
		func(p *play) error { return p.receiveFrom("target_queue", 1) },
	},
	"Move": {
		func(p *play) error { return p.s.try(move, p.target, p.group) },
		func(p *play) error { return p.receiveFrom("target_queue", 0) },
	},
}

func (p *play) sendOn(handle string) error {
	_, err := p.send(p.s, handle, "play")
	return err
}

func (p *play) receiveFrom(queue string, top int) error {
	_, err := p.receive(p.s, queue, top)
	p.letGo(p.s, false)
	return err
}

// newPlays prepares a fixture for plays.
func newPlays(t testing.TB, b *fixture) *ledger {
	t.Helper()
	l := newLedger(t, b)
	for _, queue := range []string{"target_queue", "initiator_queue"} {
		l.admin.exec("select parley.alter_queue($1, poison_message_handling => false)", queue)
	}
	return l
}

// newPlay begins two conversations that have messages on both sides; the play is about the second.
func (l *ledger) newPlay(t testing.TB) *play {
	t.Helper()
	p := &play{ledger: l, s: l.session(t)}
	for range 2 {
		p.initiator = l.admin.dialog()
		for range 3 {
			l.mustSend(t, p.initiator)
		}
		p.target = l.admin.far(p.initiator)
		l.mustSend(t, p.target)
	}
	p.head = ask[string](l.admin, "select conversation_handle::text from parley_queue.target_queue order by queuing_order limit 1")
	p.group = ask[string](l.admin, `
		select conversation_group_id::text
		from parley.conversation_endpoints
		where service_name = 'target' and conversation_handle <> $1::uuid and state = 'CO'
		limit 1`, p.target)
	return p
}

func (l *ledger) mustSend(t testing.TB, handle string) {
	t.Helper()
	if _, err := l.send(l.admin, handle, "opening"); err != nil {
		t.Fatal(err)
	}
}

// run begins the transaction and does its first steps.
func (p *play) run(t testing.TB, steps []step) {
	t.Helper()
	p.s.begin()
	for i, step := range steps {
		if err := step(p); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// finish ends whatever the plays have left, and asks for the verdict.
func (l *ledger) finish(t testing.TB) {
	t.Helper()
	s := l.session(t)
	// The timer's messages are not in the ledger.
	l.admin.exec("select parley.fire_timers()")
	l.drain(t, s)
	l.endAll(t, s)
	l.verdict(t)
	l.admin.exec("select parley.fire_timers()")
	l.wantNothingLeft(t)
}

// cuts are the ways in which a session may be cut off that leave the server running.
var cuts = map[string]func(testing.TB, *fixture, *session){
	"Terminate": func(_ testing.TB, b *fixture, s *session) {
		b.admin.exec("select pg_terminate_backend($1)", int(s.pid))
	},
	"Disconnect": func(t testing.TB, _ *fixture, s *session) {
		t.Helper()
		if err := s.conn.PgConn().Conn().Close(); err != nil {
			t.Fatal(err)
		}
	},
}

// commitAndCut sends COMMIT and does not wait for the answer.
func (s *session) commitAndCut() {
	s.t.Helper()
	hijacked, err := s.conn.PgConn().Hijack()
	if err != nil {
		s.t.Fatal(err)
	}
	hijacked.Frontend.Send(&pgproto3.Query{String: "commit"})
	if err := hijacked.Frontend.Flush(); err != nil {
		s.t.Fatal(err)
	}
	if err := hijacked.Conn.Close(); err != nil {
		s.t.Fatal(err)
	}
}
