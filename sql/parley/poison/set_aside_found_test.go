package poison_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// comeBack receives one message and rolls back, some times.
func comeBack(b *sqltest.Broker, times int, want string) {
	b.Helper()
	for range times {
		tx := b.Begin()
		got := tx.Messages("select * from parley.receive('Answering', top => 1)")
		// The reader that sets a conversation aside finds nothing else.
		if len(got) > 1 || len(got) == 1 && string(got[0].MessageBody) != want {
			b.Fatalf("received %q, want %q", sqltest.BodiesOf(got), want)
		}
		tx.Rollback()
	}
}

// newFound gives the target of a conversation whose first message has come back twice, which is as often as it may. The reader that set it
// aside has rolled back.
func newFound(t *testing.T) (b *sqltest.Broker, target string) {
	t.Helper()
	b = sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 2)")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "first")
	comeBack(b, 3, "first")
	sqltest.Equal(b.Session, 0, setAside)
	return b, b.FarHandle(handle)
}

const setAside = "select count(*) from parley.poison_conversations"

func TestWhatAReaderFoundPoisonousIsSetAsideThoughItRolledBack(t *testing.T) {
	t.Parallel()
	b, target := newFound(t)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, target, "select conversation_handle::text from parley.poison_conversations")
}

// Two messages of one conversation are counted: the sender of the first one committed late.
func TestConversationWithTwoPoisonousMessagesIsSetAsideOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 2)")
	handle, target := b.Conversation()
	late := b.Begin()
	late.Send(handle, sqltest.Request, "in front")
	b.Send(handle, sqltest.Request, "first")
	comeBack(b, 3, "first")
	late.Commit()
	comeBack(b, 3, "in front")
	sqltest.Equal(b.Session, 0, setAside)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, target, "select conversation_handle::text from parley.poison_conversations")
	sqltest.Equal(b.Session, 2, "select parley.retry_poison($1::uuid)", target)
}

// The search reads what was committed when it began, and asks again under the lock of the group.
func TestConversationThatEndsWhileItIsFoundPoisonousIsNotSetAside(t *testing.T) {
	t.Parallel()
	b, target := newFound(t)
	const condition = "and m.xmax::text <> '0'"
	definition := sqltest.Value[string](b.Session, "select pg_get_functiondef('parley._p_set_aside_found(integer[])'::regprocedure)")
	if strings.Count(definition, condition) != 1 {
		t.Fatal("the condition is not found in the function: does it read otherwise now?")
	}
	b.Exec(strings.Replace(definition, condition, condition+" and (select pg_catalog.pg_advisory_xact_lock(230)) is not null", 1))
	gate := b.Begin()
	gate.Exec("select pg_advisory_xact_lock(230)")
	w := b.Start("select parley.fire_timers()")
	b.WaitUntil("select exists (select from pg_locks where pid = $1 and locktype = 'advisory' and not granted)", w.Backend)
	b.Exec("select parley.end_conversation($1::uuid)", target)
	gate.Rollback()
	w.RequireSuccess()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_set_aside")
}

// A message that others have is not waited for, and its failure counts when they have failed.
func TestConversationThatOthersHaveIsNotSetAsideThen(t *testing.T) {
	t.Parallel()
	b, target := newFound(t)
	holder := b.Begin()
	holder.Exec("select parley.get_conversation_group('Answering')")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, setAside)
	holder.Rollback()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, target, "select conversation_handle::text from parley.poison_conversations")
}

// A session that gave up to discard its message has left a mark on that, as a reader does whose work has failed.
func TestFailureOfAConversationThatIsSetAsideIsNotCounted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 day', factor => 3, jitter => 0, attempts => 3, losses => 3)")
	b.Send(b.Dialog(), sqltest.Request, "first")
	tx := b.Begin()
	target := tx.Receive("Answering")[0].ConversationHandle
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select parley.fail_conversation($1::uuid)", target)
	tx = b.Begin()
	tx.Exec("select parley.discard_poison($1::uuid, message_only => true)", target)
	tx.Rollback()
	b.Exec(`
		select parley._p_count_failure(q, e)
		from parley._p_endpoint as e
		join parley._p_service as s using (service_id)
		join parley._p_queue as q using (queue_id)
		where e.conversation_handle = $1`, target)
	sqltest.Equal(b.Session, 1, setAside)
}

// The queue decides what becomes of poison when it is set aside, and not when it was found.
func TestWhatWasFoundPoisonousIsSetAsideByTheSettingsOfThen(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"handling is off":       "select parley.alter_queue('Answering', poison_message_handling => false)",
		"the queue is disabled": "select parley.alter_queue('Answering', poison_action => 'DISABLE_QUEUE')",
		"the queue has a policy": `
			select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 day', factor => 3, jitter => 0, attempts => 3, losses => 3)`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, _ := newFound(t)
			b.Exec(statement)
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, setAside)
		})
	}
}

// Of a place in the queue the count keeps 27 bits. A message that comes to the same ones has not come back.
func TestMessageThatHasTheNumberOfAPoisonousOneIsNotSetAside(t *testing.T) {
	t.Parallel()
	b, target := newFound(t)
	b.Exec("select parley.end_conversation($1::uuid)", target)
	b.Send(b.Dialog(), sqltest.Request, "new")
	b.Exec(`
		select setval(q.rollback_sequence, ((m.position / 1024) & 134217727) << 4 | 15)
		from parley._p_queue as q, parley._p_message as m
		where q.lookup_name = 'Answering' and m.body = 'new'`)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, setAside)
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"new"}) {
		t.Errorf("received %q", got)
	}
}

// Its transaction may still commit.
func TestFailureIsNotCountedWhileASessionHasTheMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "first")
	holder := b.Begin()
	target := holder.Receive("Answering")[0].ConversationHandle
	b.Exec("select parley.record_failure($1::uuid, '22012', 'division by zero')", target)
	sqltest.Equal(b.Session, 0, "select (last_value & 15)::int from "+sqltest.Value[string](b.Session,
		"select rollback_sequence::regclass::text from parley._p_queue where lookup_name = 'Answering'"))
}
