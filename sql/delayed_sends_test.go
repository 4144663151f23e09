package sql_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// sendAt sends a request on a conversation so many seconds from now, and gives its delayed_id.
func (s session) sendAt(handle, body string, seconds float64) int64 {
	s.Helper()
	return value[int64](s, `
		select parley.send_at($1::uuid, $2, $3, clock_timestamp() + $4 * interval '1 second')`, handle, request, body, seconds)
}

// makeSendsDue lets time pass for what was sent for later.
func (s session) makeSendsDue() {
	s.Helper()
	s.exec(`
		update parley._p_delayed_send as d
		set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'`)
	s.exec("select parley.fire_timers()")
}

func (s session) answered() []string {
	s.Helper()
	return values[string](s, `
		select message_type_name || ' ' || coalesce(parley.body_text(message_body), '') from parley.receive('Answering', top => 100)`)
}

func (s session) requireAnswered(want ...string) {
	s.Helper()
	if got := s.answered(); !slices.Equal(got, want) {
		s.Errorf("received %q, want %q", got, want)
	}
}

func TestSendForLaterComesWhenDueAndInOrder(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.sendAt(handle, "third", 3000)
	b.sendAt(handle, "first", 1000)
	b.sendAt(handle, "second", 2000)
	b.exec("select parley.send($1::uuid, $2, 'now')", handle, request)
	b.exec("select parley.fire_timers()")
	b.requireAnswered(request + " now")
	equal(b.session, 3, "select count(*) from parley.delayed_sends where conversation_handle = $1", handle)
	b.makeSendsDue()
	b.requireAnswered(request+" first", request+" second", request+" third")
	equal(b.session, 0, "select count(*) from parley._p_delayed_send")
	b.refuses(8410, "select parley.send_at(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 60), $1, 'late', clock_timestamp() + interval '1 hour')", request)
	// What is due already is sent at once.
	equal(b.session, true, "select parley.send_at($1::uuid, $2, 'past', clock_timestamp() - interval '1 hour') is null", handle, request)
	b.requireAnswered(request + " past")
}

func TestFirstMessageOfAConversationForLater(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.sendAt(handle, "later", 1000)
	b.requireAnswered()
	b.makeSendsDue()
	b.requireAnswered(request + " later")
	b.exec("select parley.send($1::uuid, $2, 'next')", handle, request)
	b.requireAnswered(request + " next")
}

func TestSendForLaterIsWithdrawnAndRescheduled(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	first, second := b.sendAt(handle, "first", 1000), b.sendAt(handle, "second", 2000)
	b.sendAt(handle, "third", 3000)
	equal(b.session, true, "select parley.withdraw_send($1::uuid, $2)", handle, second)
	equal(b.session, false, "select parley.withdraw_send($1::uuid, $2)", handle, second)
	equal(b.session, true, "select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '5000 seconds')", handle, first)
	equal(b.session, false, "select parley.reschedule_send($1::uuid, $2, null)", b.dialog(), first)
	b.refuses(8402, "select parley.reschedule_send($1::uuid, $2, 'infinity')", handle, first)
	b.refuses(8402, "select parley.send_at($1::uuid, $2, 'x', 'infinity')", handle, request)
	b.makeSendsDue()
	b.requireAnswered(request+" third", request+" first")
	equal(b.session, false, "select parley.withdraw_send($1::uuid, $2)", handle, first)
}

