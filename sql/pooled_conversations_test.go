package sql_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

const getConversation = "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => $1)::text"

// pooled asks for the conversation of a key, and sends on it.
func (s session) pooled(key, body string) string {
	s.Helper()
	handle := value[string](s, getConversation, key)
	s.send(handle, request, body)
	return handle
}

// makePooledDue lets the alarms of the pool ring, and fires them.
func (s session) makePooledDue() {
	s.Helper()
	s.exec("update parley._p_alarm set due_at = clock_timestamp() where kind = 'pooled'")
	s.exec("select parley.fire_timers()")
}

func TestGetConversationGivesTheOneOfItsKey(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first, again, other := b.pooled("a", "1"), b.pooled("a", "2"), b.pooled("b", "3")
	if first != again || first == other {
		t.Errorf("keys a, a, b gave %s, %s, %s", first, again, other)
	}
	got := b.receive("Answering")
	if want := []string{"1", "2"}; !slices.Equal(bodiesOf(got), want) {
		t.Errorf("received %q, want %q", bodiesOf(got), want)
	}
	equal(b.session, "a CO 2 b CO 0", `
		select string_agg(format('%s %s %s', key, state, messages), ' ' order by key) from parley.pooled_conversations`)
	// The empty key is a key.
	if empty := b.pooled("", "4"); empty == value[string](b.session, "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work')") {
		t.Error("the empty key shares a conversation with no key")
	}
}

// What sets pools apart: contract, broker instance, encryption, services.
func TestGetConversationDistinguishesWhatADialogHas(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec("select parley.create_service('//test/Other', 'Asking')")
	tx := b.begin()
	calls := []string{
		"'//test/Asker', '//test/Answerer'", "'//test/Asker', '//test/Answerer', '//test/Work'", "'//test/Other', '//test/Answerer'", "'//test/Asker', '//test/Asker'",
		"'//test/Asker', '//test/Answerer', broker_instance => 'CURRENT DATABASE'", "'//test/Asker', '//test/Answerer', encryption => false",
	}
	seen := map[string]string{}
	for range 2 {
		for _, call := range calls {
			handle := value[string](tx, fmt.Sprintf("select parley.get_conversation(%s, key => 'k')::text", call))
			if before, ok := seen[handle]; ok && before != call {
				t.Errorf("%s and %s share a conversation", before, call)
			}
			seen[handle] = call
		}
	}
	if len(seen) != len(calls) {
		t.Errorf("%d calls have %d conversations", len(calls), len(seen))
	}
}

func TestGetConversationWithoutAKeyKeepsToTheSession(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	conn := b.connection()
	get := "select parley.get_conversation('//test/Asker', '//test/Answerer')::text"
	if first, again := value[string](conn, get), value[string](conn, get); first != again {
		t.Errorf("one session got %s and %s", first, again)
	}
	one := "select parley.get_conversation('//test/Asker', '//test/Answerer', conversations => 1)::text"
	if first, other := value[string](conn, one), value[string](b.connection(), one); first != other {
		t.Errorf("with one conversation two sessions got %s and %s", first, other)
	}
}

// Two sessions send on the same conversation, and neither waits for the other.
func TestGetConversationSharesWithoutWaiting(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.pooled("k", "first")
	one, two := b.begin(), b.begin()
	two.exec("set local lock_timeout = '2s'")
	if first, second := one.pooled("k", "one"), two.pooled("k", "two"); first != handle || second != handle {
		t.Errorf("open transactions got %s and %s, want %s", first, second, handle)
	}
	two.commit()
	one.rollback()
	if got, want := b.bodies("Answering"), []string{"first", "two"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// While one transaction begins the conversation another one gets its own at once; from then on the older one is given.
func TestGetConversationBegunTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	one, two := b.begin(), b.begin()
	two.exec("set local lock_timeout = '2s'")
	first, second := one.pooled("k", "one"), two.pooled("k", "two")
	if first == second {
		t.Fatal("a conversation that is not committed was given")
	}
	two.commit()
	one.commit()
	if got := b.pooled("k", "three"); got != first {
		t.Errorf("then %s is given, want the older one %s", got, first)
	}
}

// One on which nothing was sent is given to one transaction at a time: both would wait for each other in their first send.
func TestGetConversationNeverSentOnIsGivenOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := value[string](b.session, getConversation, "k")
	one, two := b.begin(), b.begin()
	first, second := value[string](one, getConversation, "k"), value[string](two, getConversation, "k")
	if first != handle || second == handle {
		t.Errorf("got %s and %s, want only the first to be %s", first, second, handle)
	}
	one.send(first, request, "one")
	two.send(second, request, "two")
	one.commit()
	two.commit()
}

func TestGetConversationManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	const sessions, sends = 6, 30
	var all sync.WaitGroup
	for n := range sessions {
		all.Go(func() {
			for i := range sends {
				_, err := b.pool.Exec(t.Context(), `
					select parley.send(
						parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => $1, max_messages => 20), '//test/Request', $2::text)`,
					fmt.Sprint(i%2), fmt.Sprintf("%d %d", n, i))
				if err != nil {
					t.Error(describe(err))
				}
				if i%5 == 0 {
					if _, err := b.pool.Exec(t.Context(), "select count(*) from parley.receive('Answering')"); err != nil {
						t.Error(describe(err))
					}
				}
			}
		})
	}
	all.Wait()
	for len(b.receive("Answering")) > 0 {
	}
	equal(b.session, sessions*sends, "select sum(messages)::integer from parley.pooled_conversations")
	b.makePooledDue()
	equal(b.session, 0, "select count(*) from parley._p_pooled_conversation as p join parley._p_endpoint as e using (endpoint_id) where e.state <> 'DO'")
}

func TestGetConversationReplacesByCount(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	get := "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => 'k', max_messages => 2)::text"
	first := value[string](b.session, get)
	b.send(first, request, "1")
	b.send(first, request, "2")
	equal(b.session, first, get)
	b.receive("Answering")
	// Who replaces it has not committed: others go on with the old one.
	tx := b.begin()
	second := value[string](tx, get)
	equal(b.session, first, get)
	tx.send(second, request, "4")
	tx.commit()
	equal(b.session, second, get)
	if second == first {
		t.Fatal("it was not replaced")
	}
	// The old one is ended in a minute, however often it is replaced.
	equal(b.session, true, `
		select bool_and(end_at between clock_timestamp() and clock_timestamp() + interval '1 minute') from parley.pooled_conversations where conversation_handle = $1`, first)
	target := b.farHandle(first)
	b.exec("update parley._p_alarm as a set due_at = now() from parley._p_endpoint as e where e.endpoint_id = a.endpoint_id and e.conversation_handle = $1", first)
	b.exec("select parley.fire_timers()")
	b.requireState(first, "DO")
	got := b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	if want := []string{endDialog}; !slices.Equal(typesOf(got), want) {
		t.Errorf("the target received %q, want %q", typesOf(got), want)
	}
	b.end(target)
	equal(b.session, 0, "select count(*) from parley._p_endpoint where conversation_handle in ($1, $2)", first, target)
	b.requireState(second, "CO")
}

func TestGetConversationReplacesByAge(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	first := b.pooled("k", "1")
	// It is good for a minute longer than its hour, for who was given it at the end of that.
	equal(b.session, true, `
		select p.end_at - e.begun_at between interval '61 minutes' and interval '61 minutes 30 seconds'
		from parley.pooled_conversations as p join parley._p_endpoint as e using (conversation_handle)`)
	b.exec("update parley._p_endpoint set begun_at = begun_at - interval '1 hour'")
	// What ends sooner than in a minute is not kept longer because it is replaced.
	b.exec("update parley._p_alarm set due_at = clock_timestamp() + interval '20 seconds' where kind = 'pooled'")
	const end = "select end_at::text from parley.pooled_conversations where conversation_handle = $1"
	before := value[string](b.session, end, first)
	if second := b.pooled("k", "2"); second == first {
		t.Error("it is given after an hour")
	}
	equal(b.session, before, end, first)
}

// Nobody ends what a transaction was given, before that is over.
func TestGetConversationIsNotEndedWhileItIsHeld(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.pooled("k", "1")
	tx := b.begin()
	handle := value[string](tx, getConversation, "k")
	b.makePooledDue()
	b.requireState(handle, "CO")
	tx.send(handle, request, "2")
	tx.commit()
	b.makePooledDue()
	b.requireState(handle, "DO")
	if third := b.pooled("k", "3"); third == handle {
		t.Error("an ended conversation is given")
	}
}

