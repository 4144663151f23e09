package sql_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
)

// takenAndBack is a transaction that has received the first message of a queue in a savepoint, and gone back.
func (b *broker) takenAndBack(want string) session {
	b.Helper()
	tx := b.begin()
	tx.exec("savepoint a")
	if got := bodiesOf(tx.messages("select * from parley.receive('Answering', top => 1)")); !slices.Equal(got, []string{want}) {
		b.Fatalf("received %q, want %q", got, want)
	}
	tx.exec("rollback to a")
	return tx
}

// The pattern of the paper: save, receive, fail, go back, and end the conversation with an error. Nobody may come between (spec 5.6).
func TestRollbackToASavepointKeepsTheGroup(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]string{
		"Plain":      "select 1",
		"Retention":  "select parley.alter_queue('Answering', retention => true)",
		"Priorities": "select parley.create_broker_priority('low', '//test/Work', 'ANY', 'ANY', 3)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec(prepare)
			initiator := b.dialog()
			b.send(initiator, request, "poison")
			b.send(initiator, request, "behind it")
			target := b.farHandle(initiator)
			tx := b.takenAndBack("poison")
			for _, statement := range []string{
				"select * from parley.receive('Answering')",
				"select * from parley.receive('Answering', top => 1, timeout => 20)",
				"select * from parley.receive('Answering', timeout => 20, conversation_handle => '" + target + "')",
			} {
				if got := b.messages(statement); len(got) != 0 {
					t.Errorf("another reader received %q by %s", bodiesOf(got), statement)
				}
			}
			equal(b.session, true, "select parley.get_conversation_group('Answering') is null")
			// The reader itself takes the message again, as often as it likes.
			tx.exec("savepoint b")
			if got := bodiesOf(tx.messages("select * from parley.receive('Answering', top => 1)")); !slices.Equal(got, []string{"poison"}) {
				t.Errorf("the second time received %q", got)
			}
			tx.exec("rollback to b")
			if got := b.bodies("Answering"); len(got) != 0 {
				t.Errorf("another reader received %q", got)
			}
			// Others go on.
			b.send(b.dialog(), request, "good")
			other := b.begin()
			if got := other.bodies("Answering"); !slices.Equal(got, []string{"good"}) {
				t.Errorf("of another conversation received %q", got)
			}
			// A reader that has passed by a conversation with more messages than were received may have locked it to the end of its transaction.
			other.commit()
			tx.endWithError(target, 1, "poison")
			tx.commit()
			b.requireState(target, "DO")
			if got := b.bodies("Answering"); len(got) != 0 {
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
			b := newWorld(t)
			handle := b.dialog()
			b.send(handle, request, "x")
			tx := b.takenAndBack("x")
			// A reader that names it waits for its lock, with a time-out or without.
			patient := b.waiting("select parley.receive('Answering', conversation_handle => $1::uuid)", b.farHandle(handle))
			waiting := b.waiting("select parley.receive('Answering', timeout => -1)")
			tx.exec(end)
			patient.requireSuccess()
			b.send(b.dialog(), request, "y")
			waiting.requireSuccess()
		})
	}
}

// Thirty-two sequences serve all readers. A reader that marks the same one does not free what another one keeps, and keeps nothing of it.
func TestReadersOfTheSameSequenceKeepTheirOwnGroups(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first := b.dialog()
	b.send(first, request, "1")
	keeper := b.takenAndBack("1")
	const mark = "select setval(format('parley._p_savepoint_%s', n)::regclass, coalesce(pg_sequence_last_value(format('parley._p_savepoint_%s', n)::regclass), 0) + (32::bigint << 31)) from generate_series(0, 31) as s (n)"
	later := b.begin()
	later.exec("select pg_current_xact_id()")
	later.exec(mark)
	if got := b.bodies("Answering"); len(got) != 0 {
		t.Errorf("while two have marked the sequence another reader received %q", got)
	}
	keeper.commit()
	if got := b.bodies("Answering"); !slices.Equal(got, []string{"1"}) {
		t.Errorf("received %q, kept by nobody any more", got)
	}
}

