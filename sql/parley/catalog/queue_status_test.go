package catalog_test

import (
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestQueueThatIsOffFailsItsReadersAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Send(b.Dialog(), sqltest.Request, "x")
	b.Exec("select parley.alter_queue('Answering', status => false)")
	b.Refuses(9617, "select parley.receive('Answering')")
	b.Refuses(9617, "select parley.receive('Answering', timeout => -1)")
	b.Refuses(9617, "select parley.get_conversation_group('Answering')")
	// Reading the view is no receiving.
	sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Answering')")
	b.Exec("select parley.alter_queue('Answering', status => true)")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueThatGoesOffFailsWaitingReaders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Conversation()
	for _, w := range []*sqltest.Waiter{
		b.Waiting("select parley.receive('Answering', timeout => -1)"),
		b.Waiting("select parley.receive('Answering', timeout => -1, conversation_handle => $1::uuid)", target),
		b.Waiting("select parley.get_conversation_group('Answering', timeout => -1)"),
	} {
		defer w.RequireRefusal(9617)
	}
	b.Exec("select parley.alter_queue('Answering', status => false)")
}

// Messages for a queue that is off are their sender's until it is on again (spec 5.1).
func TestMessagesForAQueueThatIsOffWaitWithTheirSender(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "before")
	b.Exec("select parley.alter_queue('Answering', status => false)")
	b.Send(initiator, sqltest.Request, "1")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)
	fresh := b.Dialog()
	b.Send(fresh, sqltest.Note, "4")

	got := sqltest.Values[string](b.Session, `
		select format('%s %s %s', message_sequence_number, message_type_name, convert_from(message_body, 'UTF8'))
		from parley.transmission_queue
		where conversation_handle = $1 and transmission_status like '%queue "Answering"%disabled%'
		order by message_sequence_number`, initiator)
	if len(got) != 3 || got[0][1:] != " //test/Request 1" || got[2][1:] != " //test/Request 3" {
		t.Errorf("the transmission queue holds %q", got)
	}
	for _, handle := range []string{initiator, fresh} {
		sqltest.Equal(b.Session, true, "select parley.get_transmission_status($1) like '%disabled%'", handle)
	}
	sqltest.Equal(b.Session, "before", "select string_agg(convert_from(message_body, 'UTF8'), ' ') from parley.queue_contents('Answering')")

	b.Exec("select parley.alter_queue('Answering', status => true)")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_queue")
	sqltest.Equal(b.Session, "", "select parley.get_transmission_status($1)", initiator)
	if got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)); !slices.Equal(got, []string{"before", "1", "2", "3"}) {
		t.Errorf("received %q", got)
	}
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"4"}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueMayGoOffAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	for _, status := range []bool{false, false, true, false, true, true, false} {
		b.Exec("select parley.alter_queue('Answering', status => $1)", status)
		b.Send(initiator, sqltest.Request, "x")
	}
	// Off since the last: only what came then is still the sender's.
	sqltest.Equal(b.Session, 1, "select count(*) from parley.transmission_queue")
	sqltest.Equal(b.Session, 6, "select count(*) from parley.queue_contents('Answering')")
	b.Exec("select parley.alter_queue('Answering', status => true)")
	if got := b.Bodies("Answering"); len(got) != 7 {
		t.Errorf("received %q", got)
	}
}

func TestServiceOnAQueueThatIsOffMaySend(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Asking', status => false)")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

// END works while the queue is off; timer messages wait (spec 5.1).
func TestEndAndTimersWhileTheQueueIsOff(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	waiting, waitingTarget := b.Conversation()
	b.Exec("select parley.alter_queue('Answering', status => false)")
	b.End(initiator)
	b.End(target)
	b.RequireState(initiator, "")
	b.RequireState(target, "CD")
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", waitingTarget)
	b.Exec("select parley.fire_timers()")
	b.End(waiting)
	b.Exec("select parley.alter_queue('Answering', status => true)")
	if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.DialogTimer, sqltest.EndDialog}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueCreatedOff(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Off', status => false)")
	b.Exec("select parley.create_service('//off', 'Off', array['DEFAULT'])")
	b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//off'), 'DEFAULT', 'x')")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.transmission_queue")
	b.Exec("select parley.alter_queue('Off', status => true)")
	if got := b.Bodies("Off"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestRolledBackStatusChangesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	tx.Exec("select parley.alter_queue('Answering', status => false)")
	tx.Rollback()
	b.Send(b.Dialog(), sqltest.Request, "x")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}
