package conversation_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestWhatADialogNeedsOfTheCatalogIsKept(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for range 3 {
		b.Exec(sqltest.BeginAndSend)
		b.Send(b.Dialog(), sqltest.Request, "as well")
		sqltest.Equal(b.Session, 1, sqltest.KeptDialogs)
	}
	b.Exec("select parley.create_message_type('//test/Other')")
	sqltest.Equal(b.Session, 0, sqltest.KeptDialogs)
	b.Exec(sqltest.BeginAndSend)
	sqltest.Equal(b.Session, 1, sqltest.KeptDialogs)
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_local_dialog")
	sqltest.Equal(b.Session, 7, "select count(*) from parley.queue_contents('Answering')")
}

// Facts that are found while a change is under way are those before it, and must not outlive it.
func TestNothingIsKeptWhileTheCatalogChanges(t *testing.T) {
	t.Parallel()
	for _, isUndone := range []bool{false, true} {
		b := sqltest.NewWorld(t)
		changing := b.Begin()
		changing.Exec(sqltest.RouteAway)
		if handle := sqltest.Value[string](b.Session, sqltest.BeginAndSend); sqltest.Value[bool](b.Session, sqltest.GoesAway, handle) {
			t.Error("a route counts before it is committed")
		}
		sqltest.Equal(b.Session, 0, sqltest.KeptDialogs)
		if isUndone {
			changing.Rollback()
		} else {
			changing.Commit()
		}
		handle := sqltest.Value[string](b.Session, sqltest.BeginAndSend)
		if got := sqltest.Value[bool](b.Session, sqltest.GoesAway, handle); got == isUndone {
			t.Errorf("undone: %t, goes by the new route: %t", isUndone, got)
		}
	}
}

func TestATransactionSeesItsOwnChangeOfTheCatalog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.BeginAndSend)
	tx := b.Begin()
	tx.Exec("savepoint before")
	tx.Exec(sqltest.RouteAway)
	sqltest.Equal(tx, true, sqltest.GoesAway, sqltest.Value[string](tx, sqltest.BeginAndSend))
	tx.Exec("rollback to before")
	sqltest.Equal(tx, false, sqltest.GoesAway, sqltest.Value[string](tx, sqltest.BeginAndSend))
	tx.Commit()
	sqltest.Equal(b.Session, false, sqltest.GoesAway, sqltest.Value[string](b.Session, sqltest.BeginAndSend))
}

// A change that commits between two dialogs of a snapshot does not reach it, and what it finds is not kept for others.
func TestAnOldSnapshotKeepsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	s := b.Connection()
	s.Exec("begin isolation level repeatable read")
	s.Exec("select count(*) from parley._p_queue")
	b.Exec(sqltest.RouteAway)
	s.Exec(sqltest.BeginAndSend)
	s.Commit()
	sqltest.Equal(b.Session, 0, sqltest.KeptDialogs)
	sqltest.Equal(b.Session, true, sqltest.GoesAway, sqltest.Value[string](b.Session, sqltest.BeginAndSend))
}

func TestSessionsThatKeepTheSameDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Begin(), b.Begin()
	for range 2 {
		first.Exec(sqltest.BeginAndSend)
		second.Exec(sqltest.BeginAndSend)
		b.Exec(sqltest.BeginAndSend)
	}
	first.Commit()
	second.Rollback()
	b.Exec(sqltest.BeginAndSend)
	sqltest.Equal(b.Session, 5, "select count(*) from parley.queue_contents('Answering')")
}

func TestARouteThatExpiresIsNotKept(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_route('for a while', 'LOCAL', service_name => '//test/Answerer', lifetime => 1000)")
	b.Exec(sqltest.BeginAndSend)
	sqltest.Equal(b.Session, 0, sqltest.KeptDialogs)
}

// A statement that changes a row of any table that the search reads moves the version on.
func TestEachTableOfTheSearchMovesTheVersionOfTheCatalog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	names := regexp.MustCompile(`parley\.(_p_[a-z_]+)`)
	var tables, seen []string
	var visit func(name string)
	visit = func(name string) {
		if slices.Contains(seen, name) {
			return
		}
		seen = append(seen, name)
		if sqltest.Value[bool](b.Session, "select exists (select from pg_class where oid = to_regclass('parley.' || $1) and relkind = 'r')", name) {
			tables = append(tables, name)
		}
		// A function of the same name that takes a message is of simple queues.
		body := sqltest.Value[string](b.Session, `select coalesce((select string_agg(p.prosrc, ' ') from pg_proc as p
			where p.pronamespace = 'parley'::regnamespace and p.proname = $1
				and not 'parley._p_message'::regtype = any (p.proargtypes)), '')
			|| coalesce((select pg_get_viewdef(c.oid) from pg_class as c where c.oid = to_regclass('parley.' || $1) and c.relkind = 'v'), '')`, name)
		for _, match := range names.FindAllStringSubmatch(body, -1) {
			visit(match[1])
		}
	}
	visit("_p_resolve_local_dialog")
	b.Exec("select parley.create_broker_priority('high', priority_level => 9), parley.grant('SEND', 'service', '//test/Answerer', $1)", b.Role("sender"))
	// It is the type of what the search gives.
	tables = slices.DeleteFunc(tables, func(name string) bool { return name == "_p_local_dialog" })
	if len(tables) < 9 {
		t.Fatalf("the search reads only %s", strings.Join(tables, ", "))
	}
	for _, table := range tables {
		// For each row of INSERT, DELETE and UPDATE, and for TRUNCATE, after them, and always.
		sqltest.Equal(b.Session, 2, `select count(*) from pg_trigger as g where g.tgrelid = to_regclass('parley.' || $1) and g.tgenabled = 'A'
			and (g.tgname, g.tgtype) in (('_p_change_catalog', 1 + 4 + 8 + 16), ('_p_empty_catalog', 32))`, table)
		for _, change := range []string{"delete from parley." + table, "truncate parley." + table + " cascade"} {
			before := sqltest.Value[int64](b.Session, "select last_value from parley._p_catalog_version")
			tx := b.Begin()
			tx.Exec("set local session_replication_role = replica") // That nothing refers to the rows.
			tx.Exec(change)
			tx.Rollback()
			if after := sqltest.Value[int64](b.Session, "select last_value from parley._p_catalog_version"); after <= before {
				t.Errorf("%s does not move the version on", change)
			}
		}
	}
}

