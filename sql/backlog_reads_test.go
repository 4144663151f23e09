package sql_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// blocksRead runs a statement and returns how many blocks it, and what it calls, read.
func (s session) blocksRead(statement string, arguments ...any) int {
	s.Helper()
	var plans []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	text := value[string](s, "explain (analyze, buffers, format json) "+statement, arguments...)
	if err := json.Unmarshal([]byte(text), &plans); err != nil || len(plans) != 1 {
		s.Fatalf("the plan cannot be read: %v\n%s", err, text)
	}
	return plans[0].Plan.Hit + plans[0].Plan.Read
}

// requireFewReads runs a statement some times and requires that one of them reads few blocks. The first one also plans, and any may have
// to read the catalog again: other databases of the server fill the queue of invalidations that all sessions share, and overflow it.
func (s session) requireFewReads(most int, statement string, arguments ...any) {
	s.Helper()
	reads := make([]int, 4)
	for n := range reads {
		reads[n] = s.blocksRead(statement, arguments...)
	}
	if slices.Min(reads) > most {
		s.Errorf("%s reads %d blocks, at most %d are needed", clip(statement), reads, most)
	}
}

// sendMany sends wide messages, few of which fit on a page, numbered from 1.
func (s session) sendMany(handle string, count int) {
	s.Helper()
	s.exec("select parley.send($1::uuid, $2, lpad(n::text, 1000)) from generate_series(1, $3::int) as g (n)", handle, request, count)
}

const receiveOne = "select * from parley.receive('Answering', 1)"

// What a call costs must not grow with what waits behind its message: a reader that fell behind would never catch up.
func TestReceiveOfOneMessageReadsLittleOfALongConversation(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *broker) (initiator string){
		"plain": func(b *broker) string {
			initiator, _ := b.conversation()
			return initiator
		},
		"with a timer": func(b *broker) string {
			initiator, target := b.conversation()
			b.exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
			return initiator
		},
		"with a timer that has fired": func(b *broker) string {
			initiator, target := b.conversation()
			b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
			b.fire("timer")
			if got := typesOf(b.receive("Answering")); !slices.Equal(got, []string{dialogTimer}) {
				b.Fatalf("received %q", got)
			}
			return initiator
		},
		"of another priority": func(b *broker) string {
			b.exec("select parley.create_broker_priority('answerer', local_service_name => '//test/Answerer', priority_level => 2)")
			initiator, _ := b.conversation()
			return initiator
		},
		"in a group of two": func(b *broker) string {
			initiator, target := b.conversation()
			_, other := b.conversation()
			b.exec("select parley.move_conversation($1::uuid, $2::uuid)", other, b.groupOf(target))
			return initiator
		},
		"in a queue with retention": func(b *broker) string {
			b.exec("select parley.alter_queue('Answering', retention => true)")
			initiator, _ := b.conversation()
			return initiator
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.sendMany(prepare(b), 3000)
			b.requireFewReads(200, receiveOne)
		})
	}
}

// A row may be a frame of many messages.
func TestReceiveOfSomeMessagesReadsLittleOfManyBatches(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
	for range 20 {
		b.exec("select parley.send_batch($1::uuid, $2, array(select lpad(n::text, 100) from generate_series(1, 2000) as g (n)))", initiator, request)
	}
	b.requireFewReads(300, "select * from parley.receive('Answering', 500)")
}

// The same for a conversation whose messages a webhook is given.
func TestNextDeliveryReadsLittleOfALongConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
	b.sendMany(initiator, 3000)
	b.requireFewReads(200, "select * from parley.next_delivery('Answering', 1)")
}

// What a program asks now and then must not cost more the longer the backlog is that it asks for.
func TestTransmissionStatusReadsLittleOfALongConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.sendMany(initiator, 3000)
	b.requireFewReads(200, "select parley.get_transmission_status($1::uuid)", initiator)
}

