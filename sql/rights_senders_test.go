package sql_test

import (
	"strings"
	"testing"
)

// Whoever has lost the right to send sends nothing more, whenever the transaction began that remembered the right.
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
			b := newWorld(t)
			role := b.role("sender")
			b.exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", role)
			b.exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", role)
			sender := b.as(role)
			var handle string
			if c.first == "" {
				handle = value[string](sender, dialog)
			}
			sender.exec("begin isolation level " + c.isolation)
			sender.exec("select 1")
			done := make(chan error, 1)
			takeAway := func() {
				_, err := b.db.Exec(b.Context(), c.takeAway, role)
				done <- err
			}
			if c.isolation != "read committed" {
				takeAway()
			}
			if c.first != "" {
				handle = value[string](sender, c.first)
			}
			if c.second != "" {
				sender.exec(c.second, handle)
			}
			if c.isolation == "read committed" {
				go takeAway()
				b.waitUntilWaiting(strings.TrimPrefix(c.takeAway, "select ")[:12], done)
			}
			sender.exec("commit")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			sender.refuses(229, send, handle)
		})
	}
}

// While a right is taken away, and waits for a first send that is under way, others go on.
func TestFirstSendsGoOnWhileARightIsTakenAway(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	role := b.role("sender")
	first, other := b.connection(), b.connection()
	first.exec("begin")
	begin := "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')"
	first.exec(begin)
	done := make(chan error, 1)
	go func() {
		_, err := b.db.Exec(b.Context(), "select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", role)
		done <- err
	}()
	b.waitUntilWaiting("parley.revoke", done)
	other.exec("set statement_timeout = '5s'")
	handle := value[string](other, begin)
	other.exec("select parley.send($1, '//test/Request', 'x'::text)", handle)
	select {
	case err := <-done:
		t.Fatalf("the right is taken away while a first send is under way: %v", err)
	default:
	}
	first.exec("commit")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What is sent to a service while it moves to another queue is not for the readers of the queue that it has left.
func TestFirstSendUnderWayFollowsAServiceThatMoves(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"short", "long"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			b := newWorld(t)
			b.exec("select parley.create_queue('Elsewhere')")
			if way == "long" {
				b.exec("select parley.alter_queue('Asking', retention => true)")
			}
			sender := b.connection()
			sender.exec("begin")
			handle := value[string](sender, "select parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Request', 'x', '//test/Work')")
			done := make(chan error, 1)
			go func() {
				_, err := b.db.Exec(b.Context(), "select parley.alter_service('//test/Answerer', queue => 'Elsewhere')")
				done <- err
			}()
			b.waitUntilWaiting("alter_service", done)
			sender.exec("commit")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			sender.exec("select parley.send($1, '//test/Request', 'x'::text)", handle)
			equal(b.session, 0, "select count(*)::integer from parley.receive('Answering', top => 10)")
			equal(b.session, 2, "select count(*)::integer from parley.receive('Elsewhere', top => 10)")
		})
	}
}

// The hash of a key is no secret, and a key is soon found whose hash is that of a key of another queue.
func TestKeyOfAnotherQueueHoldsNothingUp(t *testing.T) {
	t.Parallel()
	b := newJobs(t)
	b.exec("select parley.create_queue('other', kind => 'simple')")
	b.exec("select parley.put('other', 'x'::text, key => 'made')")
	b.put("first")
	b.putKeyed("k:1", "k:2")
	b.exec("update parley._p_message set endpoint_id = (select endpoint_id from parley._p_message where message_key = 'k' limit 1) where message_key = 'made'")
	b.requireTaken(10, "first", "k:1", "k:2")
	b.putKeyed("k:3")
	again := b.connection()
	again.exec("begin")
	again.requireTaken(1, "k:3")
	again.exec("rollback")
	b.requireTaken(1, "k:3")
}
