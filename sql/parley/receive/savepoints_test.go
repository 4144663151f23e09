package receive_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// takenAndBack is a transaction that has received the first message of a queue in a savepoint, and gone back.
func takenAndBack(b *sqltest.Broker, want string) sqltest.Session {
	b.Helper()
	tx := b.Begin()
	tx.Exec("savepoint a")
	if got := sqltest.BodiesOf(tx.Messages("select * from parley.receive('Answering', top => 1)")); !slices.Equal(got, []string{want}) {
		b.Fatalf("received %q, want %q", got, want)
	}
	tx.Exec("rollback to a")
	return tx
}

// A message of a kept conversation that its reader has not received leads others to the group: they take nothing of it, also where the
// group has several conversations.
func TestRollbackToASavepointKeepsAGroupOfSeveral(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	kept, other := b.Dialog(), b.Dialog()
	for _, handle := range []string{kept, other} {
		b.Send(handle, sqltest.Request, "before")
		b.Receive("Answering")
	}
	b.Exec("select parley.move_conversation($1, $2)", b.FarHandle(other), b.GroupOf(b.FarHandle(kept)))
	b.Send(kept, sqltest.Request, "poison")
	b.Send(kept, sqltest.Request, "behind it")
	tx := takenAndBack(b, "poison")
	for _, top := range []int{1, 2, 100} {
		if got := sqltest.BodiesOf(b.Messages("select * from parley.receive('Answering', top => $1)", top)); len(got) != 0 {
			t.Errorf("another reader received %q", got)
		}
	}
	// Others are free all the while.
	b.Send(b.Dialog(), sqltest.Request, "free")
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"free"}) {
		t.Errorf("another reader received %q", got)
	}
	if got := sqltest.BodiesOf(tx.Messages("select * from parley.receive('Answering')")); !slices.Equal(got, []string{"poison", "behind it"}) {
		t.Errorf("the reader received %q", got)
	}
	tx.Commit()
}

// Of a group of several conversations the first message is kept, and another of a lower priority leads readers to the group. They take a
// group that is free.
func TestReceivePassesByAGroupWhoseFirstMessageIsKept(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_broker_priority('urgent', '//test/Work', 'ANY', 'ANY', 8)")
	kept := b.Dialog()
	b.Send(kept, sqltest.Request, "poison")
	b.Exec("select parley.drop_broker_priority('urgent')")
	low, free := b.Dialog(), b.Dialog()
	b.Send(low, sqltest.Request, "low")
	b.Send(free, sqltest.Request, "free")
	b.Exec("select parley.move_conversation($1, $2)", b.FarHandle(low), b.GroupOf(b.FarHandle(kept)))
	tx := takenAndBack(b, "poison")
	other := b.Begin()
	sqltest.Equal(other, b.GroupOf(b.FarHandle(free)), "select parley.get_conversation_group('Answering')::text")
	other.Rollback()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"free"}) {
		t.Errorf("another reader received %q", got)
	}
	if got := b.Bodies("Answering"); len(got) != 0 {
		t.Errorf("another reader received %q", got)
	}
	if got := tx.Bodies("Answering"); !slices.Equal(got, []string{"poison", "low"}) {
		t.Errorf("the reader received %q", got)
	}
	tx.Commit()
}

// The pattern of the paper: save, receive, fail, go back, and end the conversation with an error. No other session may come between (spec
// 5.6).
func TestRollbackToASavepointKeepsTheGroup(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"Plain":      "select 1",
		"Retention":  "select parley.alter_queue('Answering', retention => true)",
		"Priorities": "select parley.create_broker_priority('low', '//test/Work', 'ANY', 'ANY', 3)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec(prepare)
			initiator := b.Dialog()
			b.Send(initiator, sqltest.Request, "poison")
			b.Send(initiator, sqltest.Request, "behind it")
			target := b.FarHandle(initiator)
			tx := takenAndBack(b, "poison")
			for _, statement := range []string{
				"select * from parley.receive('Answering')",
				"select * from parley.receive('Answering', top => 1, timeout => 20)",
				"select * from parley.receive('Answering', timeout => 20, conversation_handle => '" + target + "')",
			} {
				if got := b.Messages(statement); len(got) != 0 {
					t.Errorf("another reader received %q by %s", sqltest.BodiesOf(got), statement)
				}
			}
			sqltest.Equal(b.Session, true, "select parley.get_conversation_group('Answering') is null")
			// The reader itself takes the message again, as often as it likes.
			tx.Exec("savepoint b")
			if got := sqltest.BodiesOf(tx.Messages("select * from parley.receive('Answering', top => 1)")); !slices.Equal(got, []string{"poison"}) {
				t.Errorf("the second time received %q", got)
			}
			tx.Exec("rollback to b")
			if got := b.Bodies("Answering"); len(got) != 0 {
				t.Errorf("another reader received %q", got)
			}
			// Others go on.
			b.Send(b.Dialog(), sqltest.Request, "good")
			other := b.Begin()
			if got := other.Bodies("Answering"); !slices.Equal(got, []string{"good"}) {
				t.Errorf("of another conversation received %q", got)
			}
			// A reader that has passed by a conversation with more messages than were received may have locked it to the end of its transaction.
			other.Commit()
			tx.EndWithError(target, 1, "poison")
			tx.Commit()
			b.RequireState(target, "DO")
			if got := b.Bodies("Answering"); len(got) != 0 {
				t.Errorf("after the end received %q", got)
			}
		})
	}
}

