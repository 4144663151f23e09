package receive_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// sendMany sends wide messages, few of which fit on a page, numbered from 1.
func sendMany(s sqltest.Session, handle string, count int) {
	s.Helper()
	s.Exec("select parley.send($1::uuid, $2, lpad(n::text, 1000)) from generate_series(1, $3::int) as g (n)", handle, sqltest.Request, count)
}

const receiveOne = "select * from parley.receive('Answering', 1)"

// The cost of a call must not grow with the messages behind its message: a reader that fell behind would never catch up.
func TestReceiveOfOneMessageReadsLittleOfALongConversation(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *sqltest.Broker) (initiator string){
		"plain": func(b *sqltest.Broker) string {
			initiator, _ := b.Conversation()
			return initiator
		},
		"with a timer": func(b *sqltest.Broker) string {
			initiator, target := b.Conversation()
			b.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
			return initiator
		},
		"with a timer that has fired": func(b *sqltest.Broker) string {
			initiator, target := b.Conversation()
			b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			b.Fire("timer")
			if got := sqltest.TypesOf(b.Receive("Answering")); !slices.Equal(got, []string{sqltest.DialogTimer}) {
				b.Fatalf("received %q", got)
			}
			return initiator
		},
		"of another priority": func(b *sqltest.Broker) string {
			b.Exec("select parley.create_broker_priority('answerer', local_service_name => '//test/Answerer', priority_level => 2)")
			initiator, _ := b.Conversation()
			return initiator
		},
		"in a group of two": func(b *sqltest.Broker) string {
			initiator, target := b.Conversation()
			_, other := b.Conversation()
			b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", other, b.GroupOf(target))
			return initiator
		},
		"in a queue with retention": func(b *sqltest.Broker) string {
			b.Exec("select parley.alter_queue('Answering', retention => true)")
			initiator, _ := b.Conversation()
			return initiator
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			sendMany(b.Session, prepare(b), 3000)
			b.RequireFewReads(200, receiveOne)
		})
	}
}

// A row may be a frame of many messages.
func TestReceiveOfSomeMessagesReadsLittleOfManyBatches(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
	for range 20 {
		b.Exec("select parley.send_batch($1::uuid, $2, array(select lpad(n::text, 100) from generate_series(1, 2000) as g (n)))", initiator, sqltest.Request)
	}
	b.RequireFewReads(300, "select * from parley.receive('Answering', 500)")
}

// The same for a conversation whose messages a webhook is given.
func TestNextDeliveryReadsLittleOfALongConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	b.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
	sendMany(b.Session, initiator, 3000)
	b.RequireFewReads(200, "select * from parley.next_delivery('Answering', 1)")
}

// A question that a program asks now and then must not cost more the longer the backlog is that it asks for.
func TestTransmissionStatusReadsLittleOfALongConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	sendMany(b.Session, initiator, 3000)
	b.RequireFewReads(200, "select parley.get_transmission_status($1::uuid)", initiator)
}

// A transaction that holds a group keeps what others receive meanwhile dead, and not gone; they must not walk through it again and again
// (keeps the order too: what the holder lets go of is the oldest).
func TestReceiveBesideALockedGroupDoesNotReadWhatWasReceived(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	held, heldTarget := b.Conversation()
	other, _ := b.Conversation()
	sendMany(b.Session, held, 400)
	holder := b.Begin()
	holder.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", heldTarget)
	sendMany(b.Session, other, 3000)
	b.FindUntilHinted()
	reader := b.Connection()
	for n := range 2000 {
		got := reader.Messages(receiveOne)
		if len(got) != 1 || strings.TrimSpace(string(got[0].MessageBody)) != strconv.Itoa(n+1) {
			t.Fatalf("received %v, want number %d", sqltest.BodiesOf(got), n+1)
		}
	}
	reader.RequireFewReads(250, receiveOne)
	sendMany(b.Session, held, 2)
	holder.Rollback()
	got := reader.Messages("select * from parley.receive('Answering')")
	if len(got) != 402 || strings.TrimSpace(string(got[0].MessageBody)) != "1" || strings.TrimSpace(string(got[401].MessageBody)) != "2" {
		t.Errorf("received %d of the group that was locked: %s", len(got), sqltest.Clip(strings.Join(sqltest.BodiesOf(got), " ")))
	}
	if got := reader.Messages(receiveOne); len(got) != 1 || strings.TrimSpace(string(got[0].MessageBody)) != "2005" {
		t.Errorf("received %q after the group that was locked", sqltest.BodiesOf(got))
	}
}

