package receive_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const receiveLong = "select from parley.receive('Answering', timeout => 600000)"

// sleeps and waitsForItsTurn count the sessions that watch the queue, and those that wait until they may.
const (
	sleeps         = "(select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')"
	waitsForATurn  = "(select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'advisory')"
	hasTheTurnHere = "select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')"
)

func TestOneOfTheReadersThatWaitWatchesTheQueueForAll(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	var readers []*sqltest.Waiter
	for _, statement := range []string{
		receiveLong, receiveLong,
		"select parley.get_conversation_group('Answering', timeout => 600000)",
		"select parley.get_conversation_groups('Answering', 1, timeout => 600000)",
	} {
		readers = append(readers, b.Start(statement))
	}
	b.WaitUntil("select " + sleeps + " = 1 and " + waitsForATurn + " = 3")
	// Each gets one, whoever has the turn. A reader of groups holds none once its statement has ended, so it leaves some for the others.
	b.Fill(4, 2)
	for _, r := range readers {
		r.RequireSuccess()
	}
}

// However the session that watches ends, the next one in line watches, and gets what comes.
func TestReaderThatWatchesGivesItsTurnAwayHoweverItEnds(t *testing.T) {
	t.Parallel()
	const endIt = "select %s from pg_stat_activity where pid = $1"
	for name, c := range map[string]struct{ before, end, code string }{
		"cancelled":                {"", fmt.Sprintf(endIt, "pg_cancel_backend(pid)"), "57014"},
		"killed":                   {"", fmt.Sprintf(endIt, "pg_terminate_backend(pid)"), "57P01"},
		"by its statement_timeout": {"set statement_timeout = '2s'", "", "57014"},
		"in a transaction":         {"begin", fmt.Sprintf(endIt, "pg_cancel_backend(pid)"), "57014"},
		"behind a savepoint":       {"begin; savepoint a", fmt.Sprintf(endIt, "pg_cancel_backend(pid)"), "57014"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			s := b.Connection()
			if c.before != "" {
				s.Exec(c.before)
			}
			first := b.StartIn(s, receiveLong)
			if c.end != "" {
				b.WaitUntil(hasTheTurnHere, first.Backend)
			}
			second := b.Start(receiveLong)
			if c.end != "" {
				b.Exec(c.end, first.Backend)
			}
			// Its transaction, where it has one, is not rolled back yet.
			first.RequireCode(c.code)
			b.WaitUntil(hasTheTurnHere, second.Backend)
			b.Send(b.Dialog(), sqltest.Request, "x")
			second.RequireSuccess()
			sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
		})
	}
}

func TestMessageIsReceivedThoughAnOutsiderHoldsTheTurn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	outsider := b.Begin()
	outsider.Exec("select pg_advisory_xact_lock(hashtextextended('parley turn', queue_id)) from parley._p_queue where lookup_name = 'Answering'")
	w := b.Blocked(receiveLong)
	b.Send(b.Dialog(), sqltest.Request, "x")
	w.RequireSuccess()
	outsider.Rollback()
}

// A session that waits takes no number of a transaction, and no lock that readers would take for that of a sender: they could hint
// nothing to each other for as long as somebody waits.
func TestReaderThatWaitsIsNotTakenForASender(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, w := range []*sqltest.Waiter{b.Waiting(receiveLong), b.Blocked(receiveLong)} {
		sqltest.Equal(b.Session, true, "select backend_xid is null from pg_stat_activity where pid = $1", w.Backend)
	}
	sqltest.Equal(b.Session, 0, "select cardinality(p.senders) from parley._p_queue as q, parley._p_probe(q.position_sequence) as p where q.name = 'Answering'")
}

// The session that watches counts as free just the groups from which RECEIVE would give something.
func TestWatchSeesFreeGroupsAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const isFree = "select parley._p_has_free_group(parley._p_lane(q.queue_id, 5), 0) from parley._p_queue as q where q.name = 'Answering'"
	sqltest.Equal(b.Session, false, isFree)
	// More groups than it reads at either end of the lane, in the hands of another reader.
	b.Fill(100, 2)
	sqltest.Equal(b.Session, true, isFree)
	holder := b.Begin()
	sqltest.Equal(holder, 100, "select count(*) from parley.get_conversation_groups('Answering', 100)")
	sqltest.Equal(b.Session, false, isFree)
	// One of them is received, so its message is gone, and the lock of its group stays.
	holder.Exec("select from parley.receive('Answering', 1)")
	sqltest.Equal(b.Session, false, isFree)
	// A message that comes behind all of them is seen, unless it is not committed, or taken.
	sender := b.Begin()
	fresh := sender.Dialog()
	sender.Send(fresh, sqltest.Request, "x")
	sqltest.Equal(b.Session, false, isFree)
	sender.Commit()
	sqltest.Equal(b.Session, true, isFree)
	taker := b.Begin()
	taker.Exec("savepoint a")
	taker.Exec("select from parley.receive('Answering', 1)")
	sqltest.Equal(b.Session, false, isFree)
	// Messages that a reader keeps, who went back to a savepoint, are not free. Those of one that has rolled back are.
	taker.Exec("rollback to a")
	sqltest.Equal(b.Session, false, isFree)
	taker.Rollback()
	sqltest.Equal(b.Session, true, isFree)
	b.Exec("select from parley.receive('Answering', 1)")
	sqltest.Equal(b.Session, false, isFree)
	holder.Rollback()
	sqltest.Equal(b.Session, true, isFree)
}

// A conversation that is set aside is nobody's to receive.
func TestWatchPassesByWhatIsSetAside(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Poison("behind")
	sqltest.Equal(b.Session, false, "select parley._p_has_free_group(parley._p_lane(q.queue_id, 5), 0) from parley._p_queue as q where q.name = 'Answering'")
}

func TestReaderThatWaitsIsGivenMessagesOfEachPriority(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_broker_priority('Low', priority_level => 2)")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	if got := b.Bodies("Answering"); len(got) != 1 {
		t.Fatalf("received %q", got)
	}
	w := b.Waiting(receiveLong)
	b.Send(handle, sqltest.Request, "low")
	w.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}
