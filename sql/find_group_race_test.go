package sql_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/parleytest"
)

// pauseBeforeTheLock makes a session that searches a group stop between the scan, which has found a message, and the lock on its group,
// while the advisory lock 230 is held.
func (b *broker) pauseBeforeTheLock() {
	b.Helper()
	const found = "select m.endpoint_id, m.position, e.group_id, m.xmax into endpoint_id, position, v_group, v_taker"
	const lock = "perform\n      from parley._p_conversation_group as g\n      where g.group_id = v_group"
	definition := value[string](b.session, "select pg_get_functiondef('parley._p_lock_next_group(integer,integer)'::regprocedure)")
	scan := strings.Index(definition, found)
	if scan < 0 {
		b.Fatal("the scan is not found in the function: does it read otherwise now?")
	}
	at := strings.Index(definition[scan:], lock)
	if at < 0 {
		b.Fatal("the lock is not found behind the scan: does it read otherwise now?")
	}
	b.exec(definition[:scan+at] + "perform pg_advisory_xact_lock(230); " + definition[scan+at:])
}

// What the scan has found is asked for again under the lock on its group (spec 3.6): another reader may have received it in between, or
// moved the conversation into a group that is locked.
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
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			// With retention every RECEIVE searches a group first.
			b.exec("select parley.alter_queue('Answering', retention => true)")
			// The group of the first conversation has another one, so that it is there, and free, when the first has left it.
			stays := b.dialog()
			b.send(stays, request, "stays")
			b.bodies("Answering")
			first, held, second := b.dialog(), b.dialog(), b.dialog()
			b.send(first, request, "first")
			b.send(held, request, "held")
			b.send(second, request, "second")
			b.exec(`
				select parley.move_conversation($1::uuid, e.conversation_group_id)
				from parley.conversation_endpoints as e
				where e.conversation_handle = $2`, b.farHandle(stays), b.farHandle(first))
			b.exec("create function public.held() returns uuid language sql as $$ select '" + b.farHandle(held) + "'::uuid $$")
			b.pauseBeforeTheLock()

			gate := b.begin()
			gate.exec("select pg_advisory_xact_lock(230)")
			reader := b.connection()
			pid := value[int](reader, "select pg_backend_pid()")
			got := make(chan []string, 1)
			go func() {
				var bodies []string
				rows, err := reader.db.Query(reader.Context(), "select convert_from(message_body, 'UTF8') from parley.receive('Answering')")
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
			b.waitUntil("select exists (select from pg_locks where pid = $1 and locktype = 'advisory' and not granted)", pid)
			b.exec(c.meanwhile, b.farHandle(first))
			other := b.begin()
			equal(other, "held", `
				select convert_from(message_body, 'UTF8') from parley.receive('Answering', top => 1, conversation_handle => public.held())`)
			gate.rollback()
			if bodies := parleytest.Receive(t, got, "the reader"); len(bodies) != 1 || bodies[0] != c.want {
				t.Errorf("received %q, want %q alone", bodies, c.want)
			}
		})
	}
}
