package conversation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestEndDialogArrivesBehindWhatWasSentBefore(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "1")
	b.Send(initiator, sqltest.Request, "2")
	b.End(initiator)
	b.RequireState(initiator, "DO")
	b.RequireState(target, "DI")
	got := b.Receive("Answering")
	if want := []string{sqltest.Request, sqltest.Request, sqltest.EndDialog}; !slices.Equal(sqltest.TypesOf(got), want) {
		t.Errorf("received %q, want %q", sqltest.TypesOf(got), want)
	}
}

func TestEndRemovesWhatWaitsHere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	_, other := b.Conversation()
	b.Send(target, sqltest.Reply, "unread")
	b.Send(other, sqltest.Reply, "other")
	b.End(initiator)
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"other"}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Asking')")
}

func TestErrorCarriesCodeAndDescription(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, description := range []string{
		"plain", `<tag> & "quotes" 'more'`, "é € 𝄞", "line\nand\ttab", "100% %s %1$s", `back\slash`, "]]>", strings.Repeat("é", 3000), "",
	} {
		initiator, target := b.Conversation()
		b.EndWithError(target, 2147483647, description)
		got := b.Receive("Asking")
		if len(got) != 1 || got[0].MessageTypeName != sqltest.ErrorMessage || got[0].Validation != "X" {
			t.Fatalf("received %v", sqltest.TypesOf(got))
		}
		sqltest.Equal(b.Session, true, `
			select (x.code, x.description) = (2147483647, $2)
			from xmltable(xmlnamespaces('http://schemas.microsoft.com/SQL/ServiceBroker/Error' as e), '/e:Error' passing (convert_from($1, 'UTF8')::xml)
				columns code integer path 'e:Code', description text path 'e:Description') as x`, got[0].MessageBody, description)
		b.End(initiator)
	}
}

// XML has no such characters, not even escaped.
func TestControlCharactersInADescriptionAreReplaced(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Conversation()
	b.EndWithError(target, 1, "alert \a escape \x1b end")
	m := b.RequireError("Asking", 1)
	if !strings.Contains(string(m.MessageBody), "alert ? escape ? end") {
		t.Errorf("the Error message is %q", m.MessageBody)
	}
}

// Messages already delivered into the queue of the other side stay; what is still on its way is dropped.
func TestEndWithErrorOvertakes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "delivered")
	b.EndWithError(initiator, 5, "stop")
	b.RequireState(initiator, "DO")
	b.RequireState(target, "ER")
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.ErrorMessage, sqltest.Request}) {
		t.Errorf("received %q", got)
	}
}

func TestCleanupRemovesOneSideWithoutAMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(target, sqltest.Reply, "unread")
	b.Send(initiator, sqltest.Request, "sent")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 1000)", initiator)
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", initiator)
	b.RequireState(initiator, "")
	b.RequireState(target, "CO")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Asking')")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"sent"}) {
		t.Errorf("received %q", got)
	}
	b.End(target)
	b.RequireState(target, "CD")
}

func TestCleanupWorksInEachState(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := oneOfEachState(b.Session)
	for state, handle := range handles {
		b.RequireState(handle, state)
		b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", handle)
		b.RequireState(handle, "")
		b.Refuses(8426, "select parley.end_conversation($1::uuid)", handle)
	}
}

// The rows that a conversation leaves behind when both sides have ended are kept against repeated messages: not even its owner removes them
// before their time.
func TestCleanupOfATombstoneIsForAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	owner := b.Role("owner")
	b.Exec("select parley.alter_authorization('service', '//test/Answerer', $1)", owner)
	initiator, target := b.Conversation()
	b.End(initiator)
	b.End(target)
	for _, role := range []string{owner, b.Role("outsider")} {
		b.As(role).Refuses(28006, "select parley.end_conversation($1::uuid, cleanup => true)", target)
	}
	b.RequireState(target, "CD")
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
	b.RequireState(target, "")
}

func TestCleanupFalseIsThePlainForm(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.end_conversation($1::uuid, cleanup => false)", initiator)
	b.RequireState(initiator, "DO")
	b.RequireState(target, "DI")
}

func TestCleanupDropsWhatWaitsInTheTransmissionQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Late', '//test/Work', allow_unknown_target => true)")
	b.Send(handle, sqltest.Request, "x")
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", handle)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_queue")
}

func TestEndLocksTheGroup(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	related := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', related_conversation => $1)", initiator)
	b.Send(related, sqltest.Request, "x")
	b.Send(b.FarHandle(related), sqltest.Reply, "y")
	tx := b.Begin()
	tx.End(initiator)
	if got := b.Receive("Asking"); len(got) > 0 {
		t.Errorf("received %v from a locked group", got)
	}
	tx.Commit()
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"y"}) {
		t.Errorf("received %q", got)
	}
	b.End(target)
}

// A message whose SEND committed is never swallowed by END of the other side without a trace: END waits for the own sender.
func TestEndWaitsForASendUnderWayOnItsSide(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Send(initiator, sqltest.Request, "1")
	tx := b.Begin()
	tx.Send(initiator, sqltest.Request, "2")
	w := b.Blocked("select parley.end_conversation($1::uuid)", initiator)
	tx.Commit()
	w.RequireSuccess()
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.Request, sqltest.Request, sqltest.EndDialog}) {
		t.Errorf("received %q", got)
	}
}

// A message that came while the queue of the target is off is not sent yet: an Error of the sender drops it, and nothing else (spec 3.2,
// 4.6).
func TestEndWithErrorDropsWhatWasNotSentYet(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, off, on string }{
		{"the target's queue is off", "select parley.alter_queue('Answering', status => false)", "select parley.alter_queue('Answering', status => true)"},
		{"the broker is disabled", "select parley.disable_broker()", "select parley.enable_broker()"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			other, _ := b.Conversation()
			b.Send(initiator, sqltest.Request, "sent")
			b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			b.Exec(c.off)
			b.Exec("select parley.fire_timers()")
			b.Send(initiator, sqltest.Request, "not sent")
			b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['nor', 'these'])", initiator)
			b.Send(other, sqltest.Request, "of another")
			b.EndWithError(initiator, 7, "seven")
			sqltest.Equal(b.Session, 0, `
				select count(*) from parley.transmission_queue
				where conversation_handle = $1 and message_type_name = '//test/Request'`, initiator)
			b.Exec(c.on)
			b.Exec("select parley.fire_timers()")
			got := sqltest.TypesOf(b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target))
			if want := []string{sqltest.DialogTimer, sqltest.ErrorMessage, sqltest.Request}; !slices.Equal(got, want) {
				t.Errorf("received %q, want %q", got, want)
			}
			b.RequireState(target, "ER")
			if got := b.Bodies("Answering"); !slices.Equal(got, []string{"of another"}) {
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
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			b.Send(initiator, sqltest.Request, "so that the short way is taken")
			sender := b.Begin()
			sender.Send(initiator, sqltest.Request, "in flight")
			b.Exec(c.statement, target)
			sender.Commit()
			b.Exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'abandoned'")
			b.Exec("select parley.fire_timers()")
			sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message where message_type_id >= 65536")
			sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where conversation_handle = $1 and state <> 'CD'", target)
			sqltest.Equal(b.Session, 0, "select count(*) from parley.check_broker() where level <> 'INFO'")
			b.End(initiator)
			b.Exec("select parley.drop_service(s.name) from parley.services as s where s.name like '//test/%'")
			b.Exec("select parley.drop_contract('//test/Work')")
			b.Exec("select parley.drop_message_type('//test/Request')")
		})
	}
}
