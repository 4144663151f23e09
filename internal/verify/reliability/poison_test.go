package reliability_test

import (
	"context"
	"fmt"
	"testing"
)

// A transaction that receives may fail in many ways; each counts.
var failures = map[string]func(t *testing.T, b *fixture, s *session){
	"Rollback": func(_ *testing.T, _ *fixture, s *session) { s.rollback() },
	"Error": func(t *testing.T, _ *fixture, s *session) {
		if s.try("select 1 / 0") == nil {
			t.Fatal("a division by zero went well")
		}
		s.rollback()
	},
	"Terminate": func(t *testing.T, b *fixture, s *session) {
		b.admin.exec("select pg_terminate_backend($1)", int(s.pid))
		b.awaitGone(t, s.pid)
	},
	"Disconnect": func(t *testing.T, b *fixture, s *session) {
		if err := s.conn.PgConn().Conn().Close(); err != nil {
			t.Fatal(err)
		}
		b.awaitGone(t, s.pid)
	},
	"Deadlock": func(t *testing.T, b *fixture, s *session) { b.deadlock(t, s) },
	"Cancel": func(t *testing.T, b *fixture, s *session) {
		sleeping := startTry(b, s, func() error { return s.try("select pg_sleep(1000)") })
		b.await(t, func() bool {
			return ask[bool](b.admin, "select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", int(s.pid))
		})
		b.admin.exec("select pg_cancel_backend($1)", int(s.pid))
		if _, err := sleeping.result(); code(err) != "57014" {
			t.Fatalf("got %v, want a cancelled statement", err)
		}
		s.rollback()
	},
}

// Keeps S8, S15.
func TestFifthFailureOfAMessageDisablesTheQueue(t *testing.T) {
	t.Parallel()
	for name, fail := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newDisablingFixture(t)
			b.admin.conversation("poison")
			b.failToReceive(t, 5, "poison", fail)
			b.wantDisabled(t)
			b.admin.exec("select parley.alter_queue('target_queue', status => true)")
			wantBodies(t, b.admin.receive(from{}), "poison")
		})
	}
}

// newDisablingFixture has the target queue disabled by poison, as SQL Server does.
func newDisablingFixture(t testing.TB) *fixture {
	t.Helper()
	b := newFixture(t)
	b.admin.exec("select parley.alter_queue('target_queue', poison_action => 'DISABLE_QUEUE')")
	return b
}

// failToReceive receives n times, in a transaction that fails.
func (b *fixture) failToReceive(t *testing.T, n int, body string, fail func(*testing.T, *fixture, *session)) {
	t.Helper()
	for range n {
		s := b.session(t)
		s.begin()
		wantBodies(t, s.receive(from{top: 1}), body)
		fail(t, b, s)
	}
}

func (b *fixture) wantDisabled(t testing.TB) {
	t.Helper()
	if got, err := b.admin.tryReceive(context.Background(), from{}); code(err) != broker(9617) {
		t.Errorf("received %q, error %v; want error 9617", bodies(got), err)
	}
}

func (b *fixture) awaitGone(t testing.TB, pid uint32) {
	t.Helper()
	b.await(t, func() bool {
		return !ask[bool](b.admin, "select exists (select from pg_stat_activity where pid = $1)", int(pid))
	})
}

// deadlock makes a session the victim of a deadlock.
func (b *fixture) deadlock(t testing.TB, s *session) {
	t.Helper()
	other := b.session(t)
	other.begin()
	// The session that waits first is the first to check for a deadlock.
	s.exec("set local deadlock_timeout = '10ms'")
	other.exec("set local deadlock_timeout = '100s'")
	s.exec("select pg_advisory_xact_lock($1)", int(s.pid))
	other.exec("select pg_advisory_xact_lock($1)", int(other.pid))
	waiting := startTry(b, other, func() error { return other.try("select pg_advisory_xact_lock($1)", int(s.pid)) })
	waiting.awaitBlocked()
	if err := s.try("select pg_advisory_xact_lock($1)", int(other.pid)); code(err) != "40P01" {
		t.Fatalf("got %v, want a deadlock", err)
	}
	s.rollback()
	waiting.must()
	other.rollback()
}

func TestFourFailuresDoNotDisableTheQueue(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("1", "2")
	b.failToReceive(t, 4, "1", failures["Rollback"])
	wantBodies(t, b.admin.receive(from{top: 1}), "1")
	b.failToReceive(t, 4, "2", failures["Rollback"])
	wantBodies(t, b.admin.receive(from{}), "2")
}

// The last failure can still be seen on the message, so it is counted again.
func TestQueueThatIsSwitchedOnAgainForgetsAllFailuresButTheLast(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("1")
	b.failToReceive(t, 5, "1", failures["Rollback"])
	b.wantDisabled(t)
	b.admin.exec("select parley.alter_queue('target_queue', status => true)")
	b.failToReceive(t, 3, "1", failures["Rollback"])
	wantBodies(t, b.admin.receive(from{}), "1")
}

