package conversation_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// bound begins a dialog whose two sides BEGIN DIALOG makes.
func bound(s sqltest.Session) string {
	s.Helper()
	handle := s.Dialog()
	sqltest.Equal(s, true, "select bound_version is not null from parley._p_endpoint where conversation_handle = $1", handle)
	return handle
}

const (
	// rowsOf counts the sides of a conversation in the tables, and shownOf those that the view shows.
	rowsOf  = "select count(*) from parley._p_endpoint where conversation_id = $1::uuid"
	idOf    = "select conversation_id::text from parley.conversation_endpoints where conversation_handle = $1"
	shownOf = "select count(*) from parley.conversation_endpoints where conversation_id = $1::uuid"
	// versionsOf says which versions of their rows both sides of a conversation are.
	versionsOf = `
		select string_agg(xmin::text || ctid::text, ' ' order by endpoint_id)
		from parley._p_endpoint where conversation_id = $1::uuid`
)

// BEGIN DIALOG makes both sides of a usual dialog, so its first SEND is like any other. Until something is sent the dialog is as if
// the target were not there.
func TestAnUnsentDialogHasNoTargetThatAnybodySees(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	// It keeps the facts of the catalog for the next dialogs.
	b.Conversation()

	t.Run("the first send writes no side", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		handle := bound(s)
		id := sqltest.Value[string](s, idOf, handle)
		s.RequireState(handle, "SO")
		sqltest.Equal(s, 1, shownOf, id)
		sqltest.Equal(s, 2, rowsOf, id)
		sqltest.Equal(s, true, `
			select count(*) = (select count(distinct conversation_group_id) from parley.conversation_endpoints where state <> 'CD')
			from parley.conversation_groups`)
		before := sqltest.Value[string](s, versionsOf, id)
		tx := b.Begin()
		tx.Send(handle, sqltest.Request, "taken back")
		tx.RequireState(handle, "CO")
		sqltest.Equal(tx, 2, shownOf, id)
		tx.Rollback()
		s.RequireState(handle, "SO")
		sqltest.Equal(s, 1, shownOf, id)
		s.Send(handle, sqltest.Request, "sent")
		s.RequireState(handle, "CO")
		sqltest.Equal(s, before, versionsOf, id)
		s.RequireState(s.FarHandle(handle), "CO")
		got := s.Messages("select * from parley.receive('Answering')")
		if len(got) != 1 || string(got[0].MessageBody) != "sent" {
			t.Fatalf("received %v", sqltest.BodiesOf(got))
		}
		s.RequireState(handle, "CO")
		s.End(handle)
		s.RequireState(got[0].ConversationHandle, "DI")
		s.End(got[0].ConversationHandle)
	})
	t.Run("its end is told to nobody", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		for _, end := range []string{
			"select parley.end_conversation($1::uuid)", "select parley.end_conversation($1::uuid, 7, 'no')",
			"select parley.end_conversations(array[$1::uuid])", "select parley.end_conversation($1::uuid, cleanup => true)",
		} {
			handle := bound(s)
			id := sqltest.Value[string](s, idOf, handle)
			s.Exec(end, handle)
			sqltest.Equal(s, 0, rowsOf, id)
			sqltest.Equal(s, 0, "select count(*) from parley_queue.\"Answering\"")
			sqltest.Equal(s, 0, "select count(*) from parley._p_tombstone where conversation_id = $1::uuid", id)
		}
		if found := s.Check("check_broker()"); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	})
	t.Run("it is begun with an old snapshot too", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		old.Exec("select count(*) from parley.conversation_endpoints")
		handle := bound(old)
		old.Send(handle, sqltest.Request, "from an old snapshot")
		old.Commit()
		got := s.Receive("Answering")
		if bodies := sqltest.BodiesOf(got); len(bodies) != 1 || bodies[0] != "from an old snapshot" {
			t.Fatalf("received %v", bodies)
		}
		s.End(got[0].ConversationHandle)
		s.End(handle)
	})
	t.Run("an old snapshot does not take it for unsent", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		for _, isSent := range []bool{true, false} {
			handle := bound(s)
			id := sqltest.Value[string](s, idOf, handle)
			old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
			sqltest.Equal(old, 1, shownOf, id)
			if isSent {
				s.Send(handle, sqltest.Request, "sent meanwhile")
			}
			old.End(handle)
			old.Commit()
			s.Fire("abandoned")
			if isSent {
				got := s.Receive("Answering")
				if types := sqltest.TypesOf(got); len(types) != 2 || types[1] != sqltest.EndDialog {
					t.Errorf("received %v, want what was sent and EndDialog", types)
				}
				s.End(got[0].ConversationHandle)
			}
			sqltest.Equal(s, 0, rowsOf, id)
		}
	})
	t.Run("what waits has been sent", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		disabled, again, late := bound(s), bound(s), bound(s)
		old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		old.Exec("select parley.send($1::uuid, '//test/Request', 'waits for its time'::text, deliver_at => now() + interval '1 hour')", late)
		old.Commit()
		s.RequireState(late, "CO")
		s.Exec("select parley.disable_broker()")
		s.Send(disabled, sqltest.Request, "waits for the broker")
		s.RequireState(disabled, "CO")
		s.Send(again, sqltest.Request, "waits, and its side is ended")
		s.End(again)
		s.Exec("select parley.enable_broker()")
		s.End(late)
		s.RequireState(late, "DO")
		s.Exec("update parley._p_delayed_send set due_at = now(), try_at = now()")
		s.Exec("select setval('parley._p_next_due_send', 0)")
		s.Exec("select parley.fire_timers()")
		var got []string
		parleytest.Until(t, "all of it arrives", func() bool {
			for _, m := range s.Receive("Answering") {
				got = append(got, string(m.MessageBody))
				if m.MessageTypeName == sqltest.EndDialog {
					s.End(m.ConversationHandle)
				}
			}
			return len(got) >= 5
		})
		slices.Sort(got)
		if want := []string{"", "", "waits for its time", "waits for the broker", "waits, and its side is ended"}; !slices.Equal(got, want) {
			t.Errorf("received %q, want %q", got, want)
		}
		s.End(disabled)
		// The facts of the catalog were kept with another version.
		b.Conversation()
	})
	t.Run("the catalog counts as it is at the first send", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		away, refused, sent := bound(s), bound(s), bound(s)
		s.Send(sent, sqltest.Request, "before the change")
		// Two that have sent and send again, after a change: neither waits for the other.
		one, other := b.Begin(), b.Begin()
		one.Send(sent, sqltest.Request, "one")
		other.Send(sent, sqltest.Request, "other")
		s.Exec(sqltest.RouteAway)
		one.Send(sent, sqltest.Request, "one more")
		other.Send(sent, sqltest.Request, "another")
		one.Commit()
		other.Commit()
		s.Send(away, sqltest.Request, "elsewhere")
		sqltest.Equal(s, true, sqltest.GoesAway, away)
		sqltest.Equal(s, false, sqltest.GoesAway, sent)
		s.Exec("select parley.drop_route('away')")
		s.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
		s.RequireState(refused, "SO")
		s.Send(refused, sqltest.Request, "refused")
		s.RequireState(refused, "ER")
		s.RequireState(sent, "ER")
		s.Exec("select parley.alter_service('//test/Answerer', add_contracts => array['//test/Work'])")
	})
	t.Run("it outlives its target", func(t *testing.T) {
		s := sqltest.Session{T: t, DB: b.DB}
		s.Exec("select parley.end_conversation(conversation_handle, cleanup => true) from parley.conversation_endpoints")
		b.Conversation()
		handle := bound(s)
		s.Exec("select parley.drop_service('//test/Answerer')")
		s.RequireState(handle, "SO")
		s.Exec("select parley.create_service('//test/Answerer', 'Answering', array['//test/Work', 'DEFAULT'])")
		s.Send(handle, sqltest.Request, "to the new one")
		if got := s.Bodies("Answering"); len(got) != 1 || got[0] != "to the new one" {
			t.Errorf("received %v", got)
		}
		if found := s.Check("check_broker()"); len(found) > 0 {
			t.Errorf("found %v", found)
		}
	})
}

