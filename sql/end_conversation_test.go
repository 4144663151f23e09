package sql_test

import (
	"slices"
	"strings"
	"testing"
)

func TestEndDialogArrivesBehindWhatWasSentBefore(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(initiator, request, "1")
	b.send(initiator, request, "2")
	b.end(initiator)
	b.requireState(initiator, "DO")
	b.requireState(target, "DI")
	got := b.receive("Answering")
	if want := []string{request, request, endDialog}; !slices.Equal(typesOf(got), want) {
		t.Errorf("received %q, want %q", typesOf(got), want)
	}
}

func TestEndRemovesWhatWaitsHere(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	_, other := b.conversation()
	b.send(target, reply, "unread")
	b.send(other, reply, "other")
	b.end(initiator)
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"other"}) {
		t.Errorf("received %q", got)
	}
	equal(b.session, 0, "select count(*) from parley.queue_contents('Asking')")
}

func TestErrorCarriesCodeAndDescription(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, description := range []string{
		"plain", `<tag> & "quotes" 'more'`, "é € 𝄞", "line\nand\ttab", "100% %s %1$s", `back\slash`, "]]>", strings.Repeat("é", 3000), "",
	} {
		initiator, target := b.conversation()
		b.endWithError(target, 2147483647, description)
		got := b.receive("Asking")
		if len(got) != 1 || got[0].MessageTypeName != errorMessage || got[0].Validation != "X" {
			t.Fatalf("received %v", typesOf(got))
		}
		equal(b.session, true, `
			select (x.code, x.description) = (2147483647, $2)
			from xmltable(xmlnamespaces('http://schemas.microsoft.com/SQL/ServiceBroker/Error' as e), '/e:Error' passing (convert_from($1, 'UTF8')::xml)
				columns code integer path 'e:Code', description text path 'e:Description') as x`, got[0].MessageBody, description)
		b.end(initiator)
	}
}

// XML has no such characters, not even escaped.
func TestControlCharactersInADescriptionAreReplaced(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.conversation()
	b.endWithError(target, 1, "alert \a escape \x1b end")
	m := b.requireError("Asking", 1)
	if !strings.Contains(string(m.MessageBody), "alert ? escape ? end") {
		t.Errorf("the Error message is %q", m.MessageBody)
	}
}

// Messages already delivered into the queue of the other side stay; what is still on its way is dropped.
func TestEndWithErrorOvertakes(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(initiator, request, "delivered")
	b.endWithError(initiator, 5, "stop")
	b.requireState(initiator, "DO")
	b.requireState(target, "ER")
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{errorMessage, request}) {
		t.Errorf("received %q", got)
	}
}

func TestCleanupRemovesOneSideWithoutAMessage(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(target, reply, "unread")
	b.send(initiator, request, "sent")
	b.exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", initiator)
	b.requireState(initiator, "")
	b.requireState(target, "CO")
	equal(b.session, 0, "select count(*) from parley.queue_contents('Asking')")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"sent"}) {
		t.Errorf("received %q", got)
	}
	b.end(target)
	b.requireState(target, "CD")
}

func TestCleanupWorksInEachState(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handles := b.oneOfEachState()
	for state, handle := range handles {
		b.requireState(handle, state)
		b.exec("select parley.end_conversation($1::uuid, cleanup => true)", handle)
		b.requireState(handle, "")
		b.refuses(8426, "select parley.end_conversation($1::uuid)", handle)
	}
}

// What a conversation leaves behind when both sides have ended is kept against repeated messages: not even its owner removes it before its
// time.
func TestCleanupOfATombstoneIsForAdministrators(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	owner := b.role("owner")
	b.exec("select parley.alter_authorization('service', '//test/Answerer', $1)", owner)
	initiator, target := b.conversation()
	b.end(initiator)
	b.end(target)
	for _, role := range []string{owner, b.role("outsider")} {
		b.as(role).refuses(28006, "select parley.end_conversation($1::uuid, cleanup => true)", target)
	}
	b.requireState(target, "CD")
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
	b.requireState(target, "")
}