func TestPoisonMessageHandlingOffNeverDisables(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.exec("select parley.alter_queue('target_queue', poison_message_handling => false)")
	b.admin.conversation("1")
	b.failToReceive(t, 8, "1", failures["Rollback"])
	wantBodies(t, b.admin.receive(from{}), "1")
}

// Two readers fail in turn, each at a message of its own.
func TestTwoPoisonMessagesAreCountedApart(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("one")
	b.admin.conversation("other")
	for range 4 {
		first, second := b.session(t), b.session(t)
		first.begin()
		wantBodies(t, first.receive(from{}), "one")
		second.begin()
		wantBodies(t, second.receive(from{}), "other")
		first.rollback()
		second.rollback()
	}
	// Eight failures, but no message has five.
	first, second := b.session(t), b.session(t)
	first.begin()
	wantBodies(t, first.receive(from{}), "one")
	second.begin()
	wantBodies(t, second.receive(from{}), "other")
	first.commit()
	second.rollback()
	b.wantDisabled(t)
}

// Many readers count at the same time, and none of the counts is lost.
func TestFailuresThatAreCountedAtOnceAreAllCounted(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("poison one")
	b.admin.conversation("poison other")
	for round := range 5 {
		var ready [2]*session
		running := make([]*running[[]message], 2)
		for i := range ready {
			s := b.session(t)
			s.begin()
			ready[i] = s
			running[i] = start(b, s, func() ([]message, error) { return s.tryReceive(context.Background(), from{}) })
		}
		for i := range ready {
			if got, err := running[i].result(); err != nil || len(got) != 1 {
				t.Fatalf("round %d: received %q, error %v", round, bodies(got), err)
			}
		}
		for _, s := range ready {
			s.rollback()
		}
	}
	b.wantDisabled(t)
}

func TestFailureOfATransactionThatHadSavepointsCountsOnce(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("1")
	b.failToReceive(t, 4, "1", func(_ *testing.T, _ *fixture, s *session) {
		s.savepoint("a")
		s.exec("release savepoint a")
		s.rollback()
	})
	wantBodies(t, b.admin.receive(from{}), "1")
}

// The documented way to treat poison: SAVE, RECEIVE, and on failure back to the savepoint.
func TestRollbackToASavepointDoesNotCountInItsOwnTransaction(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("1")
	s := b.session(t)
	s.begin()
	for i := range 10 {
		s.savepoint("a")
		wantBodies(t, s.receive(from{}), "1")
		s.rollbackTo("a")
		s.exec("release savepoint a")
		s.exec(fmt.Sprintf("create temporary table failure_%d ()", i))
	}
	wantBodies(t, s.receive(from{}), "1")
	s.commit()
}

// A transaction that has gone back to a savepoint and commits without the message has failed, once.
func TestRollbackToASavepointCountsWhenItsTransactionHasCommitted(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("1")
	fail := func() {
		s := b.session(t)
		s.begin()
		for range 3 {
			s.savepoint("a")
			wantBodies(t, s.receive(from{}), "1")
			s.rollbackTo("a")
		}
		s.commit()
	}
	for range 4 {
		fail()
	}
	s := b.session(t)
	s.begin()
	wantBodies(t, s.receive(from{}), "1")
	s.rollback()
	b.wantDisabled(t)
}

// A function that catches its own error is a savepoint too.
func TestErrorThatAFunctionCatchesCountsWhenItsTransactionHasCommitted(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	b.admin.conversation("1")
	for range 5 {
		b.admin.exec(`do $$
			begin
				perform parley.receive('target_queue');
				perform 1 / 0;
			exception
				when division_by_zero then null;
			end $$`)
	}
	b.wantDisabled(t)
}

// A receive that sees a message while another reader takes it for good has seen no failure.
func TestMessageThatAnotherReaderTakesDoesNotCount(t *testing.T) {
	t.Parallel()
	b := newDisablingFixture(t)
	handle, _ := b.admin.conversation("opening")
	b.admin.receive(from{})
	for i := range 20 {
		b.admin.send(handle, fmt.Sprint(i))
		first, second := b.session(t), b.session(t)
		first.begin()
		wantBodies(t, first.receive(from{}), fmt.Sprint(i))
		wantBodies(t, second.receive(from{}))
		first.commit()
		wantBodies(t, second.receive(from{}))
	}
	if n := ask[int](b.admin, "select coalesce(pg_sequence_last_value(rollback_sequence), 0) from parley._p_queue where lookup_name = 'target_queue'"); n != 0 {
		t.Errorf("something was counted: %d", n)
	}
}