// An answer is not thrown away with its conversation.
func TestGetConversationIsKeptForItsAnswers(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.pooled("k", "question")
	b.receive("Answering")
	b.send(b.farHandle(handle), reply, "answer")
	b.makePooledDue()
	b.requireState(handle, "CO")
	if got, want := b.bodies("Asking"), []string{"answer"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	b.makePooledDue()
	b.requireState(handle, "DO")
}

func TestGetConversationGivesNoneThatIsOver(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.exec(unknownTargets)
	for name, end := range map[string]func(handle string){
		"ended here":   func(handle string) { b.end(handle) },
		"ended there":  func(handle string) { b.end(b.farHandle(handle)) },
		"failed there": func(handle string) { b.endWithError(b.farHandle(handle), 7, "no") },
		"gone":         func(handle string) { b.exec("select parley.end_conversation($1::uuid, cleanup => true)", handle) },
		"refused": func(string) {
			b.exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
		},
		"service dropped": func(string) { b.exec("select parley.drop_service('//test/Answerer')") },
	} {
		handle := b.pooled("k", name)
		end(handle)
		if name == "refused" {
			// A new one fails in its first send, and is not given again.
			refused := b.pooled("new", name)
			b.requireState(refused, "ER")
			equal(b.session, false, "select $2 = parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => $1)::text", "new", refused)
			b.exec("select parley.alter_service('//test/Answerer', add_contracts => array['//test/Work'])")
			continue
		}
		if again := value[string](b.session, getConversation, "k"); again == handle {
			t.Errorf("%s: it is given again", name)
		}
		if name == "service dropped" {
			b.exec("select parley.create_service('//test/Answerer', 'Answering', array['//test/Work', 'DEFAULT'])")
		}
	}
}

// The side of a conversation that the target has ended goes by itself when nobody reads; an Error waits for its reader.
func TestGetConversationEndedThereGoes(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	ended, failed := b.pooled("ended", "1"), b.pooled("failed", "2")
	b.end(b.farHandle(ended))
	b.endWithError(b.farHandle(failed), 7, "no")
	b.makePooledDue()
	equal(b.session, 0, "select count(*) from parley._p_endpoint where conversation_handle = $1", ended)
	b.requireState(failed, "ER")
	b.requireCode(b.messages("select * from parley.receive('Asking', conversation_handle => $1)", failed)[0], 7)
	b.makePooledDue()
	equal(b.session, 0, "select count(*) from parley._p_endpoint where conversation_handle = $1", failed)
}

func TestGetConversationIsUndoneByARollback(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin()
	kept := tx.pooled("kept", "1")
	tx.exec("savepoint s")
	lost := tx.pooled("lost", "2")
	tx.exec("rollback to s")
	if again := tx.pooled("lost", "3"); again == lost {
		t.Error("what a savepoint took back is given")
	}
	if again := tx.pooled("kept", "4"); again != kept {
		t.Errorf("got %s, want %s", again, kept)
	}
	tx.rollback()
	equal(b.session, 0, "select count(*) from parley._p_pooled_conversation")
	equal(b.session, 0, "select count(*) from parley._p_alarm")
}

func TestGetConversationAtRepeatableRead(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	tx := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.exec("select 1 from parley._p_broker")
	handle := b.pooled("k", "1")
	own := tx.pooled("k", "2")
	if own == handle {
		t.Error("it sees what was committed later")
	}
	tx.commit()
	equal(b.session, handle, getConversation, "k")
}

// Who replaces a conversation is agreed on by locks that nobody else can take.
func TestGetConversationIsReplacedWhateverAdvisoryLocksAreHeld(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	old := b.pooled("k", "first")
	b.exec("update parley._p_endpoint set begun_at = begun_at - interval '2 hours'")
	tx := b.begin()
	tx.exec(`
		select pg_advisory_xact_lock(hashtextextended(array[
			'parley pool', p.begun_by::oid::text, p.service_id::text, p.to_service, p.key, p.slot::text,
			p.service_contract_id::text, p.broker_instance, p.is_encrypted::text
		]::text, 0))
		from parley._p_pooled_conversation as p`)
	if b.pooled("k", "second") == old {
		t.Error("an advisory lock keeps an old conversation in use")
	}
}
