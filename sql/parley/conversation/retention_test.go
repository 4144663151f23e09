package conversation_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/sqltest"
)

// kept gives the messages that a queue keeps, as status and body.
func kept(s sqltest.Session, queue string) []string {
	s.Helper()
	return sqltest.Values[string](s, `
		select format('%s %s %s', status, message_sequence_number, coalesce(convert_from(message_body, 'UTF8'), '-'))
		from parley.queue_contents($1) order by queuing_order`, queue)
}

func TestRetentionKeepsReceivedAndSentMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', retention => true)")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "in 0")
	b.Send(initiator, sqltest.Request, "in 1")
	target := b.FarHandle(initiator)
	if got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', 1)")); !slices.Equal(got, []string{"in 0"}) {
		t.Fatalf("received %q", got)
	}
	b.Send(target, sqltest.Reply, "out 0")
	b.Exec("select parley.send_batch($1::uuid, '//test/Reply', array['out 1', null])", target)
	got := kept(b.Session, "Answering")
	slices.Sort(got)
	if want := []string{"0 0 in 0", "1 1 in 1", "3 0 out 0", "3 1 out 1", "3 2 -"}; !slices.Equal(got, want) {
		t.Errorf("the queue keeps %q, want %q", got, want)
	}
	// The sender's copies take nothing from the receiver.
	if got := b.Bodies("Asking"); !slices.Equal(got, []string{"out 0", "out 1", ""}) {
		t.Errorf("received %q", got)
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Asking')")
}

func TestRetainedMessagesCannotBeReceivedAgain(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', retention => true)")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array(select i::text from generate_series(1, 500) as i))", b.Dialog())
	total := 0
	for {
		got := b.Messages("select * from parley.receive('Answering', 7)")
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
	sqltest.Equal(b.Session, 500, "select count(*) from parley.queue_contents('Answering') where status = 0")
	sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering') is null")
}

func TestRetainedMessagesGoWithTheirConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', retention => true)")
	initiator, target := b.Conversation()
	_, other := b.Conversation()
	b.Send(target, sqltest.Reply, "x")
	b.End(target)
	b.RequireState(target, "DO")
	if got := kept(b.Session, "Answering"); !slices.Equal(got, []string{"0 0 first"}) {
		t.Errorf("the queue keeps %q", got)
	}
	b.End(initiator)
	b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", other)
	if got := kept(b.Session, "Answering"); len(got) > 0 {
		t.Errorf("the queue keeps %q", got)
	}
}

// A conversation that has sent before takes a short way: it must not pass retention by.
func TestRetentionHoldsFromTheMomentItIsOn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Send(initiator, sqltest.Request, "off")
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	b.Send(initiator, sqltest.Request, "on")
	b.Exec("select parley.send_to_all(array[$1::uuid], '//test/Request', 'list'::text)", initiator)
	b.Exec("select parley.alter_queue('Asking', retention => false)")
	b.Send(initiator, sqltest.Request, "off again")
	got := kept(b.Session, "Asking")
	for i := range got {
		got[i] = got[i][4:]
	}
	if !slices.Equal(got, []string{"on", "list"}) {
		t.Errorf("the queue keeps %q", got)
	}
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"off", "on", "list", "off again"}) {
		t.Errorf("received %q", got)
	}
}

func TestSendOnAQueueThatIsOffAndRetains(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("select parley.alter_queue('Asking', retention => true, status => false)")
	b.Refuses(9618, "select parley.send($1::uuid, '//test/Request', 'x')", initiator)
	b.Exec("select parley.alter_queue('Asking', status => true)")
	b.Send(initiator, sqltest.Request, "x")
	b.End(initiator)
}

func TestRetentionKeepsSystemMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Answering', retention => true)")
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
	b.Exec("select parley.fire_timers()")
	b.End(initiator)
	b.Receive("Answering")
	got := sqltest.Values[string](b.Session, "select message_type_name from parley.queue_contents('Answering') where status = 0 order by queuing_order")
	if !slices.Equal(got, []string{sqltest.Request, sqltest.DialogTimer, sqltest.EndDialog}) {
		t.Errorf("the queue keeps %q", got)
	}
}

