package poison_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// endConversationWaits lets two days pass for conversations that wait.
func endConversationWaits(b *sqltest.Broker) {
	b.Exec("update parley._p_set_aside set retry_at = retry_at - interval '2 days'")
	b.Exec("update parley._p_alarm set due_at = due_at - interval '2 days' where kind = 'retry'")
	b.Exec("select setval('parley._p_next_alarm', 1)")
}

const receiveOne = "select coalesce(max(parley.body_text(message_body)), 'nothing') from parley.receive('Answering', top => 1)"

func TestFailedConversationWaitsAndKeepsItsOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.AwaitReportsForAnHour()
	b.Exec("select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 day', factor => 3, jitter => 0, attempts => 3, losses => 3)")
	begin := func() (handle string) {
		return sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')::text")
	}
	bad, good := begin(), begin()
	send := func(handle, body string) {
		b.Exec("select parley.send($1::uuid, '//test/Request', $2::text)", handle, body)
	}
	send(bad, "bad 1")
	send(good, "good")

	// In one transaction, behind a savepoint.
	tx := b.Begin()
	tx.Exec("savepoint work")
	handle := sqltest.Value[string](tx, "select conversation_handle::text from parley.receive('Answering', top => 1)")
	tx.Exec("rollback to work")
	sqltest.Equal(tx, true, "select retry_at > clock_timestamp() + interval '59 minutes' and not is_set_aside from parley.retry_conversation($1, 'refused', '08006')", handle)
	tx.Commit()
	send(bad, "bad 2")
	sqltest.Equal(b.Session, "good", receiveOne)
	sqltest.Equal(b.Session, "nothing", receiveOne)
	sqltest.Equal(b.Session, "1 0 refused 2", "select concat_ws(' ', attempts, losses, error, waiting_messages) from parley.failing_conversations where retry_at > now()")
	sqltest.Equal(b.Session, 0, "select (select count(*) from parley.poison_conversations) + (select count(*) from parley.stuck_conversations)")

	// A reader that ends the wait itself, and undoes that by its failure.
	endConversationWaits(b)
	tx = b.Begin()
	sqltest.Equal(tx, "bad 1", receiveOne)
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select parley.record_failure($1, '08006', 'refused again')", handle)
	sqltest.Equal(b.Session, "2 refused again", "select concat_ws(' ', attempts, error) from parley.failing_conversations where retry_at > now() + interval '2 hours'")

	// The daemon ends it, and the reader fails without a word: then whoever receives next finds that.
	endConversationWaits(b)
	b.WaitUntil("select parley.fire_timers() >= 0 and not exists (select from parley._p_set_aside)")
	tx = b.Begin()
	sqltest.Equal(tx, "bad 1", receiveOne)
	tx.Rollback()
	sqltest.Equal(b.Session, "nothing", receiveOne)
	b.EndAwaitedReports()
	sqltest.Equal(b.Session, "nothing", receiveOne)
	sqltest.Equal(b.Session, "2 1", "select concat_ws(' ', attempts, losses) from parley.failing_conversations where retry_at > now()")

	// Somebody who knows better does not wait.
	sqltest.Equal(b.Session, 2, "select parley.retry_poison($1)", handle)
	sqltest.Equal(b.Session, "bad 1", receiveOne)
	sqltest.Equal(b.Session, "bad 2", receiveOne)
	if found := b.Check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}

func TestConversationIsSetAsideAfterTheAttemptsOfItsPolicy(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 day', factor => 3, jitter => 0, attempts => 2)")
	handle := sqltest.Value[string](b.Session, `
		select d.handle::text
		from parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work') as d (handle)
		cross join lateral parley.send(d.handle, '//test/Request', 'bad'::text) as s`)
	target := sqltest.Value[string](b.Session, "select conversation_handle::text from parley.conversation_endpoints where conversation_handle <> $1 and is_initiator = 0", handle)
	sqltest.Equal(b.Session, false, "select is_set_aside from parley.retry_conversation($1)", target)
	sqltest.Equal(b.Session, true, "select is_set_aside is null from parley.retry_conversation($1)", target)
	endConversationWaits(b)
	sqltest.Equal(b.Session, true, "select is_set_aside from parley.retry_conversation($1, 'at last')", target)
	sqltest.Equal(b.Session, "2 at last", "select concat_ws(' ', rollbacks, error) from parley.poison_conversations")
	sqltest.Equal(b.Session, 1, "select parley.retry_poison($1)", target)
	sqltest.Equal(b.Session, true, "select parley.fail_conversation($1, 'never') and not parley.fail_conversation($1)", target)
	sqltest.Equal(b.Session, "1 never", "select concat_ws(' ', rollbacks, error) from parley.poison_conversations")
}

// A worker may learn of its failure after another one has received what it failed on: then there is nothing to say.
func TestReportOfAConversationOfWhichNothingWaitsSaysSo(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{
		"with a policy": "select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 hour')",
		"without":       "select parley.remove_retry_policy('Answering')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(policy)
			b.Exec("select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'a', contract => '//test/Work')")
			handle := sqltest.Value[string](b.Session, "select conversation_handle::text from parley.receive('Answering', top => 1)")
			sqltest.Equal(b.Session, true, "select retry_at is null and is_set_aside is null from parley.retry_conversation($1, 'late')", handle)
			sqltest.Equal(b.Session, true, "select retry_at is null and is_set_aside is null from parley.retry_conversation($1, delay => '1 hour')", handle)
			sqltest.Equal(b.Session, false, "select parley.fail_conversation($1, 'late')", handle)
			b.Exec("select parley.record_failure($1, '08006', 'late')", handle)
			b.Exec("select parley.fail_delivery('Answering', $1, 'answered 410', is_final => true)", handle)
			sqltest.Equal(b.Session, 0, "select (select count(*) from parley.poison_conversations) + (select count(*) from parley._p_set_aside)")
		})
	}
}
