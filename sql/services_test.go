package sql_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The contracts of a service are what it accepts as target; initiating may use any contract of the database (spec 2.5).
func TestServiceWithoutContractsCanOnlyInitiate(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Caller', 'Asking')")
	handle := value[string](b.session, "select parley.begin_dialog('//test/Caller', '//test/Answerer', '//test/Work')")
	b.send(handle, request, "x")
	b.requireState(handle, "CO")
	handle = value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Caller')")
	b.send(handle, "DEFAULT", "x")
	b.requireError("Asking", -8408)
}

func TestServicesOnOneQueueShareIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Second', 'Answering', array['DEFAULT'])")
	for _, service := range []string{"//test/Answerer", "//test/Second"} {
		b.exec("select parley.send(parley.begin_dialog('//test/Asker', $1), 'DEFAULT', $1)", service)
	}
	for _, service := range []string{"//test/Answerer", "//test/Second"} {
		got := b.receive("Answering")
		if len(got) != 1 || got[0].ServiceName != service || string(got[0].MessageBody) != service {
			t.Errorf("received %v, want a message for %s", got, service)
		}
	}
}

func TestServiceMayTalkToItself(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Asker')")
	b.send(handle, "DEFAULT", "to myself")
	got := b.receive("Asking")
	if len(got) != 1 || got[0].ConversationHandle == handle {
		t.Fatalf("received %v", got)
	}
	b.send(got[0].ConversationHandle, "DEFAULT", "answer")
	got = b.receive("Asking")
	if len(got) != 1 || got[0].ConversationHandle != handle {
		t.Fatalf("received %v", got)
	}
	b.exec("select parley.drop_service('//test/Asker')")
	equal(b.session, 0, "select count(*) from parley.conversation_endpoints")
}

func TestServiceNamesAreComparedByteByByte(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, name := range []string{"//TEST/Answerer", "//test/Answerer ", "//test/Answere\u0301r"} {
		handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', $1, allow_unknown_target => true)", name)
		b.send(handle, "DEFAULT", "x")
		equal(b.session, true, "select parley.get_transmission_status($1) like '%does not exist%'", handle)
	}
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("received %v", got)
	}
}

// Messages move with the service, in their order, and later ones follow them.
func TestAlterServiceMovesItsMessagesInOrder(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('Other')")
	one, two := b.dialog(), b.dialog()
	want := []string{}
	for i := range 10 {
		want = append(want, fmt.Sprint(i))
		b.send(one, request, fmt.Sprint(i))
		b.send(two, request, fmt.Sprint(i))
	}
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array(select i::text from generate_series(10, 1999) as i))", one)
	b.exec("select parley.alter_service('//test/Answerer', 'Other')")
	for i := 10; i < 2000; i++ {
		want = append(want, fmt.Sprint(i))
	}
	b.send(one, request, "last")
	if got := b.receive("Answering"); len(got) > 0 {
		t.Errorf("%d messages stayed", len(got))
	}
	if got := b.bodies("Other"); !slices.Equal(got, append(want, "last")) {
		t.Errorf("the first conversation came as %v", got)
	}
	if got := b.bodies("Other"); !slices.Equal(got, want[:10]) {
		t.Errorf("the second conversation came as %v", got)
	}
	// Replies are the other side's, which did not move.
	b.send(b.farHandle(one), reply, "reply")
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"reply"}) {
		t.Errorf("the reply came as %v", got)
	}
}

func TestAlterServiceMovesErrorAndTimerMessages(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('Other')")
	initiator, target := b.conversation()
	b.send(target, reply, "data")
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", initiator)
	b.exec("select parley.fire_timers()")
	b.endWithError(target, 7, "no")
	b.exec("select parley.alter_service('//test/Asker', 'Other')")
	if got := typesOf(b.receive("Other")); !slices.Equal(got, []string{dialogTimer, errorMessage, reply}) {
		t.Errorf("received %q", got)
	}
}

// A reader that names the conversation waits on a queue that it has left.
func TestAlterServiceFailsWhoWaitsForItsConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('Other')")
	_, target := b.conversation()
	waiter := b.connection()
	b.exec("select parley.alter_service('//test/Answerer', 'Other')")
	waiter.refuses(8426, "select parley.receive('Answering', conversation_handle => $1::uuid, timeout => 60000)", target)
}

