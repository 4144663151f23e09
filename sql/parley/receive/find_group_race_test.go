package receive_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// pauseBeforeTheLock makes a session that searches a group stop between the scan, which has found a message, and the lock on its group,
// while the advisory lock 230 is held.
func pauseBeforeTheLock(b *sqltest.Broker) {
	b.Helper()
	const found = "select m.endpoint_id, m.position, e.group_id, m.xmax into endpoint_id, position, v_group, v_taker"
	const lock = "perform from parley._p_conversation_group as g\n      where g.group_id = v_group"
	definition := sqltest.Value[string](b.Session, "select pg_get_functiondef('parley._p_lock_next_group(integer,integer)'::regprocedure)")
	scan := strings.Index(definition, found)
	if scan < 0 {
		b.Fatal("the scan is not found in the function: does it read otherwise now?")
	}
	at := strings.Index(definition[scan:], lock)
	if at < 0 {
		b.Fatal("the lock is not found behind the scan: does it read otherwise now?")
	}
	b.Exec(definition[:scan+at] + "perform pg_advisory_xact_lock(230); " + definition[scan+at:])
}

// The scan's finding is checked again under the lock on its group (spec 3.6): another reader may have received it in between, or moved the
// conversation into a group that is locked.
func TestReceiveAsksAgainUnderTheLockForWhatItHasFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, meanwhile, want string
	}{
		{"received by another", "select parley.receive('Answering', conversation_handle => $1::uuid)", "second"},
		{"moved into a locked group", `
			select parley.move_conversation($1::uuid, (
				select e.conversation_group_id from parley.conversation_endpoints as e where e.conversation_handle = (select public.held())
			))`, "second"},
		{"claimed for a delivery", `
			select 1 from parley.next_delivery('Answering', claim => gen_random_uuid()) as d where d.conversation_handle = $1::uuid`, "second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			// With retention every RECEIVE searches a group first.
			b.Exec("select parley.alter_queue('Answering', retention => true)")
			// The group of the first conversation has another one, so that it is there, and free, when the first has left it.
			stays := b.Dialog()
			b.Send(stays, sqltest.Request, "stays")
			b.Bodies("Answering")
			first, held, second := b.Dialog(), b.Dialog(), b.Dialog()
			b.Send(first, sqltest.Request, "first")
			b.Send(held, sqltest.Request, "held")
			b.Send(second, sqltest.Request, "second")
			b.Exec(`
				select parley.move_conversation($1::uuid, e.conversation_group_id)
				from parley.conversation_endpoints as e
				where e.conversation_handle = $2`, b.FarHandle(stays), b.FarHandle(first))
			b.Exec("create function public.held() returns uuid language sql as $$ select '" + b.FarHandle(held) + "'::uuid $$")
			pauseBeforeTheLock(b)

			gate := b.Begin()
			gate.Exec("select pg_advisory_xact_lock(230)")
			reader := b.Connection()
			pid := sqltest.Value[int](reader, "select pg_backend_pid()")
			got := make(chan []string, 1)
			go func() {
				var bodies []string
				rows, err := reader.DB.Query(reader.Context(), "select convert_from(message_body, 'UTF8') from parley.receive('Answering')")
				if err == nil {
					for rows.Next() {
						var body string
						if err = rows.Scan(&body); err == nil {
							bodies = append(bodies, body)
						}
					}
					err = rows.Err()
				}
				if err != nil {
					bodies = append(bodies, err.Error())
				}
				got <- bodies
			}()
			b.WaitUntil("select exists (select from pg_locks where pid = $1 and locktype = 'advisory' and not granted)", pid)
			b.Exec(c.meanwhile, b.FarHandle(first))
			other := b.Begin()
			sqltest.Equal(other, "held", `
				select convert_from(message_body, 'UTF8') from parley.receive('Answering', top => 1, conversation_handle => public.held())`)
			gate.Rollback()
			if bodies := parleytest.Receive(t, got, "the reader"); len(bodies) != 1 || bodies[0] != c.want {
				t.Errorf("received %q, want %q alone", bodies, c.want)
			}
		})
	}
}
