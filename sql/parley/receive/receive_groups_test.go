package receive_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// many receives up to top messages of up to so many groups.
func many(s sqltest.Session, top, groups int) []string {
	s.Helper()
	return sqltest.BodiesOf(s.Messages("select * from parley.receive('Answering', top => $1, groups => $2)", top, groups))
}

func requireMany(s sqltest.Session, top, groups int, want ...string) {
	s.Helper()
	if got := many(s, top, groups); !slices.Equal(got, want) {
		s.Errorf("top %d of %d groups gives %q, want %q", top, groups, got, want)
	}
}

func TestReceiveTakesTheHeadsOfManyGroups(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Fill(5, 3)
	// Five heads are the first five messages of the queue, a sixth is the next.
	requireMany(b.Session, 6, 4, "0/0", "0/1", "1/0", "1/1", "2/0", "3/0")
	requireMany(b.Session, 3, 2, "4/0", "4/1", "2/1")
	requireMany(b.Session, 100, 100, "3/1", "3/2", "0/2", "1/2", "2/2", "4/2")
	requireMany(b.Session, 100, 100)
}

// Of few groups with much as many messages come as are asked for, and all of those groups when there is no limit.
func TestReceiveFromManyGroupsFillsUpFromThoseWithMuch(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := b.Fill(4, 1)
	for n := range 60 {
		b.Send(handles[2], sqltest.Request, fmt.Sprint("2/", n+1))
	}
	got := many(b.Session, 50, 3)
	if len(got) != 50 || slices.ContainsFunc(got, func(body string) bool { return strings.HasPrefix(body, "3") }) {
		t.Errorf("received %d: %q", len(got), got)
	}
	if got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', groups => $1)", 2)); len(got) != 14 {
		t.Errorf("without top received %d: %q", len(got), got)
	}
	requireMany(b.Session, 10, 10)
}

func TestMessagesOfManyGroupsHaveAllTheirColumns(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for range 3 {
		handle := b.Dialog()
		b.Exec("select parley.send($1::uuid, '//test/Request', 'traced'::bytea, trace_context => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')", handle)
		b.Send(handle, sqltest.Note, strings.Repeat("large ", 20000))
		b.Send(handle, sqltest.Request, "")
	}
	seen := b.Messages("select * from parley.queue_contents('Answering') order by conversation_handle, queuing_order")
	tx := b.Begin()
	got := tx.Messages("select * from parley.receive('Answering', 100, groups => 100)")
	slices.SortFunc(got, func(x, y sqltest.Message) int {
		return strings.Compare(x.ConversationHandle, y.ConversationHandle)*1000 + int(x.MessageSequenceNumber-y.MessageSequenceNumber)
	})
	if len(got) != 9 || len(seen) != 9 {
		t.Fatalf("received %d, seen %d", len(got), len(seen))
	}
	for i, m := range got {
		if (m.TraceContext == nil) != (seen[i].TraceContext == nil) || m.TraceContext != nil && *m.TraceContext != *seen[i].TraceContext {
			t.Errorf("received trace context %v, seen %v", m.TraceContext, seen[i].TraceContext)
		}
		m.TraceContext, seen[i].TraceContext = nil, nil
		seen[i].Status, seen[i].MessageID = 0, nil
		if got, want := fmt.Sprintf("%+v", m), fmt.Sprintf("%+v", seen[i]); got != want {
			t.Errorf("received %.300s\nseen %.300s", got, want)
		}
	}
	sqltest.Equal(b.Session, 3, "select count(*) from parley.queue_contents('Answering') where trace_context like '00-0af%'")
	tx.Commit()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.queue_contents('Answering')")
}

// A session that receives from many groups has them all to the end of the transaction, and no more than it has messages of.
func TestReceiveLocksAllOfTheManyGroups(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Fill(6, 2)
	first := b.Begin()
	requireMany(first, 3, 100, "0/0", "1/0", "2/0")
	second := b.Begin()
	requireMany(second, 3, 100, "3/0", "4/0", "5/0")
	requireMany(b.Session, 100, 100)
	sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering') is null")
	second.Commit()
	third := b.Begin()
	requireMany(third, 100, 100, "3/1", "4/1", "5/1")
	first.Rollback()
	third.Commit()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"0/0", "0/1"}) {
		t.Errorf("received %q", got)
	}
}

func TestManyGroupsAreRefusedWithOneNamed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	_, target := b.Conversation()
	for _, named := range []string{"conversation_handle", "conversation_group_id"} {
		refusal := b.Refuses(8402, "select parley.receive('Answering', groups => 2, "+named+" => $1::uuid)", target)
		if !strings.Contains(refusal.Message, "several groups") {
			t.Errorf("with %s: %s", named, refusal.Message)
		}
	}
	for _, groups := range []string{"0", "-1", "10001"} {
		b.Refuses(8402, "select parley.receive('Answering', groups => "+groups+")")
	}
	b.Exec("select parley.receive('Answering', groups => 1, conversation_handle => $1::uuid)", target)
}

