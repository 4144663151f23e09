package sql_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/parleytest"
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
	b.exec("select parley.send_to_all(array[$1::uuid], '//test/Request', 'list'::text)", initiator)
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

// requireCopiesNumberedAsReceived compares the numbers of what an initiator has sent under retention with those its target receives.
func (b *broker) requireCopiesNumberedAsReceived(copies int) {
	b.Helper()
	kept := values[string](b.session, `
		select format('%s %s', message_sequence_number, convert_from(message_body, 'UTF8'))
		from parley.queue_contents('Asking') where status = 3 order by queuing_order`)
	if len(kept) != copies {
		b.Errorf("the queue keeps %q, want %d copies", kept, copies)
	}
	received := map[string]bool{}
	for _, m := range b.receive("Answering") {
		received[fmt.Sprintf("%d %s", m.MessageSequenceNumber, m.MessageBody)] = true
	}
	for _, one := range kept {
		if !received[one] {
			b.Errorf("the copy %q has not the number of its message; received were %v", one, received)
		}
	}
}

func TestCopiesHaveTheNumbersOfTheirMessages(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "before")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['before 2', 'before 3'])", initiator)
	b.exec("select parley.alter_queue('Asking', retention => true)")
	b.send(initiator, request, "a")
	b.exec("select parley.send_batch($1::uuid, '//test/Request', array['b', 'c'])", initiator)
	b.exec("select parley.send_batch($1::uuid, '//test/Request', '{}'::text[])", initiator)
	b.exec("select parley.alter_queue('Asking', retention => false)")
	b.send(initiator, request, "not kept")
	b.send(initiator, request, "nor this")
	b.exec("select parley.alter_queue('Asking', retention => true)")
	b.send(initiator, request, "d")
	b.exec("select parley.disable_broker()")
	b.send(initiator, request, "e")
	b.exec("select parley.enable_broker()")
	b.exec("select parley.fire_timers()")
	b.exec("select parley.send_to_all(array[$1::uuid], '//test/Request', 'f'::text)", initiator)
	// However many there were, one row has where the numbers stand.
	equal(b.session, 1, "select count(*) from parley._p_copy_progress")
	b.requireCopiesNumberedAsReceived(6)
	b.send(initiator, request, "g")
	b.end(initiator)
	equal(b.session, 0, "select count(*) from parley._p_copy_progress")
}

// Two senders on one conversation: the second waits for the first, and its copy gets the next number.
func TestCopiesOfConcurrentSendersHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.alter_queue('Asking', retention => true)")
	initiator := b.dialog()
	b.send(initiator, request, "0")
	first, second := b.begin(), b.connection()
	first.send(initiator, request, "1")
	done := make(chan error, 1)
	go func() {
		_, err := second.db.Exec(t.Context(), "select parley.send($1::uuid, '//test/Request', '2'::text) /* second sender */", initiator)
		done <- err
	}()
	b.waitUntilWaiting("second sender", done)
	first.commit()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.requireCopiesNumberedAsReceived(3)
}

// waitUntilWaiting waits until the statement with a text in it waits for a lock; should it end instead, the test fails.
func (b *broker) waitUntilWaiting(text string, done <-chan error) {
	b.Helper()
	parleytest.Until(b, text+" waits for a lock", func() bool {
		select {
		case err := <-done:
			b.Fatalf("%s did not wait: %v", text, err)
		default:
		}
		return value[bool](b.session, `
			select exists (
				select from pg_stat_activity
				where datname = current_database() and pid <> pg_backend_pid() and wait_event_type = 'Lock' and query like '%' || $1 || '%'
			)`, text)
	})
}

// A sender that took the short way before retention was on has not committed: its messages come before the first copy.
func TestSwitchingRetentionWaitsForSenders(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.send(initiator, request, "short way")
	sender, switcher := b.begin(), b.connection()
	sender.send(initiator, request, "open")
	done := make(chan error, 1)
	go func() {
		_, err := switcher.db.Exec(t.Context(), "select parley.alter_queue('Asking', retention => true) /* switch */")
		done <- err
	}()
	b.waitUntilWaiting("switch", done)
	sender.commit()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.send(initiator, request, "kept")
	b.requireCopiesNumberedAsReceived(1)
}

// An older snapshot does not see where the numbers stand: it must not guess.
func TestCopiesAtRepeatableReadFailWhenOthersHaveSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		before int
	}{{"the first copy", 0}, {"a later one", 2}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, _ := b.conversation()
			b.exec("select parley.alter_queue('Asking', retention => true)")
			for i := range c.before {
				b.send(initiator, request, fmt.Sprint("before ", i))
			}
			old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			equal(old, c.before, "select count(*) from parley.queue_contents('Asking')")
			b.send(initiator, request, "meanwhile")
			b.send(initiator, request, "and again")
			_, err := old.db.Exec(t.Context(), "select parley.send($1::uuid, '//test/Request', 'old'::text)", initiator)
			if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "40001" {
				t.Errorf("got %v, want a serialization failure", err)
			}
			old.rollback()
			b.requireCopiesNumberedAsReceived(c.before + 2)
		})
	}
}

// What a service has sent and received goes with it to its other queue (spec 2.5, 5.2).
func TestCopiesMoveWithTheirService(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_queue('Elsewhere')")
	b.exec("select parley.alter_queue('Asking', retention => true), parley.alter_queue('Elsewhere', retention => true)")
	// So that positions in the old queue are far beyond those in the new one.
	for range 8 {
		past, _ := b.conversation()
		b.end(past)
	}
	initiator, target := b.conversation()
	b.send(initiator, request, "1")
	b.send(target, reply, "r0")
	b.receive("Asking")
	b.send(target, reply, "r1")
	b.exec("select parley.alter_service('//test/Asker', 'Elsewhere')")
	if got := b.kept("Asking"); len(got) > 0 {
		t.Errorf("the old queue keeps %q", got)
	}
	b.send(initiator, request, "2")
	if got, want := b.kept("Elsewhere"), []string{"3 0 first", "3 1 1", "0 0 r0", "1 1 r1", "3 2 2"}; !slices.Equal(got, want) {
		t.Errorf("the new queue holds %q, want %q", got, want)
	}
	equal(b.session, true, "select count(*) = count(distinct message_id) and count(*) = count(distinct queuing_order) from parley.queue_contents('Elsewhere')")
	b.exec("select parley.drop_queue('Asking')")
	b.end(initiator)
	equal(b.session, 0, "select count(*) from parley._p_retained")
}