// Where the statistics show that nearly all is of one conversation the planner expects nothing of others, and would rather sort than scan.
func TestHintIsRenewedWithoutReadingAllThatWaits(t *testing.T) {
	t.Parallel()
	b, _, other, _ := sqltest.BesideALockedGroup(t, 6000)
	b.Exec("analyze parley._p_message")
	b.Exec("select parley.send($1::uuid, $2, n::text) from generate_series(1, 20000) as g (n)", other, sqltest.Request)
	b.Find(1)
	b.Exec("set plan_cache_mode = force_generic_plan") // as RECEIVE has it
	b.RequireFewReads(100, `
		select parley._p_renew_hint(h.lane / 16, h.lane, h.resume_position, h)
		from parley._p_scan_hint as h
		where cardinality(h.blocked_endpoints) > 0`)
}

// Keeps S4: a timer that fires behind a long backlog goes before it, more than once, and leaves nothing behind.
func TestTimersGoBeforeALongBacklog(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, target := b.Conversation()
	sendMany(b.Session, initiator, 100)
	for range 3 {
		b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
		b.Fire("timer")
		got := b.Messages("select * from parley.receive('Answering', 2)")
		if types := sqltest.TypesOf(got); !slices.Equal(types, []string{sqltest.DialogTimer, sqltest.Request}) {
			t.Errorf("received %q", types)
		}
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_expedited")
	b.EndWithError(initiator, 1, "given up")
	if types := sqltest.TypesOf(b.Messages("select * from parley.receive('Answering', 2)")); !slices.Equal(types, []string{sqltest.ErrorMessage, sqltest.Request}) {
		t.Errorf("received %q", types)
	}
	b.End(target)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_expedited")
}

// A conversation may be nothing but a clock.
func TestTimersAloneLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Conversation()
	for range 10 {
		b.Exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
		b.Fire("timer")
		if types := sqltest.TypesOf(b.Messages(receiveOne)); !slices.Equal(types, []string{sqltest.DialogTimer}) {
			t.Fatalf("received %q", types)
		}
	}
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_expedited")
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_receive_progress")
}

// Each RECEIVE records how far it came; what is older goes, also where RECEIVE goes the long way.
func TestProgressOfALongConversationTakesLittleRoom(t *testing.T) {
	t.Parallel()
	for name, timer := range map[string]bool{"plain": false, "with a timer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			initiator, target := b.Conversation()
			if timer {
				b.Exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
			}
			sendMany(b.Session, initiator, 200)
			for range 150 {
				b.Messages(receiveOne)
			}
			if rows := sqltest.Value[int](b.Session, "select count(*) from parley._p_receive_progress"); rows > 40 {
				t.Errorf("there are %d rows", rows)
			}
		})
	}
}

// Rows that calls of other sizes left far behind go when the count passes a multiple of 32,768 calls.
func TestProgressLeftFarBehindGoesInTheEnd(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator, _ := b.Conversation()
	b.Exec("insert into parley._p_receive_progress (endpoint_id, sequence) select p.endpoint_id, n from parley._p_receive_progress as p, unnest('{5, 32767}'::bigint[]) as n")
	b.Send(initiator, sqltest.Request, "x")
	b.Messages(receiveOne)
	sqltest.Equal(b.Session, "32768", "select string_agg(sequence::text, ' ' order by sequence) from parley._p_receive_progress")
}
