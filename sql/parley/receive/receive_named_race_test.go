package receive_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// RECEIVE with a time-out waits without a lock, and locks the group when a message is there. It asks again under the lock: a group that was
// claimed for a delivery meanwhile, or left by the conversation, it has locked for nothing. It does not wait for the claim, whose holder
// needs the lock to record, nor for the other group. It returns, so that its caller commits.
func TestReceiveThatHasLockedAGroupForNothingReturns(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(b *sqltest.Broker, handle string){
		"claimed": func(b *sqltest.Broker, handle string) {
			b.Helper()
			sqltest.Equal(b.Session, handle, `
				select d.conversation_handle::text
				from parley.next_delivery('Answering', claim => gen_random_uuid(), lease_ms => 3600000) as d`)
		},
		"moved into a group that is held": func(b *sqltest.Broker, handle string) {
			b.Helper()
			other := b.Dialog()
			b.Send(other, sqltest.Request, "other")
			group := b.GroupOf(b.FarHandle(other))
			b.Exec("select parley.move_conversation($1::uuid, $2::uuid)", handle, group)
			holder := b.Begin()
			holder.Exec("select from parley.receive('Answering', top => 1, conversation_handle => $1::uuid)", b.FarHandle(other))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			dialog := b.Dialog()
			b.Send(dialog, sqltest.Request, "wanted")
			handle := b.FarHandle(dialog)
			// So that the group stays when the conversation leaves it.
			b.Exec("select parley.begin_dialog('//test/Answerer', '//test/Asker', '//test/Work', related_conversation => $1)", handle)
			b.Exec("create table public.got (body bytea); create table public.kept (number integer)")
			gate := b.PauseBefore(
				"_p_poll_named", "perform from parley._p_conversation_group as g where g.group_id = v_group_id for update skip locked",
			)
			// One that has written goes on waiting, where nothing tells it to return: the lock gives it no number that it had not.
			reader := b.Begin()
			reader.Exec("insert into public.kept values (1)")
			w := b.StartIn(reader, `
				insert into public.got
				select r.message_body from parley.receive('Answering', conversation_handle => $1::uuid, timeout => -1) as r`, handle)
			b.WaitUntil("select exists (select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock')", w.Backend)
			meanwhile(b, handle)
			gate.Rollback()
			w.RequireSuccess()
			reader.Commit()
			sqltest.Equal(b.Session, 0, "select count(*) from public.got")
			sqltest.Equal(b.Session, 1, "select count(*) from parley.queue_contents('Answering') as q where q.conversation_handle = $1", handle)
		})
	}
}
