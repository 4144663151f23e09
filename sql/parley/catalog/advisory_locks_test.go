package catalog_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// An advisory lock is there for everybody: whoever takes one that the schema has, or once had, holds up nobody who works with the broker.
func TestOutsidersHoldNobodyUpByAdvisoryLocks(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, body := range []string{"1", "2"} {
		handle, _ := b.Conversation()
		b.Send(handle, sqltest.Request, body)
	}
	failing := b.Begin()
	failing.Receive("Answering")
	failing.Receive("Answering")
	failing.Rollback()
	outsider := b.As(b.Role("outsider"))
	lock := func(key string) {
		outsider.Exec(sqltest.Value[string](b.Session, "select format('select pg_advisory_lock(%s)', concat_ws(', ', "+key+"))"))
	}
	const name = `hashtextextended('parley routes //test/Answerer', 0)`
	lock(name)
	changer := b.Blocked("select parley.alter_service('//test/Answerer', drop_contracts => array['DEFAULT'])")
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
		tx := b.Begin()
		if c.want == "asked" {
			tx.Configure()
		}
		tx.Exec("set local lock_timeout = '3s'")
		if got := sqltest.Value[string](tx, c.statement); got != c.want {
			t.Errorf("%s gives %q, want %q", c.what, got, c.want)
		}
		if c.what != "count of rollbacks" {
			tx.Rollback()
		}
	}
	// Nor does a reader that has counted a rollback, and whose transaction is open, hold up another one.
	tx := b.Begin()
	tx.Exec("set local lock_timeout = '3s'")
	sqltest.Equal(tx, 1, "select count(*)::int from parley.receive('Answering')")
	outsider.Exec("select pg_advisory_unlock_all()")
	changer.RequireSuccess()
}

func TestOfTwoWhoCreateAQueueTheSecondIsRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	tx := b.Begin()
	tx.Exec("select parley.create_queue('New')")
	second := b.Blocked("select parley.create_queue('New')")
	tx.Commit()
	second.RequireRefusal(2714)
}
