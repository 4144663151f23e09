package catalog_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The contracts of a service are what it accepts as target; initiating may use any contract of the database (spec 2.5).
func TestServiceWithoutContractsCanOnlyInitiate(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Caller', 'Asking')")
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Caller', '//test/Answerer', '//test/Work')")
	b.Send(handle, sqltest.Request, "x")
	b.RequireState(handle, "CO")
	handle = sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Caller')")
	b.Send(handle, "DEFAULT", "x")
	b.RequireError("Asking", -8408)
}

func TestServicesOnOneQueueShareIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Second', 'Answering', array['DEFAULT'])")
	for _, service := range []string{"//test/Answerer", "//test/Second"} {
		b.Exec("select parley.send(parley.begin_dialog('//test/Asker', $1), 'DEFAULT', $1)", service)
	}
	for _, service := range []string{"//test/Answerer", "//test/Second"} {
		got := b.Receive("Answering")
		if len(got) != 1 || got[0].ServiceName != service || string(got[0].MessageBody) != service {
			t.Errorf("received %v, want a message for %s", got, service)
		}
	}
}

func TestServiceMayTalkToItself(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Asker')")
	b.Send(handle, "DEFAULT", "to myself")
	got := b.Receive("Asking")
	if len(got) != 1 || got[0].ConversationHandle == handle {
		t.Fatalf("received %v", got)
	}
	b.Send(got[0].ConversationHandle, "DEFAULT", "answer")
	got = b.Receive("Asking")
	if len(got) != 1 || got[0].ConversationHandle != handle {
		t.Fatalf("received %v", got)
	}
	b.Exec("select parley.drop_service('//test/Asker')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints")
}

func TestServiceNamesAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, name := range []string{"//TEST/Answerer", "//test/Answerer ", "//test/Answere\u0301r"} {
		handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', $1, allow_unknown_target => true)", name)
		b.Send(handle, "DEFAULT", "x")
		sqltest.Equal(b.Session, true, "select parley.get_transmission_status($1) like '%does not exist%'", handle)
	}
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

// Messages move with the service, in their order, and later ones follow them.
func TestAlterServiceMovesItsMessagesInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Other')")
	one, two := b.Dialog(), b.Dialog()
	want := []string{}
	for i := range 10 {
		want = append(want, fmt.Sprint(i))
		b.Send(one, sqltest.Request, fmt.Sprint(i))
		b.Send(two, sqltest.Request, fmt.Sprint(i))
	}
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array(select i::text from generate_series(10, 1999) as i))", one)
	b.Exec("select parley.alter_service('//test/Answerer', 'Other')")
	for i := 10; i < 2000; i++ {
		want = append(want, fmt.Sprint(i))
	}
	b.Send(one, sqltest.Request, "last")
	if got := b.Receive("Answering"); len(got) > 0 {
		t.Errorf("%d messages stayed", len(got))
	}
	if got := b.Bodies("Other"); !slices.Equal(got, append(want, "last")) {
		t.Errorf("the first conversation came as %v", got)
	}
	if got := b.Bodies("Other"); !slices.Equal(got, want[:10]) {
		t.Errorf("the second conversation came as %v", got)
	}
	// Replies are the other side's, which did not move.
	b.Send(b.FarHandle(one), sqltest.Reply, "reply")
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"reply"}) {
		t.Errorf("the reply came as %v", got)
	}
}

func TestAlterServiceMovesErrorAndTimerMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Other')")
	initiator, target := b.Conversation()
	b.Send(target, sqltest.Reply, "data")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.Exec("select parley.fire_timers()")
	b.EndWithError(target, 7, "no")
	b.Exec("select parley.alter_service('//test/Asker', 'Other')")
	if got := sqltest.TypesOf(b.Receive("Other")); !slices.Equal(got, []string{sqltest.DialogTimer, sqltest.ErrorMessage, sqltest.Reply}) {
		t.Errorf("received %q", got)
	}
}

// A reader that names the conversation waits on a queue that it has left.
func TestAlterServiceFailsWhoWaitsForItsConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Other')")
	_, target := b.Conversation()
	waiter := b.Connection()
	b.Exec("select parley.alter_service('//test/Answerer', 'Other')")
	waiter.Refuses(8426, "select parley.receive('Answering', conversation_handle => $1::uuid, timeout => 60000)", target)
}

