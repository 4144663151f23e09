package sql_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	beginAndSend = "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')"
	routeAway    = "select parley.create_route('away', 'tcp://elsewhere:4022', service_name => '//test/Answerer')"
	// keptDialogs counts what is kept and would be used.
	keptDialogs = "select count(*) from parley._p_local_dialog where catalog_version = (select last_value from parley._p_catalog_version)"
	goesAway    = "select coalesce(destination_id, 0) > 0 from parley._p_endpoint where conversation_handle = $1"
)

func TestWhatADialogNeedsOfTheCatalogIsKept(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for range 3 {
		b.exec(beginAndSend)
		b.send(b.dialog(), request, "as well")
		equal(b.session, 1, keptDialogs)
	}
	b.exec("select parley.create_message_type('//test/Other')")
	equal(b.session, 0, keptDialogs)
	b.exec(beginAndSend)
	equal(b.session, 1, keptDialogs)
	equal(b.session, 1, "select count(*) from parley._p_local_dialog")
	equal(b.session, 7, "select count(*) from parley.queue_contents('Answering')")
}

// What is found while a change is under way is what was before it, and must not outlive it.
func TestNothingIsKeptWhileTheCatalogChanges(t *testing.T) {
	t.Parallel()
	for _, isUndone := range []bool{false, true} {
		b := newWorld(t)
		changing := b.begin()
		changing.exec(routeAway)
		if handle := value[string](b.session, beginAndSend); value[bool](b.session, goesAway, handle) {
			t.Error("a route counts before it is committed")
		}
		equal(b.session, 0, keptDialogs)
		if isUndone {
			changing.rollback()
		} else {
			changing.commit()
		}
		handle := value[string](b.session, beginAndSend)
		if got := value[bool](b.session, goesAway, handle); got == isUndone {
			t.Errorf("undone: %t, goes by the new route: %t", isUndone, got)
		}
	}
}

func TestATransactionSeesItsOwnChangeOfTheCatalog(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(beginAndSend)
	tx := b.begin()
	tx.exec("savepoint before")
	tx.exec(routeAway)
	equal(tx, true, goesAway, value[string](tx, beginAndSend))
	tx.exec("rollback to before")
	equal(tx, false, goesAway, value[string](tx, beginAndSend))
	tx.commit()
	equal(b.session, false, goesAway, value[string](b.session, beginAndSend))
}

// A change that commits between two dialogs of a snapshot does not reach it, and what it finds is not kept for others.
func TestAnOldSnapshotKeepsNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	s := b.connection()
	s.exec("begin isolation level repeatable read")
	s.exec("select count(*) from parley._p_queue")
	b.exec(routeAway)
	s.exec(beginAndSend)
	s.commit()
	equal(b.session, 0, keptDialogs)
	equal(b.session, true, goesAway, value[string](b.session, beginAndSend))
}

func TestSessionsThatKeepTheSameDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.begin(), b.begin()
	for range 2 {
		first.exec(beginAndSend)
		second.exec(beginAndSend)
		b.exec(beginAndSend)
	}
	first.commit()
	second.rollback()
	b.exec(beginAndSend)
	equal(b.session, 5, "select count(*) from parley.queue_contents('Answering')")
}

func TestARouteThatExpiresIsNotKept(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_route('for a while', 'LOCAL', service_name => '//test/Answerer', lifetime => 1000)")
	b.exec(beginAndSend)
	equal(b.session, 0, keptDialogs)
}

// Whatever table the search reads, a statement that writes to it moves the version on.
func TestEachTableOfTheSearchMovesTheVersionOfTheCatalog(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	names := regexp.MustCompile(`parley\.(_p_[a-z_]+)`)
	var tables, seen []string
	var visit func(name string)
	visit = func(name string) {
		if slices.Contains(seen, name) {
			return
		}
		seen = append(seen, name)
		if value[bool](b.session, "select exists (select from pg_class where oid = to_regclass('parley.' || $1) and relkind = 'r')", name) {
			tables = append(tables, name)
		}
		body := value[string](b.session, `select coalesce((select string_agg(p.prosrc, ' ') from pg_proc as p
			where p.pronamespace = 'parley'::regnamespace and p.proname = $1), '')
			|| coalesce((select pg_get_viewdef(c.oid) from pg_class as c where c.oid = to_regclass('parley.' || $1) and c.relkind = 'v'), '')`, name)
		for _, match := range names.FindAllStringSubmatch(body, -1) {
			visit(match[1])
		}
	}
	visit("_p_resolve_local_dialog")
	// It is the type of what the search gives.
	tables = slices.DeleteFunc(tables, func(name string) bool { return name == "_p_local_dialog" })
	if len(tables) < 9 {
		t.Fatalf("the search reads only %s", strings.Join(tables, ", "))
	}
	for _, table := range tables {
		// For INSERT, DELETE, UPDATE and TRUNCATE, after them, and always.
		equal(b.session, 1, `select count(*) from pg_trigger as g where g.tgrelid = to_regclass('parley.' || $1) and g.tgname = '_p_change_catalog'
			and g.tgtype = 4 + 8 + 16 + 32 and g.tgenabled = 'A'`, table)
		before := value[int64](b.session, "select last_value from parley._p_catalog_version")
		b.exec("delete from parley." + table + " where false")
		if after := value[int64](b.session, "select last_value from parley._p_catalog_version"); after <= before {
			t.Errorf("%s does not move the version on", table)
		}
	}
}

// An advisory lock is there for everybody; nobody but the schema's owner may hold up whoever changes the catalog.
func TestNobodyElseCanHoldTheLockOfTheCatalog(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	outsiderName := b.role("outsider")
	outsider := b.as(outsiderName)
	outsider.exec("select pg_advisory_lock(hashtextextended('parley catalog', 0))")
	tx := b.begin()
	tx.exec("set local lock_timeout = '2s'")
	tx.exec("select parley.create_message_type('//test/Other')")
	tx.commit()
	for _, mode := range []string{"access share", "row share", "exclusive"} {
		locking := b.startIn(b.as(outsiderName), "do 'begin lock table parley._p_catalog_change in "+mode+" mode; end'")
		locking.requireCode("42501")
	}
	b.exec(beginAndSend)
	equal(b.session, 1, keptDialogs)
}