func TestCleanupFalseIsThePlainForm(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.end_conversation($1::uuid, cleanup => false)", initiator)
	b.requireState(initiator, "DO")
	b.requireState(target, "DI")
}

func TestCleanupDropsWhatWaitsInTheTransmissionQueue(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.send(handle, request, "x")
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", handle)
	equal(b.session, 0, "select count(*) from parley.transmission_queue")
}

func TestEndLocksTheGroup(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	related := value[string](b.session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", initiator)
	b.send(related, request, "x")
	b.send(b.farHandle(related), reply, "y")
	tx := b.begin()
	tx.end(initiator)
	if got := b.receive("Asking"); len(got) > 0 {
		t.Errorf("received %v from a locked group", got)
	}
	tx.commit()
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("received %q", got)
	}
	b.end(target)
}

// A message whose SEND committed is never swallowed by END of the other side without a trace: END waits for the own sender.
func TestEndWaitsForASendUnderWayOnItsSide(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.send(initiator, request, "1")
	tx := b.begin()
	tx.send(initiator, request, "2")
	w := b.blocked("select parley.end_conversation($1::uuid)", initiator)
	tx.commit()
	w.requireSuccess()
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{request, request, endDialog}) {
		t.Errorf("received %q", got)
	}
}

// What came while the queue of the target is off is not sent yet: an Error of the sender drops it, and nothing else (spec 3.2, 4.6).
func TestEndWithErrorDropsWhatWasNotSentYet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, off, on string }{
		{"the target's queue is off", "select parley.alter_queue('Answering', status => false)", "select parley.alter_queue('Answering', status => true)"},
		{"the broker is disabled", "select parley.disable_broker()", "select parley.enable_broker()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.conversation()
			other, _ := b.conversation()
			b.send(initiator, request, "sent")
			b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			b.exec(c.off)
			b.exec("select parley.fire_timers()")
			b.send(initiator, request, "not sent")
			b.exec("select parley.send_batch($1::uuid, '//test/Request', array['nor', 'these'])", initiator)
			b.send(other, request, "of another")
			b.endWithError(initiator, 7, "seven")
			equal(b.session, 0, `
				select count(*) from parley.transmission_queue
				where conversation_handle = $1 and message_type_name = '//test/Request'`, initiator)
			b.exec(c.on)
			b.exec("select parley.fire_timers()")
			got := typesOf(b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target))
			if want := []string{dialogTimer, errorMessage, request}; !slices.Equal(got, want) {
				t.Errorf("received %q, want %q", got, want)
			}
			b.requireState(target, "ER")
			if got := b.bodies("Answering"); !slices.Equal(got, []string{"of another"}) {
				t.Errorf("of the other conversation came %q", got)
			}
		})
	}
}

// A sender of the other side that has not committed appends to a side that is removed: its message goes with it, and hinders nobody.
func TestSideThatIsRemovedBesideAnOpenSenderLeavesNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement string }{
		{"by cleanup", "select parley.end_conversation($1::uuid, cleanup => true)"},
		{"with its service", "select parley.drop_service('//test/Answerer') where $1::uuid is not null"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.conversation()
			b.send(initiator, request, "so that the short way is taken")
			sender := b.begin()
			sender.send(initiator, request, "in flight")
			b.exec(c.statement, target)
			sender.commit()
			b.exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'abandoned'")
			b.exec("select parley.fire_timers()")
			equal(b.session, 0, "select count(*) from parley._p_message where message_type_id >= 65536")
			equal(b.session, 0, "select count(*) from parley.conversation_endpoints where conversation_handle = $1 and state <> 'CD'", target)
			equal(b.session, 0, "select count(*) from parley.check_broker() where level <> 'INFO'")
			b.end(initiator)
			b.exec("select parley.drop_service(s.name) from parley.services as s where s.name like '//test/%'")
			b.exec("select parley.drop_contract('//test/Work')")
			b.exec("select parley.drop_message_type('//test/Request')")
		})
	}
}