// Programs and daemons change nothing of the catalog by their daily work, not even by a statement that finds no row: each session would
// look for its services anew, and each daemon for its queues.
func TestDailyWorkLeavesTheVersionOfTheCatalogAsItIs(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Jobs', kind => 'SIMPLE')")
	role := b.Role("worker")
	const renewed = "select parley._p_lead(leader => 'one', term => %d, milliseconds => 600000, serves_neighbours => false)"
	term := sqltest.Value[int64](b.Session, fmt.Sprintf(renewed, 0))
	work := []string{
		fmt.Sprintf(renewed, term),
		"select from parley.attach_broker()",
		"select parley.fire_timers()",
		"select from parley._p_fire_due(term => 1, top => 100, one_by_one => false)",
		"select parley.put('Jobs', 'a')",
		"select from parley.take('Jobs')",
		"select parley.listen_for_messages('Jobs', 5)",
		"select parley.put('Jobs', 'a', priority => 9), parley.put('Jobs', 'a', key => 'k'), parley.put('Jobs', 'a', deliver_at => now() + interval '1 hour')",
		"select parley.put_unique('Jobs', 'a', 'u'), parley.put_batch('Jobs', array['a', 'b'])",
		"select parley.give_back('Jobs', c.claim, 'no') from parley.claim('Jobs') as c",
		"select parley.renew('Jobs', c.claim) and parley.complete('Jobs', c.claim) from parley.claim('Jobs') as c",
		"select parley.retry('Jobs', m.message_id) from parley.peek_messages('Jobs', 1) as m",
		"select parley.cancel('Jobs', m.message_id) from parley.peek_messages('Jobs', 1) as m",
		"select from parley._p_speaker(term => 1), parley._p_destinations()",
		"select parley._p_follow_roles(), parley._p_forget_keys(1000), parley._p_take_care(parley._p_caller(parley.current_caller()), null, 10)",
		"select parley._p_ask_for_transmission_wakeups(5), parley._p_forget_dialogs(1000)",
		"select from parley._p_due_schedules(1, 100), parley._p_activated_queues()",
		"select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'), '//test/Request', 'a', deliver_at => clock_timestamp())",
		"select parley.retry_conversation(p.conversation_handle) from parley.peek('Answering', 1) as p",
		// A program says these at each start.
		"select parley.create_queue('Jobs', kind => 'SIMPLE', if_not_exists => true)",
		"select parley.set_retry_policy('Jobs'), parley.set_queue_limits('Jobs', concurrency => 7), parley.keep_finished('Jobs', '1 hour')",
		"select parley.schedule('nightly', 'Jobs', 'a', cron => '0 3 * * *')",
		"select parley.grant('SEND', 'queue', 'Jobs', '" + role + "')",
		"select parley.resume_readers('Jobs')",
		"select parley.enable_broker(), parley.honor_broker_priority(false)",
		sqltest.BeginAndSend,
		"select parley.end_conversation(r.conversation_handle) from parley.receive('Answering') as r",
		"select parley.end_conversation(r.conversation_handle) from parley.receive('Asking') as r",
	}
	for _, statement := range work {
		b.Exec(statement) // the first message of a priority is told to readers
	}
	for _, statement := range work {
		before := sqltest.Value[int64](b.Session, "select last_value from parley._p_catalog_version")
		b.Exec(statement)
		if after := sqltest.Value[int64](b.Session, "select last_value from parley._p_catalog_version"); after != before {
			t.Errorf("%s moves the version on from %d to %d", statement, before, after)
		}
	}
}

// An advisory lock is there for everybody; nobody but the schema's owner may hold up whoever changes the catalog.
func TestNobodyElseCanHoldTheLockOfTheCatalog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	outsiderName := b.Role("outsider")
	outsider := b.As(outsiderName)
	outsider.Exec("select pg_advisory_lock(hashtextextended('parley catalog', 0))")
	tx := b.Begin()
	tx.Exec("set local lock_timeout = '2s'")
	tx.Exec("select parley.create_message_type('//test/Other')")
	tx.Commit()
	for _, mode := range []string{"access share", "row share", "exclusive"} {
		locking := b.StartIn(b.As(outsiderName), "do 'begin lock table parley._p_catalog_change in "+mode+" mode; end'")
		locking.RequireCode("42501")
	}
	b.Exec(sqltest.BeginAndSend)
	sqltest.Equal(b.Session, 1, sqltest.KeptDialogs)
}
