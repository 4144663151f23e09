package conversation_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestGetConversationGivesTheOneOfItsKey(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, again, other := b.Pooled("a", "1"), b.Pooled("a", "2"), b.Pooled("b", "3")
	if first != again || first == other {
		t.Errorf("keys a, a, b gave %s, %s, %s", first, again, other)
	}
	got := b.Receive("Answering")
	if want := []string{"1", "2"}; !slices.Equal(sqltest.BodiesOf(got), want) {
		t.Errorf("received %q, want %q", sqltest.BodiesOf(got), want)
	}
	sqltest.Equal(b.Session, "a CO 2 b CO 0", `
		select string_agg(format('%s %s %s', key, state, messages), ' ' order by key) from parley.pooled_conversations`)
	// The empty key is a key.
	if empty := b.Pooled("", "4"); empty == sqltest.Value[string](b.Session, "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work')") {
		t.Error("the empty key shares a conversation with no key")
	}
}

// The properties that set pools apart: contract, broker instance, encryption, services.
func TestGetConversationDistinguishesWhatADialogHas(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.create_service('//test/Other', 'Asking')")
	tx := b.Begin()
	calls := []string{
		"'//test/Asker', '//test/Answerer'", "'//test/Asker', '//test/Answerer', '//test/Work'", "'//test/Other', '//test/Answerer'", "'//test/Asker', '//test/Asker'",
		"'//test/Asker', '//test/Answerer', broker_instance => 'CURRENT DATABASE'", "'//test/Asker', '//test/Answerer', encryption => false",
	}
	seen := map[string]string{}
	for range 2 {
		for _, call := range calls {
			handle := sqltest.Value[string](tx, fmt.Sprintf("select parley.get_conversation(%s, key => 'k')::text", call))
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
	b := sqltest.NewWorld(t)
	conn := b.Connection()
	get := "select parley.get_conversation('//test/Asker', '//test/Answerer')::text"
	if first, again := sqltest.Value[string](conn, get), sqltest.Value[string](conn, get); first != again {
		t.Errorf("one session got %s and %s", first, again)
	}
	one := "select parley.get_conversation('//test/Asker', '//test/Answerer', conversations => 1)::text"
	if first, other := sqltest.Value[string](conn, one), sqltest.Value[string](b.Connection(), one); first != other {
		t.Errorf("with one conversation two sessions got %s and %s", first, other)
	}
}

// Two sessions send on the same conversation, and neither waits for the other.
func TestGetConversationSharesWithoutWaiting(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Pooled("k", "first")
	one, two := b.Begin(), b.Begin()
	two.Exec("set local lock_timeout = '2s'")
	if first, second := one.Pooled("k", "one"), two.Pooled("k", "two"); first != handle || second != handle {
		t.Errorf("open transactions got %s and %s, want %s", first, second, handle)
	}
	two.Commit()
	one.Rollback()
	if got, want := b.Bodies("Answering"), []string{"first", "two"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
}

// While one transaction begins the conversation another one gets its own at once; from then on the older one is given.
func TestGetConversationBegunTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	one, two := b.Begin(), b.Begin()
	two.Exec("set local lock_timeout = '2s'")
	first, second := one.Pooled("k", "one"), two.Pooled("k", "two")
	if first == second {
		t.Fatal("a conversation that is not committed was given")
	}
	two.Commit()
	one.Commit()
	if got := b.Pooled("k", "three"); got != first {
		t.Errorf("then %s is given, want the older one %s", got, first)
	}
}

// One on which nothing was sent is given to one transaction at a time: both would wait for each other in their first send.
func TestGetConversationNeverSentOnIsGivenOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := sqltest.Value[string](b.Session, sqltest.GetConversation, "k")
	one, two := b.Begin(), b.Begin()
	first, second := sqltest.Value[string](one, sqltest.GetConversation, "k"), sqltest.Value[string](two, sqltest.GetConversation, "k")
	if first != handle || second == handle {
		t.Errorf("got %s and %s, want only the first to be %s", first, second, handle)
	}
	one.Send(first, sqltest.Request, "one")
	two.Send(second, sqltest.Request, "two")
	one.Commit()
	two.Commit()
}

func TestGetConversationManySessionsAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const sessions, sends = 6, 30
	var all sync.WaitGroup
	for n := range sessions {
		all.Go(func() {
			for i := range sends {
				_, err := b.Pool.Exec(t.Context(), `
					select parley.send(
						parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => $1, max_messages => 20), '//test/Request', $2::text)`,
					fmt.Sprint(i%2), fmt.Sprintf("%d %d", n, i))
				if err != nil {
					t.Error(sqltest.Describe(err))
				}
				if i%5 == 0 {
					if _, err := b.Pool.Exec(t.Context(), "select count(*) from parley.receive('Answering')"); err != nil {
						t.Error(sqltest.Describe(err))
					}
				}
			}
		})
	}
	all.Wait()
	for len(b.Receive("Answering")) > 0 {
	}
	sqltest.Equal(b.Session, sessions*sends, "select sum(messages)::integer from parley.pooled_conversations")
	b.MakePooledDue()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_pooled_conversation as p join parley._p_endpoint as e using (endpoint_id) where e.state <> 'DO'")
}

