package sql_test

import (
	"slices"
	"testing"
)

// kept gives what a queue keeps, as status and body.
func (s session) kept(queue string) []string {
	s.Helper()
	return values[string](s, `
		select format('%s %s %s', status, message_sequence_number, coalesce(convert_from(message_body, 'UTF8'), '-'))
		from parley.queue_contents($1) order by queuing_order`, queue)
}

func TestRetentionKeepsReceivedAndSentMessages(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', retention => true)")
	initiator := b.dialog()
	b.send(initiator, request, "in 0")
	b.send(initiator, request, "in 1")
	target := b.farHandle(initiator)
	if got := bodiesOf(b.messages("select * from parley.receive('Answering', 1)")); !slices.Equal(got, []string{"in 0"}) {
		t.Fatalf("received %q", got)
	}
	b.send(target, reply, "out 0")
	b.exec("select parley.send_batch($1::uuid, '//test/Reply', array['out 1', null])", target)
	got := b.kept("Answering")
	slices.Sort(got)
	if want := []string{"0 0 in 0", "1 1 in 1", "3 0 out 0", "3 1 out 1", "3 2 -"}; !slices.Equal(got, want) {
		t.Errorf("the queue keeps %q, want %q", got, want)
	}
	// The sender's copies take nothing from the receiver.
	if got := b.bodies("Asking"); !slices.Equal(got, []string{"out 0", "out 1", ""}) {
		t.Errorf("received %q", got)
	}
	equal(b.session, 0, "select count(*) from parley.queue_contents('Asking')")
}

func TestRetainedMessagesCannotBeReceivedAgain(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', retention => true)")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array(select i::text from generate_series(1, 500) as i))", b.dialog())
	total := 0
	for {
		got := b.messages("select * from parley.receive('Answering', 7)")
		if len(got) == 0 {
			break
		}
		for _, m := range got {
			if m.MessageSequenceNumber != int64(total) || m.Status != 0 {
				t.Fatalf("message %d is %+v", total, m)
			}
			total++
		}
	}
	if total != 500 {
		t.Errorf("received %d", total)
	}
	equal(b.session, 500, "select count(*) from parley.queue_contents('Answering') where status = 0")
	equal(b.session, true, "select parley.get_conversation_group('Answering') is null")
}

func TestRetainedMessagesGoWithTheirConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', retention => true)")
	initiator, target := b.conversation()
	_, other := b.conversation()
	b.send(target, reply, "x")
	b.end(target)
	b.requireState(target, "DO")
	if got := b.kept("Answering"); !slices.Equal(got, []string{"0 0 first"}) {
		t.Errorf("the queue keeps %q", got)
	}
	b.end(initiator)
	b.exec("select parley.end_conversation($1::uuid, cleanup => true)", other)
	if got := b.kept("Answering"); len(got) > 0 {
		t.Errorf("the queue keeps %q", got)
	}
}

// A conversation that has sent before takes a short way: it must not pass retention by.
func TestRetentionHoldsFromTheMomentItIsOn(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.send(initiator, request, "off")
	b.exec("select parley.alter_queue('Asking', retention => true)")
	b.send(initiator, request, "on")
	b.exec("select parley.send(array[$1::uuid], '//test/Request', 'list'::text)", initiator)
	b.exec("select parley.alter_queue('Asking', retention => false)")
	b.send(initiator, request, "off again")
	got := b.kept("Asking")
	for i := range got {
		got[i] = got[i][4:]
	}
	if !slices.Equal(got, []string{"on", "list"}) {
		t.Errorf("the queue keeps %q", got)
	}
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"off", "on", "list", "off again"}) {
		t.Errorf("received %q", got)
	}
}

func TestSendOnAQueueThatIsOffAndRetains(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.exec("select parley.alter_queue('Asking', retention => true, status => false)")
	b.refuses(9618, "select parley.send($1::uuid, '//test/Request', 'x')", initiator)
	b.exec("select parley.alter_queue('Asking', status => true)")
	b.send(initiator, request, "x")
	b.end(initiator)
}

func TestRetentionKeepsSystemMessages(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Answering', retention => true)")
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
	b.exec("select parley.fire_timers()")
	b.end(initiator)
	b.receive("Answering")
	got := values[string](b.session, "select message_type_name from parley.queue_contents('Answering') where status = 0 order by queuing_order")
	if !slices.Equal(got, []string{request, dialogTimer, endDialog}) {
		t.Errorf("the queue keeps %q", got)
	}
}
