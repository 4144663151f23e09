package sql_test

import "testing"

// An advisory lock is there for everybody: whoever takes one that the schema has, or once had, holds up nobody who works with the broker.
func TestOutsidersHoldNobodyUpByAdvisoryLocks(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, body := range []string{"1", "2"} {
		handle, _ := b.conversation()
		b.send(handle, request, body)
	}
	failing := b.begin()
	failing.receive("Answering")
	failing.receive("Answering")
	failing.rollback()
	outsider := b.as(b.role("outsider"))
	lock := func(key string) {
		outsider.exec(value[string](b.session, "select format('select pg_advisory_lock(%s)', concat_ws(', ', "+key+"))"))
	}
	const name = `hashtextextended('parley routes //test/Answerer', 0)`
	lock(name)
	changer := b.blocked("select parley.alter_service('//test/Answerer', drop_contracts => array['DEFAULT'])")
	for _, c := range []struct{ what, key, statement, want string }{
		{
			"count of rollbacks", "1346458188, (select q.queue_id from parley._p_queue as q where q.name = 'Answering')",
			"select count(*)::text from parley.receive('Answering')", "1",
		},
		{
			"CREATE QUEUE", "hashtextextended('parley queue ' || parley._p_lookup_name('dbo', 'New'), 0)",
			"select (parley.create_queue('New') > 0)::text", "true",
		},
		{
			"first send", name,
			"select (parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work') is not null)::text", "true",
		},
		{
			"new day of tracking", "8102099357864587376",
			"select parley_store._p_make_tracking_day('2020-02-02')::text", "",
		},
		{
			"question for a route", "hashtextextended('parley MissingRoute //far/Service', 0)",
			"select parley._p_ask_broker_configuration('//far/Service', 6)", "asked",
		},
	} {
		lock(c.key)
		tx := b.begin()
		if c.want == "asked" {
			tx.configure()
		}
		tx.exec("set local lock_timeout = '3s'")
		if got := value[string](tx, c.statement); got != c.want {
			t.Errorf("%s gives %q, want %q", c.what, got, c.want)
		}
		if c.what != "count of rollbacks" {
			tx.rollback()
		}
	}
	// Nor does a reader that has counted a rollback, and whose transaction is open, hold up another one.
	tx := b.begin()
	tx.exec("set local lock_timeout = '3s'")
	equal(tx, 1, "select count(*)::int from parley.receive('Answering')")
	outsider.exec("select pg_advisory_unlock_all()")
	changer.requireSuccess()
}

func TestOfTwoWhoCreateAQueueTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	b := newBroker(t)
	tx := b.begin()
	tx.exec("select parley.create_queue('New')")
	second := b.blocked("select parley.create_queue('New')")
	tx.commit()
	second.requireRefusal(2714)
}