// END says nothing before what was sent for later has come, and waits for nobody.
func TestEndComesBehindWhatWasSentForLater(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, sent := range []string{"", "now"} {
		handle := b.dialog()
		if sent != "" {
			b.exec("select parley.send($1::uuid, $2, $3)", handle, request, sent)
			b.requireAnswered(request + " " + sent)
		}
		id := b.sendAt(handle, "later", 1000)
		if sent != "" {
			b.send(b.farHandle(handle), reply, "unread")
		}
		b.exec("select parley.end_conversation($1::uuid)", handle)
		// What the side that ended had not received goes with its end.
		equal(b.session, 0, "select count(*) from parley._p_message")
		b.refuses(8429, "select parley.send_at($1::uuid, $2, 'more', clock_timestamp() + interval '1 hour')", handle, request)
		b.exec("select parley.fire_timers()")
		b.requireAnswered()
		equal(b.session, "DISCONNECTED_OUTBOUND",
			"select state_desc from parley.conversation_endpoints where conversation_handle = $1", handle)
		equal(b.session, true, "select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '2000 seconds')", handle, id)
		b.makeSendsDue()
		b.makeSendsDue()
		b.requireAnswered(request+" later", endDialog+" ")
		equal(b.session, 0, "select count(*) from parley._p_delayed_send")
	}
}

