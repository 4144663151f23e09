package sql_test

import (
	"slices"
	"testing"
)

func TestQueueThatIsOffFailsItsReadersAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.send(b.dialog(), request, "x")
	b.exec("select parley.alter_queue('Answering', status => false)")
	b.refuses(9617, "select parley.receive('Answering')")
	b.refuses(9617, "select parley.receive('Answering', timeout => -1)")
	b.refuses(9617, "select parley.get_conversation_group('Answering')")
	// Reading the view is no receiving.
	equal(b.session, 1, "select count(*) from parley.queue_contents('Answering')")
	b.exec("select parley.alter_queue('Answering', status => true)")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueThatGoesOffFailsWaitingReaders(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.conversation()
	for _, w := range []*waiter{
		b.waiting("select parley.receive('Answering', timeout => -1)"),
		b.waiting("select parley.receive('Answering', timeout => -1, conversation_handle => $1::uuid)", target),
		b.waiting("select parley.get_conversation_group('Answering', timeout => -1)"),
	} {
		defer w.requireRefusal(9617)
	}
	b.exec("select parley.alter_queue('Answering', status => false)")
}

// Messages for a queue that is off are their sender's until it is on again (spec 5.1).
func TestMessagesForAQueueThatIsOffWaitWithTheirSender(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.send(initiator, request, "before")
	b.exec("select parley.alter_queue('Answering', status => false)")
	b.send(initiator, request, "1")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['2', '3'])", initiator)
	fresh := b.dialog()
	b.send(fresh, note, "4")

	got := values[string](b.session, `
		select format('%s %s %s', message_sequence_number, message_type_name, convert_from(message_body, 'UTF8'))
		from parley.transmission_queue
		where conversation_handle = $1 and transmission_status like '%queue "Answering"%disabled%'
		order by message_sequence_number`, initiator)
	if len(got) != 3 || got[0][1:] != " //test/Request 1" || got[2][1:] != " //test/Request 3" {
		t.Errorf("the transmission queue holds %q", got)
	}
	for _, handle := range []string{initiator, fresh} {
		equal(b.session, true, "select parley.get_transmission_status($1) like '%disabled%'", handle)
	}
	equal(b.session, "before", "select string_agg(convert_from(message_body, 'UTF8'), ' ') from parley.queue_contents('Answering')")

	b.exec("select parley.alter_queue('Answering', status => true)")
	equal(b.session, 0, "select count(*) from parley.transmission_queue")
	equal(b.session, "", "select parley.get_transmission_status($1)", initiator)
	if got := bodiesOf(b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)); !slices.Equal(got, []string{"before", "1", "2", "3"}) {
		t.Errorf("received %q", got)
	}
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"4"}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueMayGoOffAgainAndAgain(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	for _, status := range []bool{false, false, true, false, true, true, false} {
		b.exec("select parley.alter_queue('Answering', status => $1)", status)
		b.send(initiator, request, "x")
	}
	// Off since the last: only what came then is still the sender's.
	equal(b.session, 1, "select count(*) from parley.transmission_queue")
	equal(b.session, 6, "select count(*) from parley.queue_contents('Answering')")
	b.exec("select parley.alter_queue('Answering', status => true)")
	if got := b.bodies("Answering"); len(got) != 7 {
		t.Errorf("received %q", got)
	}
}

func TestServiceOnAQueueThatIsOffMaySend(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Asking', status => false)")
	initiator := b.dialog()
	b.send(initiator, request, "x")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

// END works while the queue is off; timer messages wait (spec 5.1).
func TestEndAndTimersWhileTheQueueIsOff(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	waiting, waitingTarget := b.conversation()
	b.exec("select parley.alter_queue('Answering', status => false)")
	b.end(initiator)
	b.end(target)
	b.requireState(initiator, "")
	b.requireState(target, "CD")
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", waitingTarget)
	b.exec("select parley.fire_timers()")
	b.end(waiting)
	b.exec("select parley.alter_queue('Answering', status => true)")
	if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{dialogTimer, endDialog}) {
		t.Errorf("received %q", got)
	}
}

func TestQueueCreatedOff(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('Off', status => false)")
	b.exec("select parley.create_service('//off', 'Off', array['DEFAULT'])")
	b.exec("select parley.send(parley.begin_dialog('//test/Asker', '//off'), 'DEFAULT', 'x')")
	equal(b.session, 1, "select count(*) from parley.transmission_queue")
	b.exec("select parley.alter_queue('Off', status => true)")
	if got := b.bodies("Off"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}

func TestRolledBackStatusChangesNothing(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	tx.exec("select parley.alter_queue('Answering', status => false)")
	tx.rollback()
	b.send(b.dialog(), request, "x")
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
		t.Errorf("received %q", got)
	}
}