// Cleanup of the target takes all that shows that something was sent: its messages, and how far it has received.
func TestADialogWhoseTargetIsCleanedUpStaysSent(t *testing.T) {
	t.Parallel()
	for name, received := range map[string]bool{"with the message received": true, "with the message waiting": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Conversation()
			handle := bound(b.Session)
			b.Send(handle, sqltest.Request, "sent")
			target := b.FarHandle(handle)
			if received {
				b.Receive("Answering")
			}
			b.Exec("select parley.end_conversation($1::uuid, cleanup => true)", target)
			b.RequireState(handle, "CO")
		})
	}
}

// Messages that it has not received go with its end, and EndDialog comes behind what it has sent for later.
func TestADialogWhoseTargetEndsBehindWhatItSentForLaterStaysSent(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Conversation()
	for _, end := range []string{"select parley.end_conversation($1::uuid)", "select parley.end_conversations(array[$1::uuid])"} {
		handle := bound(b.Session)
		b.Send(handle, sqltest.Request, "not received")
		target := b.FarHandle(handle)
		b.Exec("select parley.send($1::uuid, $2, 'later', deliver_at => clock_timestamp() + interval '1 hour')", target, sqltest.Note)
		b.Exec(end, target)
		b.RequireState(handle, "CO")
		b.RequireState(target, "DO")
	}
}