func TestServiceThatDropsAContractEndsConversationsOnIt(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	other := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	b.Send(other, "DEFAULT", "x")
	// The initiator's own list does not apply to dialogs that it begins.
	b.Exec("select parley.alter_service('//test/Asker', drop_contracts => array['//test/Work'])")
	b.RequireState(initiator, "CO")

	b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	b.RequireState(initiator, "ER")
	b.RequireState(target, "ER")
	b.RequireState(other, "CO")
	if m := b.RequireError("Asking", -8469); !strings.Contains(string(m.MessageBody), "//test/Work") {
		t.Errorf("the Error message does not name the contract: %s", m.MessageBody)
	}
	// New ones are refused.
	handle := b.Dialog()
	b.Send(handle, sqltest.Request, "x")
	b.RequireError("Asking", -8408)
	// And taken again when it is back.
	b.Exec("select parley.alter_service('//test/Answerer', add_contracts => array['//test/Work'])")
	b.Conversation()
}

func TestDropServiceInformsTheOtherSides(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	open, _ := b.Conversation()
	b.Send(open, sqltest.Request, "waiting")
	farEnded, target := b.Conversation()
	b.End(target)
	ended, _ := b.Conversation()
	b.End(ended)
	started := b.Dialog()

	b.Exec("select parley.drop_service('//test/Answerer')")
	b.RequireState(open, "ER")
	b.RequireState(farEnded, "ER")
	b.RequireState(ended, "")
	b.RequireState(started, "SO")
	got := b.Messages("select * from parley.receive('Asking', conversation_handle => $1)", open)
	if len(got) != 1 {
		t.Fatalf("received %v", got)
	}
	b.RequireCode(got[0], -8470)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where service_name = '//test/Answerer'")
	b.Exec("select parley.drop_queue('Answering')")

	// A conversation that was begun before finds a service of that name when there is one again.
	b.Send(started, sqltest.Request, "late")
	b.Exec("select parley.create_queue('Answering')")
	b.Exec("select parley.create_service('//test/Answerer', 'Answering', array['//test/Work'])")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"late"}) {
		t.Errorf("received %q", got)
	}
}

func TestDroppedServiceLosesItsGrants(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//s', 'Asking')")
	b.Exec("select parley.grant('SEND', 'service', '//s', 'PUBLIC')")
	b.Exec("select parley.drop_service('//s')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.permissions")
}

const sidesOfNoService = `
	select count(*) from parley._p_endpoint as e where not exists (select from parley._p_service as s where s.service_id = e.service_id)`

// A first send makes a side of the target that others do not see until it commits.
func TestWhoTakesAServiceAwayWaitsForItsFirstSends(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]struct{ statement, state string }{
		"service":  {"select parley.drop_service('//test/Answerer')", "ER"},
		"contract": {"select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])", "ER"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			tx := b.Begin()
			handle := tx.Dialog()
			tx.Send(handle, sqltest.Request, "under way")
			together := sqltest.Value[string](tx, sqltest.BeginAndSend)
			changing := b.Blocked(change.statement)
			tx.Commit()
			changing.RequireSuccess()
			b.RequireState(handle, change.state)
			b.RequireState(together, change.state)
			sqltest.Equal(b.Session, 0, sidesOfNoService)
		})
	}
}

func TestFirstSendWaitsForWhoDropsItsTarget(t *testing.T) {
	t.Parallel()
	for name, isUndone := range map[string]bool{"committed": false, "rolled back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle := b.Dialog()
			tx := b.Begin()
			tx.Exec("select parley.drop_service('//test/Answerer')")
			sender := b.Blocked("select parley.send($1::uuid, $2, 'late')", handle, sqltest.Request)
			if isUndone {
				tx.Rollback()
			} else {
				tx.Commit()
			}
			sender.RequireSuccess()
			sqltest.Equal(b.Session, !isUndone, "select parley.get_transmission_status($1::uuid) like '%Answerer%'", handle)
			sqltest.Equal(b.Session, 0, sidesOfNoService)
		})
	}
}

func TestFirstSendOfAnOldSnapshotDoesNotReachADroppedService(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.Exec("select from parley._p_broker")
	b.Exec("select parley.drop_service('//test/Answerer')")
	sender := b.StartIn(old, "select parley.send($1::uuid, $2, 'late')", handle, sqltest.Request)
	sender.RequireCode("40001")
	sqltest.Equal(b.Session, 0, sidesOfNoService)
}

// BEGIN DIALOG makes the target's side, which nobody sees yet: who drops the service waits for it, and removes it.
func TestDropServiceWaitsForADialogThatIsBegunAndRemovesItsTarget(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.Dialog()
	drop := b.Blocked("select parley.drop_service('//test/Answerer')")
	tx.Commit()
	drop.RequireSuccess()
	sqltest.Equal(b.Session, 0, sidesOfNoService)
}

func TestServiceThatWasDroppedMeanwhileIsNotFound(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	tx.Exec("select parley.drop_service('//test/Answerer')")
	second := b.Blocked("select parley.drop_service('//test/Answerer')")
	contracts := b.Blocked("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	tx.Commit()
	second.RequireRefusal(15151)
	contracts.RequireRefusal(15151)
}