// A transaction that holds a group keeps what others receive meanwhile dead, and not gone; they must not walk through it again and again
// (keeps the order too: what the holder lets go of is the oldest).
func TestReceiveBesideALockedGroupDoesNotReadWhatWasReceived(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	held, heldTarget := b.conversation()
	other, _ := b.conversation()
	b.sendMany(held, 400)
	holder := b.begin()
	holder.exec("select parley.begin_conversation_timer($1::uuid, 3600)", heldTarget)
	b.sendMany(other, 3000)
	b.findUntilHinted()
	reader := b.connection()
	for n := range 2000 {
		got := reader.messages(receiveOne)
		if len(got) != 1 || strings.TrimSpace(string(got[0].MessageBody)) != strconv.Itoa(n+1) {
			t.Fatalf("received %v, want number %d", bodiesOf(got), n+1)
		}
	}
	reader.requireFewReads(250, receiveOne)
	b.sendMany(held, 2)
	holder.rollback()
	got := reader.messages("select * from parley.receive('Answering')")
	if len(got) != 402 || strings.TrimSpace(string(got[0].MessageBody)) != "1" || strings.TrimSpace(string(got[401].MessageBody)) != "2" {
		t.Errorf("received %d of the group that was locked: %s", len(got), clip(strings.Join(bodiesOf(got), " ")))
	}
	if got := reader.messages(receiveOne); len(got) != 1 || strings.TrimSpace(string(got[0].MessageBody)) != "2005" {
		t.Errorf("received %q after the group that was locked", bodiesOf(got))
	}
}

// Where the statistics show that nearly all is of one conversation the planner expects nothing of others, and would rather sort than scan.
func TestHintIsRenewedWithoutReadingAllThatWaits(t *testing.T) {
	t.Parallel()
	b, _, other, _ := besideALockedGroup(t, 6000)
	b.exec("analyze parley._p_message")
	b.exec("select parley.send($1::uuid, $2, n::text) from generate_series(1, 20000) as g (n)", other, request)
	b.find(1)
	b.exec("set plan_cache_mode = force_generic_plan") // as RECEIVE has it
	b.requireFewReads(100, `
		select parley._p_renew_hint(h.lane / 16, h.lane, h.resume_position, h)
		from parley._p_scan_hint as h
		where cardinality(h.blocked_endpoints) > 0`)
}

// Keeps S4: a timer that fires behind a long backlog goes before it, more than once, and leaves nothing behind.
func TestTimersGoBeforeALongBacklog(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, target := b.conversation()
	b.sendMany(initiator, 100)
	for range 3 {
		b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
		b.fire("timer")
		got := b.messages("select * from parley.receive('Answering', 2)")
		if types := typesOf(got); !slices.Equal(types, []string{dialogTimer, request}) {
			t.Errorf("received %q", types)
		}
	}
	equal(b.session, 0, "select count(*) from parley._p_expedited")
	b.endWithError(initiator, 1, "given up")
	if types := typesOf(b.messages("select * from parley.receive('Answering', 2)")); !slices.Equal(types, []string{errorMessage, request}) {
		t.Errorf("received %q", types)
	}
	b.end(target)
	equal(b.session, 0, "select count(*) from parley._p_expedited")
}

// A conversation may be nothing but a clock.
func TestTimersAloneLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	_, target := b.conversation()
	for range 10 {
		b.exec("select parley.begin_conversation_timer($1::uuid, 0)", target)
		b.fire("timer")
		if types := typesOf(b.messages(receiveOne)); !slices.Equal(types, []string{dialogTimer}) {
			t.Fatalf("received %q", types)
		}
	}
	equal(b.session, 0, "select count(*) from parley._p_expedited")
	equal(b.session, 1, "select count(*) from parley._p_receive_progress")
}

// Each RECEIVE records how far it came; what is older goes, also where RECEIVE goes the long way.
func TestProgressOfALongConversationTakesLittleRoom(t *testing.T) {
	t.Parallel()
	for name, timer := range map[string]bool{"plain": false, "with a timer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			initiator, target := b.conversation()
			if timer {
				b.exec("select parley.begin_conversation_timer($1::uuid, 3600)", target)
			}
			b.sendMany(initiator, 200)
			for range 150 {
				b.messages(receiveOne)
			}
			if rows := value[int](b.session, "select count(*) from parley._p_receive_progress"); rows > 40 {
				t.Errorf("there are %d rows", rows)
			}
		})
	}
}

// What calls of other sizes left far behind goes when the count passes a multiple of 32,768 calls.
func TestProgressLeftFarBehindGoesInTheEnd(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator, _ := b.conversation()
	b.exec("insert into parley._p_receive_progress (endpoint_id, sequence) select p.endpoint_id, n from parley._p_receive_progress as p, unnest('{5, 32767}'::bigint[]) as n")
	b.send(initiator, request, "x")
	b.messages(receiveOne)
	equal(b.session, "32768", "select string_agg(sequence::text, ' ' order by sequence) from parley._p_receive_progress")
}