func TestGetConversationReplacesByCount(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	get := "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => 'k', max_messages => 2)::text"
	first := sqltest.Value[string](b.Session, get)
	b.Send(first, sqltest.Request, "1")
	b.Send(first, sqltest.Request, "2")
	sqltest.Equal(b.Session, first, get)
	b.Receive("Answering")
	// The session that replaces it has not committed: others go on with the old one.
	tx := b.Begin()
	second := sqltest.Value[string](tx, get)
	sqltest.Equal(b.Session, first, get)
	tx.Send(second, sqltest.Request, "4")
	tx.Commit()
	sqltest.Equal(b.Session, second, get)
	if second == first {
		t.Fatal("it was not replaced")
	}
	// The old one is ended in a minute, however often it is replaced.
	sqltest.Equal(b.Session, true, `
		select bool_and(end_at between clock_timestamp() and clock_timestamp() + interval '1 minute') from parley.pooled_conversations where conversation_handle = $1`, first)
	target := b.FarHandle(first)
	b.Exec("update parley._p_alarm as a set due_at = now() from parley._p_endpoint as e where e.endpoint_id = a.endpoint_id and e.conversation_handle = $1", first)
	b.Exec("select parley.fire_timers()")
	b.RequireState(first, "DO")
	got := b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target)
	if want := []string{sqltest.EndDialog}; !slices.Equal(sqltest.TypesOf(got), want) {
		t.Errorf("the target received %q, want %q", sqltest.TypesOf(got), want)
	}
	b.End(target)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint where conversation_handle in ($1, $2)", first, target)
	b.RequireState(second, "CO")
}

func TestGetConversationReplacesByAge(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first := b.Pooled("k", "1")
	// It is good for a minute longer than its hour, for who was given it at the end of that.
	sqltest.Equal(b.Session, true, `
		select p.end_at - e.begun_at between interval '61 minutes' and interval '61 minutes 30 seconds'
		from parley.pooled_conversations as p join parley._p_endpoint as e using (conversation_handle)`)
	b.Exec("update parley._p_endpoint set begun_at = begun_at - interval '1 hour'")
	// A conversation that ends sooner than in a minute is not kept longer because it is replaced.
	b.Exec("update parley._p_alarm set due_at = clock_timestamp() + interval '20 seconds' where kind = 'pooled'")
	const end = "select end_at::text from parley.pooled_conversations where conversation_handle = $1"
	before := sqltest.Value[string](b.Session, end, first)
	if second := b.Pooled("k", "2"); second == first {
		t.Error("it is given after an hour")
	}
	sqltest.Equal(b.Session, before, end, first)
}

// No session ends the conversation that a transaction was given, before that is over.
func TestGetConversationIsNotEndedWhileItIsHeld(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Pooled("k", "1")
	tx := b.Begin()
	handle := sqltest.Value[string](tx, sqltest.GetConversation, "k")
	b.MakePooledDue()
	b.RequireState(handle, "CO")
	tx.Send(handle, sqltest.Request, "2")
	tx.Commit()
	b.MakePooledDue()
	b.RequireState(handle, "DO")
	if third := b.Pooled("k", "3"); third == handle {
		t.Error("an ended conversation is given")
	}
}