func TestServiceThatDropsAContractEndsConversationsOnIt(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	other := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer')")
	b.send(other, "DEFAULT", "x")
	// The initiator's own list does not apply to dialogs that it begins.
	b.exec("select parley.alter_service('//test/Asker', drop_contracts => array['//test/Work'])")
	b.requireState(initiator, "CO")

	b.exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	b.requireState(initiator, "ER")
	b.requireState(target, "ER")
	b.requireState(other, "CO")
	if m := b.requireError("Asking", -8469); !strings.Contains(string(m.MessageBody), "//test/Work") {
		t.Errorf("the Error message does not name the contract: %s", m.MessageBody)
	}
	// New ones are refused.
	handle := b.dialog()
	b.send(handle, request, "x")
	b.requireError("Asking", -8408)
	// And taken again when it is back.
	b.exec("select parley.alter_service('//test/Answerer', add_contracts => array['//test/Work'])")
	b.conversation()
}

func TestDropServiceInformsTheOtherSides(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	open, _ := b.conversation()
	b.send(open, request, "waiting")
	farEnded, target := b.conversation()
	b.end(target)
	ended, _ := b.conversation()
	b.end(ended)
	started := b.dialog()

	b.exec("select parley.drop_service('//test/Answerer')")
	b.requireState(open, "ER")
	b.requireState(farEnded, "ER")
	b.requireState(ended, "")
	b.requireState(started, "SO")
	got := b.messages("select * from parley.receive('Asking', conversation_handle => $1)", open)
	if len(got) != 1 {
		t.Fatalf("received %v", got)
	}
	b.requireCode(got[0], -8470)
	equal(b.session, 0, "select count(*) from parley.queue_contents('Answering')")
	equal(b.session, 0, "select count(*) from parley.conversation_endpoints where service_name = '//test/Answerer'")
	b.exec("select parley.drop_queue('Answering')")

	// What was begun before finds a service of that name when there is one again.
	b.send(started, request, "late")
	b.exec("select parley.create_queue('Answering')")
	b.exec("select parley.create_service('//test/Answerer', 'Answering', array['//test/Work'])")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"late"}) {
		t.Errorf("received %q", got)
	}
}

func TestDroppedServiceLosesItsGrants(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//s', 'Asking')")
	b.exec("select parley.grant('SEND', 'service', '//s', 'PUBLIC')")
	b.exec("select parley.drop_service('//s')")
	equal(b.session, 0, "select count(*) from parley.permissions")
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
			b := newWorld(t)
			tx := b.begin()
			handle := tx.dialog()
			tx.send(handle, request, "under way")
			together := value[string](tx, beginAndSend)
			changing := b.blocked(change.statement)
			tx.commit()
			changing.requireSuccess()
			b.requireState(handle, change.state)
			b.requireState(together, change.state)
			equal(b.session, 0, sidesOfNoService)
		})
	}
}

func TestFirstSendWaitsForWhoDropsItsTarget(t *testing.T) {
	t.Parallel()
	for name, isUndone := range map[string]bool{"committed": false, "rolled back": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			handle := b.dialog()
			tx := b.begin()
			tx.exec("select parley.drop_service('//test/Answerer')")
			sender := b.blocked("select parley.send($1::uuid, $2, 'late')", handle, request)
			if isUndone {
				tx.rollback()
			} else {
				tx.commit()
			}
			sender.requireSuccess()
			equal(b.session, !isUndone, "select parley.get_transmission_status($1::uuid) like '%Answerer%'", handle)
			equal(b.session, 0, sidesOfNoService)
		})
	}
}

func TestFirstSendOfAnOldSnapshotDoesNotReachADroppedService(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	handle := old.dialog()
	b.exec("select parley.drop_service('//test/Answerer')")
	sender := b.startIn(old, "select parley.send($1::uuid, $2, 'late')", handle, request)
	sender.requireCode("40001")
	equal(b.session, 0, sidesOfNoService)
}

func TestServiceThatWasDroppedMeanwhileIsNotFound(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	tx.exec("select parley.drop_service('//test/Answerer')")
	second := b.blocked("select parley.drop_service('//test/Answerer')")
	contracts := b.blocked("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	tx.commit()
	second.requireRefusal(15151)
	contracts.requireRefusal(15151)
}