// What is kept is kept from readers. A session that ends the conversation takes the lock that went, and its reader waits for it, and is
// refused then.
func TestEndAfterARollbackToASavepointWaitsForWhoeverEndsTheConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	initiator := b.dialog()
	b.send(initiator, request, "x")
	target := b.farHandle(initiator)
	s := b.connection()
	s.exec("begin; savepoint a; select parley.receive('Answering', top => 1); rollback to a")
	other := b.begin()
	other.end(target)
	w := b.startIn(s, "select parley.end_conversation($1::uuid, 1, 'poison')", target)
	b.waitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.backend)
	other.commit()
	w.requireRefusal(8427)
}

// The server sees one of the two waits only.
func TestReadersThatWaitForEachOthersGroupsAreADeadlock(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, second := b.dialog(), b.dialog()
	b.send(first, request, "1")
	keeper := b.takenAndBack("1")
	b.send(second, request, "2")
	other := b.start(fmt.Sprintf(`do $$
		begin
			perform parley.receive('Answering', conversation_handle => '%s');
			perform parley.receive('Answering', conversation_handle => '%s');
		end
	$$`, b.farHandle(second), b.farHandle(first)))
	b.waitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event = 'PgSleep')", other.backend)
	// This waits for the other one's group, which is locked in the server's eyes.
	if got := bodiesOf(keeper.messages("select * from parley.receive('Answering', conversation_handle => $1)", b.farHandle(second))); !slices.Equal(got, []string{"2"}) {
		t.Errorf("received %q", got)
	}
	other.requireCode("40P01")
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
	for action, becomes := range map[string]func(b *broker){
		"SET_ASIDE": func(b *broker) {
			if got := b.bodies("Answering"); len(got) != 0 {
				b.Errorf("received %q", got)
			}
			equal(b.session, "3", "select string_agg(rollbacks::text, ' ') from parley.poison_conversations")
		},
		"DISABLE_QUEUE": func(b *broker) { b.refuses(9617, "select parley.receive('Answering')") },
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.alter_queue('Answering', poison_rollbacks => 3, poison_action => $1)", action)
			b.send(b.dialog(), request, "poison")
			for range 3 {
				b.exec(attempt)
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
			b := newWorld(t)
			b.exec("select parley.alter_queue('Answering', poison_rollbacks => 3)")
			b.send(b.dialog(), request, "x")
			for range 2 {
				tx := b.takenAndBack("x")
				for range 5 {
					tx.exec("savepoint b; select parley.receive('Answering', top => 1); rollback to b")
				}
				tx.exec(end)
			}
			// Two have failed, and this is the third attempt: it may succeed.
			if got := b.bodies("Answering"); !slices.Equal(got, []string{"x"}) {
				t.Errorf("after two failures received %q", got)
			}
		})
	}
}

// The procedure is that of the page, word for word.
func TestReaderProcedureOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/guides/poison.md")
	if err != nil {
		t.Fatal(err)
	}
	procedure := regexp.MustCompile(`(?s)create procedure read_shop\(\).*?\n\$\$;`).Find(page)
	if procedure == nil {
		t.Fatal("the page has no procedure read_shop")
	}
	b := newWorld(t)
	b.exec("set search_path = public; create schema if not exists public")
	b.exec("select parley.create_queue('shop', poison_rollbacks => 3); select parley.alter_service('//test/Answerer', 'shop')")
	b.exec("create table public.orders (item text check (item <> 'poison'))")
	b.exec(string(procedure))
	bad, good := b.dialog(), b.dialog()
	b.send(bad, request, "poison")
	b.send(bad, request, "behind it")
	for range 20 {
		b.send(good, request, "hat")
	}
	b.end(good)
	// Several at once, as activation starts them.
	readers := []*waiter{b.start("call read_shop()"), b.start("call read_shop()"), b.start("call read_shop()")}
	for _, reader := range readers {
		reader.requireSuccess()
	}
	equal(b.session, 20, "select count(*) from public.orders")
	equal(b.session, "3 23514 2", "select concat_ws(' ', rollbacks, sqlstate, waiting_messages) from parley.poison_conversations")
	equal(b.session, 0, "select count(*) from parley.conversation_endpoints where conversation_handle = $1 and state <> 'CD'", good)

	// What is mended goes on where it stopped.
	b.exec("alter table public.orders drop constraint orders_item_check; select parley.retry_poison(conversation_handle) from parley.poison_conversations")
	b.start("call read_shop()").requireSuccess()
	equal(b.session, "poison, behind it", "select string_agg(item, ', ') from public.orders where item <> 'hat'")
}