func TestEndFollowsWhenWhatWasSentForLaterIsWithdrawn(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	b.exec("select parley.send($1::uuid, $2, 'now')", handle, request)
	id := b.sendAt(handle, "later", 1000)
	b.exec("select parley.end_conversation($1::uuid)", handle)
	equal(b.session, true, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	b.exec("select parley.fire_timers()")
	b.requireAnswered(request+" now", endDialog+" ")
}

func TestWhatWasSentForLaterGoesWithItsConversation(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	for _, end := range []string{
		"select parley.end_conversation($1::uuid, 7, 'broken')",
		"select parley.end_conversation($1::uuid, true)",
	} {
		handle := b.dialog()
		b.exec("select parley.send($1::uuid, $2, 'now')", handle, request)
		b.sendAt(handle, "later", 1000)
		b.exec(end, handle)
		equal(b.session, 0, "select count(*) from parley._p_delayed_send")
		b.answered()
	}
	// The other side ends it: nothing can be sent any more.
	handle := b.dialog()
	b.exec("select parley.send($1::uuid, $2, 'now')", handle, request)
	far := value[string](b.session, "select conversation_handle::text from parley.receive('Answering')")
	b.sendAt(handle, "later", 1000)
	b.exec("select parley.end_conversation($1::uuid)", far)
	b.makeSendsDue()
	equal(b.session, 0, "select count(*) from parley._p_delayed_send")
}

// Who sends, withdraws or ends meanwhile is passed by, and nothing is lost or comes twice.
func TestDueSendsPassByWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle, other := b.dialog(), b.dialog()
	for _, h := range []string{handle, other} {
		b.exec("select parley.send($1::uuid, $2, 'now')", h, request)
		b.answered()
	}
	id := b.sendAt(handle, "held", 1000)
	b.sendAt(other, "free", 1000)
	b.exec(`
		update parley._p_delayed_send as d
		set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'`)
	tx := b.begin()
	equal(tx, true, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	b.exec("select parley.fire_timers()")
	b.requireAnswered(request + " free")
	tx.rollback()
	// A sender does not hold it.
	tx = b.begin()
	tx.exec("select parley.send($1::uuid, $2, 'beside')", handle, request)
	b.makeSendsDue()
	b.requireAnswered(request + " held")
	tx.commit()
	b.requireAnswered(request + " beside")
}

func TestSendForLaterCountsAgainstTheQuota(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("messages => 2")
	handle := b.dialog()
	b.sendAt(handle, "a", 1000)
	b.sendAt(handle, "b", 1000)
	b.refuses(10928, "select parley.send_at($1::uuid, $2, 'c', clock_timestamp() + interval '1 hour')", handle, request)
	b.exec("select parley.send($1::uuid, $2, 'x')", handle, request)
	b.makeSendsDue()
	// One has room; the other waits until there is.
	b.requireAnswered(request+" x", request+" a")
	b.makeSendsDue()
	b.requireAnswered(request + " b")
}

// Large bodies that nobody can receive yet fill the disk as well as many.
func TestSendForLaterCountsItsBytesAgainstTheQuota(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("bytes => 1000")
	handle := b.dialog()
	const send = "select parley.send_at($1::uuid, $2, repeat('x', $3), clock_timestamp() + interval '1 hour')"
	b.exec(send, handle, request, 600)
	b.exec(send, handle, request, 400)
	b.refuses(10928, send, handle, request, 1)
}

func TestSendForLaterIsOfThoseWhoMaySend(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	id := b.sendAt(handle, "later", 1000)
	outsider := b.as(b.role("outsider"))
	outsider.refuses(229, "select parley.send_at($1::uuid, $2, 'x', clock_timestamp() + interval '1 hour')", handle, request)
	outsider.refuses(229, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	outsider.refuses(229, "select parley.reschedule_send($1::uuid, $2, null)", handle, id)
	equal(outsider, 0, "select count(*) from parley.delayed_sends")
}

// An END whose snapshot is older than what was sent for later does not get in front of it.
func TestEndAtRepeatableReadComesBehindWhatItDoesNotSee(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	handle := b.dialog()
	id := b.sendAt(handle, "first", 1000)
	equal(b.session, true, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	old := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.exec("select count(*) from parley.delayed_sends")
	b.sendAt(handle, "unseen", 1000)
	old.exec("select parley.end_conversation($1::uuid)", handle)
	old.commit()
	b.exec("select parley.fire_timers()")
	b.requireAnswered()
	b.makeSendsDue()
	b.requireAnswered(request+" unseen", endDialog+" ")
}

// What the end of the other side has overtaken takes no room of the queue.
func TestWhatCanNoLongerBeSentForLaterTakesNoRoom(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.quota("messages => 1")
	handle, other := b.dialog(), b.dialog()
	b.send(handle, request, "now")
	b.answered()
	id := b.sendAt(handle, "later", 1000)
	b.refuses(10928, "select parley.send_at($1::uuid, $2, 'x', clock_timestamp() + interval '1 hour')", other, request)
	b.end(b.farHandle(handle))
	equal(b.session, 0, "select delayed_messages from parley.queue_backlogs() where queue_name = 'Answering'")
	equal(b.session, false, "select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '1 hour')", handle, id)
	equal(b.session, false, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	b.sendAt(other, "later", 1000)
}

// A side that has ended and waits for what it sent for later is not stuck, unless nobody sends it when it is due.
func TestMessagesForLaterAreExplained(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	open, ended := b.dialog(), b.dialog()
	for _, handle := range []string{open, ended} {
		b.sendAt(handle, "later", 1000)
	}
	b.end(ended)
	stuck := "select string_agg(remedy, ' ') from parley.stuck_conversations where conversation_handle = $1"
	for _, handle := range []string{open, ended} {
		equal(b.session, true, "select ("+stuck+") is null", handle)
		equal(b.session, true, `
			select bool_or(answer like '%Sent for later (parley.delayed_sends): 1, the first due at%.') and not bool_or(is_finding)
			from parley.explain_conversation($1)`, handle)
		equal(b.session, true, `
			select bool_or(event = 'message for later' and message_type_name = $2 and body_bytes = 5)
			from parley.trace_conversation($1)`, handle, request)
	}
	b.exec("update parley._p_delayed_send as d set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'")
	for _, handle := range []string{open, ended} {
		equal(b.session, "select parley.fire_timers();", stuck, handle)
		equal(b.session, true, "select bool_or(answer like '%A daemon sends it, or parley.fire_timers.') from parley.explain_conversation($1)", handle)
	}
	b.exec("select parley.create_queue('jobs', kind => 'SIMPLE'), parley.put('jobs', 'late', deliver_at => now() + interval '1 hour')")
	b.exec("update parley._p_delayed_message set due_at = now() - interval '1 day'")
	if late := b.requireFinding(runtime, "timers-late"); !strings.Contains(late.Cause, "(4)") {
		t.Errorf("late are %q", late.Cause)
	}
	b.exec("select parley.fire_timers()")
	b.requireNoFinding(runtime, "timers-late")
	equal(b.session, true, "select ("+stuck+") is null", open)
	b.requireAnswered(request + " later")
	b.requireAnswered(request+" later", endDialog+" ")
}
