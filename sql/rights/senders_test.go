package rights_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A role that has lost the right to send sends nothing more, whenever the transaction began that remembered the right.
func TestRevokedRightIsNotRememberedByAFirstSendUnderWay(t *testing.T) {
	t.Parallel()
	begin := "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')"
	dialog := "select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work')"
	send := "select parley.send($1, '//test/Request', 'x'::text)"
	pooled := "select parley.get_conversation('//test/Asker', '//test/Answerer', '//test/Work')"
	revoke := "select parley.revoke('RECEIVE', 'queue', 'Asking', $1)"
	for name, c := range map[string]struct{ first, second, isolation, takeAway string }{
		"begin and send":             {begin, "", "read committed", revoke},
		"begin":                      {dialog, send, "read committed", revoke},
		"pool":                       {pooled, send, "read committed", revoke},
		"begin and send, snapshot":   {begin, "", "repeatable read", revoke},
		"begin, snapshot":            {dialog, send, "repeatable read", revoke},
		"service to another queue":   {begin, "", "read committed", "select parley.alter_service('//test/Asker', queue => 'Answering') where $1::text <> ''"},
		"conversations begun before": {"", send, "read committed", revoke},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			role := b.Role("sender")
			b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", role)
			b.Exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", role)
			sender := b.As(role)
			var handle string
			if c.first == "" {
				handle = sqltest.Value[string](sender, dialog)
			}
			sender.Exec("begin isolation level " + c.isolation)
			sender.Exec("select 1")
			done := make(chan error, 1)
			takeAway := func() {
				_, err := b.DB.Exec(b.Context(), c.takeAway, role)
				done <- err
			}
			if c.isolation != "read committed" {
				takeAway()
			}
			if c.first != "" {
				handle = sqltest.Value[string](sender, c.first)
			}
			if c.second != "" {
				sender.Exec(c.second, handle)
			}
			if c.isolation == "read committed" {
				go takeAway()
				b.WaitUntilWaiting(strings.TrimPrefix(c.takeAway, "select ")[:12], done)
			}
			sender.Exec("commit")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			sender.Refuses(229, send, handle)
		})
	}
}

// While a right is taken away, and waits for a first send that is under way, others go on.
func TestFirstSendsGoOnWhileARightIsTakenAway(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("sender")
	first, other := b.Connection(), b.Connection()
	first.Exec("begin")
	begin := "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')"
	first.Exec(begin)
	done := make(chan error, 1)
	go func() {
		_, err := b.DB.Exec(b.Context(), "select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", role)
		done <- err
	}()
	b.WaitUntilWaiting("parley.revoke", done)
	other.Exec("set statement_timeout = '5s'")
	handle := sqltest.Value[string](other, begin)
	other.Exec("select parley.send($1, '//test/Request', 'x'::text)", handle)
	select {
	case err := <-done:
		t.Fatalf("the right is taken away while a first send is under way: %v", err)
	default:
	}
	first.Exec("commit")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Messages that are sent to a service while it moves to another queue are not for the readers of the queue that it has left.
func TestFirstSendUnderWayFollowsAServiceThatMoves(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"short", "long"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			b.Exec("select parley.create_queue('Elsewhere')")
			if way == "long" {
				b.Exec("select parley.alter_queue('Asking', retention => true)")
			}
			sender := b.Connection()
			sender.Exec("begin")
			handle := sqltest.Value[string](sender, "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')")
			done := make(chan error, 1)
			go func() {
				_, err := b.DB.Exec(b.Context(), "select parley.alter_service('//test/Answerer', queue => 'Elsewhere')")
				done <- err
			}()
			b.WaitUntilWaiting("alter_service", done)
			sender.Exec("commit")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			sender.Exec("select parley.send($1, '//test/Request', 'x'::text)", handle)
			sqltest.Equal(b.Session, 0, "select count(*)::integer from parley.receive('Answering', top => 10)")
			sqltest.Equal(b.Session, 2, "select count(*)::integer from parley.receive('Elsewhere', top => 10)")
		})
	}
}

// The hash of a key is no secret, and a key is soon found whose hash is that of a key of another queue. The id of a key names its queue, too.
func TestKeyOfAnotherQueueHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	sqltest.Equal(b.Session, 0, `
		select count(*)
		from unnest(array[1, 2, 65536, 2147483646, 2147483647]) as q
		cross join (select 'key ' || n from generate_series(1, 2000) as n union all values (null), ('')) as k (key)
		cross join parley._p_key_id(q, k.key) as id
		where (-4611686018427387904 - id) >> 31 <> q or id >= 0`)
	b.Exec("select parley.create_queue('other', kind => 'simple')")
	holder := b.Begin()
	holder.Exec("select parley.put('other', 'x'::text, key => 'k')")
	b.Exec("select parley.put('other', 'x'::text, key => 'k')")
	b.Put("first")
	b.PutKeyed("k:1", "k:2")
	b.RequireTaken(10, "first", "k:1", "k:2")
	b.PutKeyed("k:3")
	again := b.Connection()
	again.Exec("begin")
	again.RequireTaken(1, "k:3")
	again.Exec("rollback")
	b.RequireTaken(1, "k:3")
}
