package receive_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// pauseBeforeTheLock makes a session that searches a group stop between the scan, which has found a message, and the lock on its group,
// while the advisory lock 230 is held.
func pauseBeforeTheLock(b *sqltest.Broker) {
	b.Helper()
	const found = "select m.endpoint_id, m.position, e.group_id, m.xmax, e.is_plain\n      into endpoint_id, position, v_group, v_taker, v_is_plain"
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

// The statements that find and lock groups in one go read what was committed when they began. A message that another reader has received
// since is not given again, nor is a group in which no message is left.
func TestGroupsThatWereEmptiedWhileTheyWereLockedGiveNothing(t *testing.T) {
	t.Parallel()
	const usual = "m.taker operator(pg_catalog.=) '0' or not parley._p_is_kept(m.taker, $1, m.endpoint_id, m.position)"
	for name, c := range map[string]struct {
		function, condition, call string
		emptied                   int
		want                      []string
	}{
		"receive": {
			"_p_lock_first_group", usual, "select message_body from parley.receive('Answering')", 0, []string{"1/0"},
		},
		// It has the first group by then.
		"receive of many": {
			"_p_lock_heads", "m.taker = '0'", "select message_body from parley.receive('Answering', groups => 10)", 1, []string{"0/0", "2/0"},
		},
		"receive of many with top": {
			"_p_lock_heads", "m.taker = '0'", "select message_body from parley.receive('Answering', top => 3, groups => 10)", 1,
			[]string{"0/0", "2/0"},
		},
		"get conversation groups": {"_p_lock_groups_of_lane", "f.taker = '0' or not parley._p_is_kept(f.taker, hint.lane, f.endpoint_id, f.position)", `
			select (array_agg(q.message_body))[1]
			from parley.get_conversation_groups('Answering', 10) as g
			left join parley_queue."Answering" as q on q.conversation_group_id = g
			group by g`, 0, []string{"1/0", "2/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handles := b.Fill(3, 1)
			definition := sqltest.Value[string](b.Session,
				"select pg_get_functiondef(p.oid) from pg_proc as p where p.pronamespace = 'parley'::regnamespace and p.proname = $1", c.function)
			if strings.Count(definition, c.condition) != 1 {
				t.Fatal("the condition is not found in the function: does it read otherwise now?")
			}
			b.Exec(strings.Replace(
				definition, c.condition, "(select pg_catalog.pg_advisory_xact_lock(230)) is not null and ("+c.condition+")", 1,
			))
			gate := b.Begin()
			gate.Exec("select pg_advisory_xact_lock(230)")
			b.Exec("create table public.got (body bytea)")
			w := b.Start(fmt.Sprintf("insert into public.got %s", c.call))
			b.WaitUntil("select exists (select from pg_locks where pid = $1 and locktype = 'advisory' and not granted)", w.Backend)
			other := b.Begin()
			other.Exec("select from parley.receive('Answering', conversation_handle => $1::uuid)", b.FarHandle(handles[c.emptied]))
			other.Commit()
			gate.Rollback()
			w.RequireSuccess()
			got := sqltest.Values[string](b.Session, "select coalesce(convert_from(g.body, 'UTF8'), 'an empty group') as b from public.got as g order by b")
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