// An answer is not thrown away with its conversation.
func TestGetConversationIsKeptForItsAnswers(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Pooled("k", "question")
	b.Receive("Answering")
	b.Send(b.FarHandle(handle), sqltest.Reply, "answer")
	b.MakePooledDue()
	b.RequireState(handle, "CO")
	if got, want := b.Bodies("Asking"), []string{"answer"}; !slices.Equal(got, want) {
		t.Errorf("received %q, want %q", got, want)
	}
	b.MakePooledDue()
	b.RequireState(handle, "DO")
}

func TestGetConversationGivesNoneThatIsOver(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(sqltest.UnknownTargets)
	for name, end := range map[string]func(handle string){
		"ended here":   func(handle string) { b.End(handle) },
		"ended there":  func(handle string) { b.End(b.FarHandle(handle)) },
		"failed there": func(handle string) { b.EndWithError(b.FarHandle(handle), 7, "no") },
		"gone":         func(handle string) { b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", handle) },
		"refused": func(string) {
			b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
		},
		"service dropped": func(string) { b.Exec("select parley.drop_service('//test/Answerer')") },
	} {
		handle := b.Pooled("k", name)
		end(handle)
		if name == "refused" {
			// A new one fails in its first send, and is not given again.
			refused := b.Pooled("new", name)
			b.RequireState(refused, "ER")
			sqltest.Equal(b.Session, false, "select $2 = parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work', key => $1)::text", "new", refused)
			b.Exec("select parley.alter_service('//test/Answerer', add_contracts => array['//test/Work'])")
			continue
		}
		if again := sqltest.Value[string](b.Session, sqltest.GetConversation, "k"); again == handle {
			t.Errorf("%s: it is given again", name)
		}
		if name == "service dropped" {
			b.Exec("select parley.create_service('//test/Answerer', 'Answering', array['//test/Work', 'DEFAULT'])")
		}
	}
}

// The side of a conversation that the target has ended goes by itself when nobody reads; an Error waits for its reader.
func TestGetConversationEndedThereGoes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	ended, failed := b.Pooled("ended", "1"), b.Pooled("failed", "2")
	b.End(b.FarHandle(ended))
	b.EndWithError(b.FarHandle(failed), 7, "no")
	b.MakePooledDue()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint where conversation_handle = $1", ended)
	b.RequireState(failed, "ER")
	b.RequireCode(b.Messages("select * from parley.receive('Asking', conversation_handle => $1)", failed)[0], 7)
	b.MakePooledDue()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_endpoint where conversation_handle = $1", failed)
}

func TestGetConversationIsUndoneByARollback(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	kept := tx.Pooled("kept", "1")
	tx.Exec("savepoint s")
	lost := tx.Pooled("lost", "2")
	tx.Exec("rollback to s")
	if again := tx.Pooled("lost", "3"); again == lost {
		t.Error("what a savepoint took back is given")
	}
	if again := tx.Pooled("kept", "4"); again != kept {
		t.Errorf("got %s, want %s", again, kept)
	}
	tx.Rollback()
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_pooled_conversation")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_alarm")
}

func TestGetConversationAtRepeatableRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.Exec("select 1 from parley._p_broker")
	handle := b.Pooled("k", "1")
	own := tx.Pooled("k", "2")
	if own == handle {
		t.Error("it sees what was committed later")
	}
	tx.Commit()
	sqltest.Equal(b.Session, handle, sqltest.GetConversation, "k")
}

// The sessions agree on who replaces a conversation by locks that nobody else can take.
func TestGetConversationIsReplacedWhateverAdvisoryLocksAreHeld(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	old := b.Pooled("k", "first")
	b.Exec("update parley._p_endpoint set begun_at = begun_at - interval '2 hours'")
	tx := b.Begin()
	tx.Exec(`
		select pg_advisory_xact_lock(hashtextextended(array[
			'parley pool', p.begun_by::oid::text, p.service_id::text, p.to_service, p.key, p.slot::text,
			p.service_contract_id::text, p.broker_instance, p.is_encrypted::text
		]::text, 0))
		from parley._p_pooled_conversation as p`)
	if b.Pooled("k", "second") == old {
		t.Error("an advisory lock keeps an old conversation in use")
	}
}
