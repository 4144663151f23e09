package poison_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const conversationFailures = "select coalesce(string_agg(concat_ws(' ', attempts, losses, error), ', '), 'none') from parley.failing_conversations where retry_at > now()"

// newRetryingConversations gives a broker whose queue of answers has a policy, and the target of a conversation with one message.
func newRetryingConversations(t *testing.T, body string) (b *sqltest.Broker, target string) {
	t.Helper()
	b = sqltest.NewWorld(t)
	b.AwaitReportsForAnHour()
	b.Exec("select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 day', factor => 3, jitter => 0, attempts => 5, losses => 5)")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, body)
	return b, b.FarHandle(handle)
}

// failReceived receives the message bad, rolls back, and has a reader find nothing.
func failReceived(b *sqltest.Broker) {
	b.Helper()
	tx := b.Begin()
	sqltest.Equal(tx, "bad", receiveOne)
	tx.Rollback()
	sqltest.Equal(b.Session, "nothing", receiveOne)
}

func TestConversationThatCameBackAwaitsItsReport(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]string{
		"retry_conversation": "select parley.retry_conversation($1, 'refused')",
		"record_failure":     "select parley.record_failure($1, null, 'refused')",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, target := newRetryingConversations(t, "bad")
			failReceived(b)
			// No reader is told to come, no form of RECEIVE but one that names it takes it, and others go on.
			sqltest.Equal(b.Session, false, "select parley._p_is_worth_receiving(q) from parley._p_queue as q where q.lookup_name = 'Answering'")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.receive('Answering', groups => 10)")
			sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering') is null")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.get_conversation_groups('Answering', 10)")
			b.Send(b.Dialog(), sqltest.Request, "good")
			sqltest.Equal(b.Session, "good", receiveOne)
			b.Exec(report, target)
			sqltest.Equal(b.Session, "1 0 refused", conversationFailures)
			endConversationWaits(b)
			failReceived(b)
			b.Exec(report, target)
			sqltest.Equal(b.Session, "2 0 refused", conversationFailures)
		})
	}
}

// A worker that met a group locked before has a number, and what a later transaction gives back is not its own.
func TestWorkerThatHasANumberAwaitsTheReportOfALaterReceive(t *testing.T) {
	t.Parallel()
	b, _ := newRetryingConversations(t, "bad")
	reader := b.Begin()
	reader.Exec("set local parley.reader = on")
	reader.Exec("select pg_current_xact_id()")
	tx := b.Begin()
	sqltest.Equal(tx, "bad", receiveOne)
	tx.Rollback()
	sqltest.Equal(reader, "nothing", receiveOne)
}

// RECEIVE marks what it takes behind a savepoint, so a procedure of a worker gets that again at once.
func TestWorkerReceivesAtOnceWhatItGaveBackItself(t *testing.T) {
	t.Parallel()
	b, _ := newRetryingConversations(t, "bad")
	reader := b.Begin()
	reader.Exec("set local parley.reader = on")
	for range 3 {
		reader.Exec("savepoint work")
		sqltest.Equal(reader, "bad", receiveOne)
		reader.Exec("rollback to work")
	}
	reader.Rollback()
	sqltest.Equal(b.Session, "nothing", receiveOne)
}

func TestWhoNamesAConversationAwaitsNoReport(t *testing.T) {
	t.Parallel()
	b, target := newRetryingConversations(t, "bad")
	failReceived(b)
	sqltest.Equal(b.Session, "bad", "select parley.body_text(message_body) from parley.receive('Answering', conversation_handle => $1)", target)
}

func TestConversationsThatCameBackTogetherAreReceivedAtOnce(t *testing.T) {
	t.Parallel()
	b, _ := newRetryingConversations(t, "a")
	b.Send(b.Dialog(), sqltest.Request, "b")
	tx := b.Begin()
	sqltest.Equal(tx, 2, "select count(*) from parley.receive('Answering', groups => 10)")
	tx.Rollback()
	sqltest.Equal(b.Session, "a", receiveOne)
	sqltest.Equal(b.Session, "b", receiveOne)
}

// Messages of one conversation that were received together fail together, and are reported.
func TestMessagesOfAConversationThatCameBackTogetherAwaitTheReport(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.AwaitReportsForAnHour()
	b.Exec("select parley.set_retry_policy('Answering', first => '1 hour', longest => '1 day')")
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "a")
	b.Send(handle, sqltest.Request, "b")
	tx := b.Begin()
	sqltest.Equal(tx, 2, "select count(*) from parley.receive('Answering')")
	tx.Rollback()
	sqltest.Equal(b.Session, "nothing", receiveOne)
	b.EndAwaitedReports()
	sqltest.Equal(b.Session, "a", receiveOne)
}

func TestGroupOfSeveralConversationsAwaitsTheReportOfItsFirst(t *testing.T) {
	t.Parallel()
	b, target := newRetryingConversations(t, "bad")
	other := b.Dialog()
	b.Send(other, sqltest.Request, "beside")
	b.Exec("select parley.move_conversation($1, $2)", b.FarHandle(other), b.GroupOf(target))
	failReceived(b)
	b.Exec("select parley.record_failure($1, null, 'refused')", target)
	sqltest.Equal(b.Session, "beside", receiveOne)
	sqltest.Equal(b.Session, "1 0 refused", conversationFailures)
}

func TestReportOfAConversationThatComesLateExplainsTheLoss(t *testing.T) {
	t.Parallel()
	for name, report := range map[string]string{
		"retry_conversation": "select parley.retry_conversation($1, 'late')",
		"record_failure":     "select parley.record_failure($1, null, 'late')",
	} {
		for when, wait := range map[string]func(b *sqltest.Broker){
			"while it waits": func(*sqltest.Broker) {},
			"after its wait": endConversationWaits,
			"put back": func(b *sqltest.Broker) {
				endConversationWaits(b)
				b.WaitUntil("select parley.fire_timers() >= 0 and not exists (select from parley._p_set_aside)")
			},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				b, target := newRetryingConversations(t, "bad")
				for range 2 {
					failReceived(b)
					b.EndAwaitedReports()
				}
				sqltest.Equal(b.Session, "nothing", receiveOne)
				sqltest.Equal(b.Session, "0 2", conversationFailures)
				wait(b)
				b.Exec(report, target)
				sqltest.Equal(b.Session, "1 1 late", conversationFailures)
				b.Exec(report, target)
				sqltest.Equal(b.Session, "1 1 late", conversationFailures)
				endConversationWaits(b)
				failReceived(b)
				b.Exec(report, target)
				sqltest.Equal(b.Session, "2 1 late", conversationFailures)
			})
		}
	}
}