// A session may learn the handle of a target from what it has sent itself, and take that back. Then the target is not there.
func TestTheTargetOfAnUnsentDialogIsUnknownToEachStatement(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Conversation()
	handle := bound(b.Session)
	tx := b.Begin()
	tx.Send(handle, sqltest.Request, "taken back")
	target := tx.FarHandle(handle)
	tx.Rollback()
	for name, c := range map[string]struct {
		statement string
		number    int
	}{
		"SEND":                    {"select parley.send($1::uuid, '//test/Note', 'x')", 8426},
		"SEND of a batch":         {"select parley.send_batch($1::uuid, '//test/Note', array['x', 'y'])", 8426},
		"SEND to several":         {"select parley.send_to_all(array[$1::uuid], '//test/Note', 'x')", 8435},
		"SEND for later":          {"select parley.send($1::uuid, '//test/Note', 'x', deliver_at => now() + interval '1 hour')", 8426},
		"END":                     {"select parley.end_conversation($1::uuid)", 8426},
		"END with an error":       {"select parley.end_conversation($1::uuid, 7, 'no')", 8426},
		"END of many":             {"select parley.end_conversations(array[$1::uuid])", 8426},
		"END with cleanup":        {"select parley.end_conversation($1::uuid, cleanup => true)", 8426},
		"RECEIVE":                 {"select parley.receive('Answering', conversation_handle => $1::uuid)", 8426},
		"MOVE":                    {"select parley.move_conversation($1::uuid, gen_random_uuid())", 8426},
		"TIMER":                   {"select parley.begin_conversation_timer($1::uuid, 60)", 8426},
		"BEGIN in the same group": {"select parley.begin_dialog('//test/Answerer', '//test/Asker', '//test/Work', related_conversation => $1::uuid)", 8426},
	} {
		t.Run(name, func(t *testing.T) { sqltest.Session{T: t, DB: b.DB}.Refuses(c.number, c.statement, target) })
	}
	b.RequireState(handle, "SO")
	b.Send(handle, sqltest.Request, "sent")
	b.Send(target, sqltest.Note, "answer")
	b.End(target)
	b.RequireState(handle, "DI")
}