// requireCopiesNumberedAsReceived compares the numbers of what an initiator has sent under retention with those its target receives.
func requireCopiesNumberedAsReceived(b *sqltest.Broker, copies int) {
	b.Helper()
	kept := sqltest.Values[string](b.Session, `
		select format('%s %s', message_sequence_number, convert_from(message_body, 'UTF8'))
		from parley.queue_contents('Asking') where status = 3 order by queuing_order`)
	if len(kept) != copies {
		b.Errorf("the queue keeps %q, want %d copies", kept, copies)
	}
	received := map[string]bool{}
	for _, m := range b.Receive("Answering") {
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
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "before")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['before 2', 'before 3'])", initiator)
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	b.Send(initiator, sqltest.Request, "a")
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', array['b', 'c'])", initiator)
	b.Exec("select parley.send_batch($1::uuid, '//test/Request', '{}'::text[])", initiator)
	b.Exec("select parley.alter_queue('Asking', retention => false)")
	b.Send(initiator, sqltest.Request, "not kept")
	b.Send(initiator, sqltest.Request, "nor this")
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	b.Send(initiator, sqltest.Request, "d")
	b.Exec("select parley.disable_broker()")
	b.Send(initiator, sqltest.Request, "e")
	b.Exec("select parley.enable_broker()")
	b.Exec("select parley.fire_timers()")
	b.Exec("select parley.send_to_all(array[$1::uuid], '//test/Request', 'f'::text)", initiator)
	// However many there were, one row has where the numbers stand.
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_copy_progress")
	requireCopiesNumberedAsReceived(b, 6)
	b.Send(initiator, sqltest.Request, "g")
	b.End(initiator)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_copy_progress")
}

// Two senders on one conversation: the second waits for the first, and its copy gets the next number.
func TestCopiesOfConcurrentSendersHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "0")
	first, second := b.Begin(), b.Connection()
	first.Send(initiator, sqltest.Request, "1")
	done := make(chan error, 1)
	go func() {
		_, err := second.DB.Exec(t.Context(), "select parley.send($1::uuid, '//test/Request', '2'::text) /* second sender */", initiator)
		done <- err
	}()
	b.WaitUntilWaiting("second sender", done)
	first.Commit()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	requireCopiesNumberedAsReceived(b, 3)
}

// A sender that took the short way before retention was on has not committed: its messages come before the first copy.
func TestSwitchingRetentionWaitsForSenders(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Send(initiator, sqltest.Request, "short way")
	sender, switcher := b.Begin(), b.Connection()
	sender.Send(initiator, sqltest.Request, "open")
	done := make(chan error, 1)
	go func() {
		_, err := switcher.DB.Exec(t.Context(), "select parley.alter_queue('Asking', retention => true) /* switch */")
		done <- err
	}()
	b.WaitUntilWaiting("switch", done)
	sender.Commit()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.Send(initiator, sqltest.Request, "kept")
	requireCopiesNumberedAsReceived(b, 1)
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
			b := sqltest.NewWorld(t)
			initiator, _ := b.Conversation()
			b.Exec("select parley.alter_queue('Asking', retention => true)")
			for i := range c.before {
				b.Send(initiator, sqltest.Request, fmt.Sprint("before ", i))
			}
			old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			sqltest.Equal(old, c.before, "select count(*) from parley.queue_contents('Asking')")
			b.Send(initiator, sqltest.Request, "meanwhile")
			b.Send(initiator, sqltest.Request, "and again")
			_, err := old.DB.Exec(t.Context(), "select parley.send($1::uuid, '//test/Request', 'old'::text)", initiator)
			if refusal, ok := errors.AsType[*pgconn.PgError](err); !ok || refusal.Code != "40001" {
				t.Errorf("got %v, want a serialization failure", err)
			}
			old.Rollback()
			requireCopiesNumberedAsReceived(b, c.before+2)
		})
	}
}

// Messages that a service has sent and received go with it to its other queue (spec 2.5, 5.2).
func TestCopiesMoveWithTheirService(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_queue('Elsewhere')")
	b.Exec("select parley.alter_queue('Asking', retention => true), parley.alter_queue('Elsewhere', retention => true)")
	// So that positions in the old queue are far beyond those in the new one.
	for range 8 {
		past, _ := b.Conversation()
		b.End(past)
	}
	initiator, target := b.Conversation()
	b.Send(initiator, sqltest.Request, "1")
	b.Send(target, sqltest.Reply, "r0")
	b.Receive("Asking")
	b.Send(target, sqltest.Reply, "r1")
	b.Exec("select parley.alter_service('//test/Asker', 'Elsewhere')")
	if got := kept(b.Session, "Asking"); len(got) > 0 {
		t.Errorf("the old queue keeps %q", got)
	}
	b.Send(initiator, sqltest.Request, "2")
	if got, want := kept(b.Session, "Elsewhere"), []string{"3 0 first", "3 1 1", "0 0 r0", "1 1 r1", "3 2 2"}; !slices.Equal(got, want) {
		t.Errorf("the new queue holds %q, want %q", got, want)
	}
	sqltest.Equal(b.Session, true, "select count(*) = count(distinct message_id) and count(*) = count(distinct queuing_order) from parley.queue_contents('Elsewhere')")
	b.Exec("select parley.drop_queue('Asking')")
	b.End(initiator)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_retained")
}