func TestManyGroupsComeByPriority(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Fill(2, 2)
	b.Exec("select parley.create_broker_priority('high', 'DEFAULT', 'ANY', 'ANY', 9)")
	for _, body := range []string{"high 1", "high 2"} {
		b.Exec("select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', 'DEFAULT'), body => $1::text)", body)
	}
	tx := b.Begin()
	requireMany(tx, 3, 100, "high 1", "high 2", "0/0")
	// Groups of the first level that another reader has do not hide the other levels.
	requireMany(b.Session, 100, 100, "1/0", "1/1")
	tx.Commit()
	requireMany(b.Session, 100, 100, "0/1")
}

// Retention and groups of several conversations are received as ever: a group at a time.
func TestUnusualGroupsAreReceivedOneAtATime(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handles := b.Fill(3, 1)
	b.Exec(`
		select parley.move_conversation($1::uuid, e.conversation_group_id) from parley.conversation_endpoints as e where e.conversation_handle = $2`,
		b.FarHandle(handles[1]), b.FarHandle(handles[0]))
	b.EndWithError(handles[2], 1, "over")
	requireMany(b.Session, 100, 100, "0/0", "1/0")
	if got := b.Messages("select * from parley.receive('Answering', 100, groups => 100)"); len(got) != 2 || got[0].MessageTypeName != sqltest.ErrorMessage {
		t.Errorf("received %v", got)
	}
	b.Fill(3, 1)
	b.Exec("select parley.alter_queue('Answering', retention => true)")
	requireMany(b.Session, 100, 100, "0/0")
	sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Answering') where status = 0")
}

func TestFramesOfManyGroupsAreReceivedInOrder(t *testing.T) {
	t.Parallel()
	for _, top := range []int{1, 7, 40, 100, 137, 1000} {
		for _, groups := range []int{2, 3, 50} {
			t.Run(fmt.Sprint("top ", top, " groups ", groups), func(t *testing.T) {
				t.Parallel()
				b := sqltest.NewWorld(t)
				const conversations = 6
				sent, handles := make([]int, conversations), map[string]int{}
				for i := range conversations {
					handle := b.Dialog()
					for n := range 12 {
						size := 1 + n*(i+n)%37
						b.Exec(`select parley.send_batch($1::uuid, '//test/Request', array(select n::text from generate_series($2::int, $3::int) as n))`,
							handle, sent[i]+1, sent[i]+size)
						sent[i] += size
					}
					handles[b.FarHandle(handle)] = i
				}
				received := make([]int, conversations)
				for range 5000 {
					got := b.Messages("select * from parley.receive('Answering', $1, groups => $2)", top, groups)
					if len(got) == 0 {
						break
					}
					if len(got) > top {
						t.Fatalf("received %d", len(got))
					}
					for _, m := range got {
						i := handles[m.ConversationHandle]
						if string(m.MessageBody) != fmt.Sprint(received[i]+1) || m.MessageSequenceNumber != int64(received[i]) {
							t.Fatalf("message %d of conversation %d is %q, number %d", received[i], i, m.MessageBody, m.MessageSequenceNumber)
						}
						received[i]++
					}
				}
				if !slices.Equal(received, sent) {
					t.Errorf("received %v of %v", received, sent)
				}
			})
		}
	}
}

// A conversation that moves, or is received from, between the scan and the lock is left to whoever has it now (keeps S3).
func TestManyGroupsAreReadAgainUnderTheirLocks(t *testing.T) {
	t.Parallel()
	// As many messages as groups are read by another statement than more.
	for _, top := range []int{4, 100} {
		t.Run(fmt.Sprint(top), func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handles := b.Fill(4, 1)
			const lock = "-- Twice as much"
			definition := sqltest.Value[string](b.Session, "select pg_get_functiondef('parley._p_receive_groups(parley._p_queue,integer,integer)'::regprocedure)")
			at := strings.Index(definition, lock)
			if at < 0 {
				t.Fatal("the reading is not found in the function: does it read otherwise now?")
			}
			b.Exec(definition[:at] + "perform pg_advisory_xact_lock(231); " + definition[at:])
			group := sqltest.Value[string](b.Session, "select conversation_group_id::text from parley.conversation_endpoints where conversation_handle = $1", b.FarHandle(handles[0]))
			holder := b.Begin()
			holder.Exec("select pg_advisory_xact_lock(231)")
			w := b.Start("select string_agg(parley.body_text(message_body), ' ') from parley.receive('Answering', $1, groups => 100)", top)
			b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'advisory')", w.Backend)
			// The lock was held by a transaction whose snapshot is older than this MOVE of a conversation that it has not locked: by force, as MOVE waits.
			b.Exec("update parley._p_endpoint set group_id = (select group_id from parley._p_conversation_group where conversation_group_id = $1), is_plain = false where conversation_handle in ($2, $3)",
				group, b.FarHandle(handles[0]), b.FarHandle(handles[1]))
			holder.Commit()
			w.RequireSuccess()
			if got := b.Bodies("Answering"); !slices.Equal(got, []string{"0/0", "1/0"}) {
				t.Errorf("left is %q", got)
			}
		})
	}
}