func TestGroupKeptAfterASavepointIsFreeWithTheTransaction(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle := b.Dialog()
			b.Send(handle, sqltest.Request, "x")
			tx := takenAndBack(b, "x")
			// A reader that names it waits for its lock, with a time-out or without.
			patient := b.Waiting("select parley.receive('Answering', conversation_handle => $1::uuid)", b.FarHandle(handle))
			waiting := b.Waiting("select parley.receive('Answering', timeout => -1)")
			tx.Exec(end)
			patient.RequireSuccess()
			b.Send(b.Dialog(), sqltest.Request, "y")
			waiting.RequireSuccess()
		})
	}
}

// Thirty-two sequences serve all readers. A reader that marks the same one does not free what another one keeps, and keeps nothing of it.
func TestReadersOfTheSameSequenceKeepTheirOwnGroups(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first := b.Dialog()
	b.Send(first, sqltest.Request, "1")
	keeper := takenAndBack(b, "1")
	const mark = "select setval(format('parley._p_savepoint_%s', n)::regclass, coalesce(pg_sequence_last_value(format('parley._p_savepoint_%s', n)::regclass), 0) + (32::bigint << 31)) from generate_series(0, 31) as s (n)"
	later := b.Begin()
	later.Exec("select pg_current_xact_id()")
	later.Exec(mark)
	if got := b.Bodies("Answering"); len(got) != 0 {
		t.Errorf("while two have marked the sequence another reader received %q", got)
	}
	if got := sqltest.BodiesOf(later.Messages("select * from parley.receive('Answering')")); len(got) != 0 {
		t.Errorf("the reader that marked the sequence later received %q", got)
	}
	keeper.Exec("savepoint again")
	if got := sqltest.BodiesOf(keeper.Messages("select * from parley.receive('Answering')")); !slices.Equal(got, []string{"1"}) {
		t.Errorf("the reader whose mark was written over received %q", got)
	}
	keeper.Exec("rollback to savepoint again")
	keeper.Commit()
	if got := b.Bodies("Answering"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("received %q, kept by nobody any more", got)
	}
}

// The sequences are those of all queues, so a reader of another queue may write over each mark. Messages of a queue from which it has not
// received wait for it nowhere: what comes back there is free at once.
func TestAReaderOfAnotherQueueKeepsNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	thief := b.Begin()
	thief.Exec("select pg_current_xact_id()")
	thief.Exec("select parley.create_queue('His'), parley.create_service('His', 'His', array['DEFAULT'])")
	thief.Exec("select parley.send(parley.begin_dialog('//test/Asker', 'His'), 'DEFAULT', n::text) from generate_series(1, 80) as n")
	for range 80 {
		thief.Exec("savepoint his")
		if got := thief.Bodies("His"); len(got) == 0 {
			t.Fatal("the thief has nothing to receive")
		}
		thief.Exec("rollback to savepoint his")
	}
	b.Send(b.Dialog(), sqltest.Request, "1")
	for range 2 {
		tx := b.Begin()
		if got := tx.Bodies("Answering"); !slices.Equal(got, []string{"1"}) {
			t.Fatalf("received %q beside a reader of another queue", got)
		}
		tx.Rollback()
	}
	thief.Rollback()
}

// Kept messages are kept from readers. A session that ends the conversation takes the lock that went, and its reader waits for it, and is
// refused then.
func TestEndAfterARollbackToASavepointWaitsForWhoeverEndsTheConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "x")
	target := b.FarHandle(initiator)
	s := b.Connection()
	s.Exec("begin; savepoint a; select parley.receive('Answering', top => 1); rollback to a")
	other := b.Begin()
	other.End(target)
	w := b.StartIn(s, "select parley.end_conversation($1::uuid, 1, 'poison')", target)
	b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.Backend)
	other.Commit()
	w.RequireRefusal(8427)
}

// The server sees one of the two waits only.
func TestReadersThatWaitForEachOthersGroupsAreADeadlock(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, second := b.Dialog(), b.Dialog()
	b.Send(first, sqltest.Request, "1")
	keeper := takenAndBack(b, "1")
	b.Send(second, sqltest.Request, "2")
	other := b.Start(fmt.Sprintf(`do $$
		begin
			perform parley.receive('Answering', conversation_handle => '%s');
			perform parley.receive('Answering', conversation_handle => '%s');
		end
	$$`, b.FarHandle(second), b.FarHandle(first)))
	b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", other.Backend)
	// This waits for the other one's group, which is locked in the server's eyes.
	if got := sqltest.BodiesOf(keeper.Messages("select * from parley.receive('Answering', conversation_handle => $1)", b.FarHandle(second))); !slices.Equal(got, []string{"2"}) {
		t.Errorf("received %q", got)
	}
	other.RequireCode("40P01")
}

// A reader that catches every error and commits fails all the same (spec 5.6).
func TestMessageThatFailsInABlockWithExceptionIsSetAside(t *testing.T) {
	t.Parallel()
	const attempt = `do $$
		begin
			perform parley.receive('Answering', top => 1);
			raise exception 'cannot be handled';
		exception
			when raise_exception then null;
		end
	$$`
	for action, becomes := range map[string]func(b *sqltest.Broker){
		"SET_ASIDE": func(b *sqltest.Broker) {
			if got := b.Bodies("Answering"); len(got) != 0 {
				b.Errorf("received %q", got)
			}
			sqltest.Equal(b.Session, "3", "select string_agg(rollbacks::text, ' ') from parley.poison_conversations")
		},
		"DISABLE_QUEUE": func(b *sqltest.Broker) { b.Refuses(9617, "select parley.receive('Answering')") },
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 3, poison_action => $1)", action)
			b.Send(b.Dialog(), sqltest.Request, "poison")
			for range 3 {
				b.Exec(attempt)
			}
			becomes(b)
		})
	}
}

// Going back and trying again is no failure as long as the transaction goes on, and one when it has ended.
func TestTransactionThatGoesBackToASavepointCountsOnce(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"commit", "rollback"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 3)")
			b.Send(b.Dialog(), sqltest.Request, "x")
			for range 2 {
				tx := takenAndBack(b, "x")
				for range 5 {
					tx.Exec("savepoint b; select parley.receive('Answering', top => 1); rollback to b")
				}
				tx.Exec(end)
			}
			// Two have failed, and this is the third attempt: it may succeed.
			if got := b.Bodies("Answering"); !slices.Equal(got, []string{"x"}) {
				t.Errorf("after two failures received %q", got)
			}
		})
	}
}

// The procedure is that of the page, word for word.
func TestReaderProcedureOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/guides/poison.md")
	if err != nil {
		t.Fatal(err)
	}
	procedure := regexp.MustCompile(`(?s)create procedure read_shop\(\).*?\n\$\$;`).Find(page)
	if procedure == nil {
		t.Fatal("the page has no procedure read_shop")
	}
	b := sqltest.NewWorld(t)
	b.Exec("set search_path = public; create schema if not exists public")
	b.Exec("select parley.create_queue('shop', poison_rollbacks => 3); select parley.alter_service('//test/Answerer', 'shop')")
	b.Exec("create table public.orders (item text check (item <> 'poison'))")
	b.Exec(string(procedure))
	bad, good := b.Dialog(), b.Dialog()
	b.Send(bad, sqltest.Request, "poison")
	b.Send(bad, sqltest.Request, "behind it")
	for range 20 {
		b.Send(good, sqltest.Request, "hat")
	}
	b.End(good)
	// Several at once, as activation starts them.
	readers := []*sqltest.Waiter{b.Start("call read_shop()"), b.Start("call read_shop()"), b.Start("call read_shop()")}
	for _, reader := range readers {
		reader.RequireSuccess()
	}
	sqltest.Equal(b.Session, 20, "select count(*) from public.orders")
	sqltest.Equal(b.Session, "3 23514 2", "select concat_ws(' ', rollbacks, sqlstate, waiting_messages) from parley.poison_conversations")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.conversation_endpoints where conversation_handle = $1 and state <> 'CD'", good)

	// A sequence that is mended goes on where it stopped.
	b.Exec("alter table public.orders drop constraint orders_item_check; select parley.retry_poison(conversation_handle) from parley.poison_conversations")
	b.Start("call read_shop()").RequireSuccess()
	sqltest.Equal(b.Session, "poison, behind it", "select string_agg(item, ', ') from public.orders where item <> 'hat'")
}
