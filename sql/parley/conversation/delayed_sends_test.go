package conversation_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

// sendAt sends a request on a conversation so many seconds from now, and gives its delayed_id.
func sendAt(s sqltest.Session, handle, body string, seconds float64) int64 {
	s.Helper()
	return sqltest.Value[int64](s, `
		select (parley.send($1::uuid, $2, $3, deliver_at => clock_timestamp() + $4 * interval '1 second')).delayed_id`, handle, sqltest.Request, body, seconds)
}

// makeSendsDue lets time pass for what was sent for later.
func makeSendsDue(s sqltest.Session) {
	s.Helper()
	s.Exec(`
		update parley._p_delayed_send as d
		set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'`)
	s.Exec("select parley.fire_timers()")
}

func answered(s sqltest.Session) []string {
	s.Helper()
	return sqltest.Values[string](s, `
		select message_type_name || ' ' || coalesce(parley.body_text(message_body), '') from parley.receive('Answering', top => 100)`)
}

func requireAnswered(s sqltest.Session, want ...string) {
	s.Helper()
	if got := answered(s); !slices.Equal(got, want) {
		s.Errorf("received %q, want %q", got, want)
	}
}

func TestSendForLaterComesWhenDueAndInOrder(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	sendAt(b.Session, handle, "third", 3000)
	sendAt(b.Session, handle, "first", 1000)
	sendAt(b.Session, handle, "second", 2000)
	b.Exec("select parley.send($1::uuid, $2, 'now')", handle, sqltest.Request)
	b.Exec("select parley.fire_timers()")
	requireAnswered(b.Session, sqltest.Request+" now")
	sqltest.Equal(b.Session, 3, "select count(*) from parley.delayed_sends where conversation_handle = $1", handle)
	makeSendsDue(b.Session)
	requireAnswered(b.Session, sqltest.Request+" first", sqltest.Request+" second", sqltest.Request+" third")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_delayed_send")
	b.Refuses(8410, "select parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 60), $1, 'late', deliver_at => clock_timestamp() + interval '1 hour')", sqltest.Request)
	// Messages that are due already are sent at once.
	sqltest.Equal(b.Session, true, "select (parley.send($1::uuid, $2, 'past', deliver_at => clock_timestamp() - interval '1 hour')).delayed_id is null", handle, sqltest.Request)
	requireAnswered(b.Session, sqltest.Request+" past")
}

func TestFirstMessageOfAConversationForLater(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	sendAt(b.Session, handle, "later", 1000)
	requireAnswered(b.Session)
	makeSendsDue(b.Session)
	requireAnswered(b.Session, sqltest.Request+" later")
	b.Exec("select parley.send($1::uuid, $2, 'next')", handle, sqltest.Request)
	requireAnswered(b.Session, sqltest.Request+" next")
}

func TestSendForLaterIsWithdrawnAndRescheduled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	first, second := sendAt(b.Session, handle, "first", 1000), sendAt(b.Session, handle, "second", 2000)
	sendAt(b.Session, handle, "third", 3000)
	sqltest.Equal(b.Session, true, "select parley.withdraw_send($1::uuid, $2)", handle, second)
	sqltest.Equal(b.Session, false, "select parley.withdraw_send($1::uuid, $2)", handle, second)
	sqltest.Equal(b.Session, true, "select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '5000 seconds')", handle, first)
	sqltest.Equal(b.Session, false, "select parley.reschedule_send($1::uuid, $2, null)", b.Dialog(), first)
	b.Refuses(8402, "select parley.reschedule_send($1::uuid, $2, 'infinity')", handle, first)
	b.Refuses(8402, "select parley.send($1::uuid, $2, 'x', deliver_at => 'infinity')", handle, sqltest.Request)
	makeSendsDue(b.Session)
	requireAnswered(b.Session, sqltest.Request+" third", sqltest.Request+" first")
	sqltest.Equal(b.Session, false, "select parley.withdraw_send($1::uuid, $2)", handle, first)
}

// END says nothing before what was sent for later has come, and waits for nobody.
func TestEndComesBehindWhatWasSentForLater(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, sent := range []string{"", "now"} {
		handle := b.Dialog()
		if sent != "" {
			b.Exec("select parley.send($1::uuid, $2, $3)", handle, sqltest.Request, sent)
			requireAnswered(b.Session, sqltest.Request+" "+sent)
		}
		id := sendAt(b.Session, handle, "later", 1000)
		if sent != "" {
			b.Send(b.FarHandle(handle), sqltest.Reply, "unread")
		}
		b.Exec("select parley.end_conversation($1::uuid)", handle)
		// Messages that the side that ended had not received go with its end.
		sqltest.Equal(b.Session, 0, "select count(*) from parley._p_message")
		b.Refuses(8429, "select parley.send($1::uuid, $2, 'more', deliver_at => clock_timestamp() + interval '1 hour')", handle, sqltest.Request)
		b.Exec("select parley.fire_timers()")
		requireAnswered(b.Session)
		sqltest.Equal(b.Session, "DISCONNECTED_OUTBOUND",
			"select state_desc from parley.conversation_endpoints where conversation_handle = $1", handle)
		sqltest.Equal(b.Session, true, "select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '2000 seconds')", handle, id)
		makeSendsDue(b.Session)
		makeSendsDue(b.Session)
		requireAnswered(b.Session, sqltest.Request+" later", sqltest.EndDialog+" ")
		sqltest.Equal(b.Session, 0, "select count(*) from parley._p_delayed_send")
	}
}

func TestEndFollowsWhenWhatWasSentForLaterIsWithdrawn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Exec("select parley.send($1::uuid, $2, 'now')", handle, sqltest.Request)
	id := sendAt(b.Session, handle, "later", 1000)
	b.Exec("select parley.end_conversation($1::uuid)", handle)
	sqltest.Equal(b.Session, true, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	b.Exec("select parley.fire_timers()")
	requireAnswered(b.Session, sqltest.Request+" now", sqltest.EndDialog+" ")
}

func TestWhatWasSentForLaterGoesWithItsConversation(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	for _, end := range []string{
		"select parley.end_conversation($1::uuid, 7, 'broken')",
		"select parley.end_conversation($1::uuid, true)",
	} {
		handle := b.Dialog()
		b.Exec("select parley.send($1::uuid, $2, 'now')", handle, sqltest.Request)
		sendAt(b.Session, handle, "later", 1000)
		b.Exec(end, handle)
		sqltest.Equal(b.Session, 0, "select count(*) from parley._p_delayed_send")
		answered(b.Session)
	}
	// The other side ends it: nothing can be sent any more.
	handle := b.Dialog()
	b.Exec("select parley.send($1::uuid, $2, 'now')", handle, sqltest.Request)
	far := sqltest.Value[string](b.Session, "select conversation_handle::text from parley.receive('Answering')")
	sendAt(b.Session, handle, "later", 1000)
	b.Exec("select parley.end_conversation($1::uuid)", far)
	makeSendsDue(b.Session)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_delayed_send")
}

// A session that sends, withdraws or ends meanwhile is passed by, and nothing is lost or comes twice.
func TestDueSendsPassByWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle, other := b.Dialog(), b.Dialog()
	for _, h := range []string{handle, other} {
		b.Exec("select parley.send($1::uuid, $2, 'now')", h, sqltest.Request)
		answered(b.Session)
	}
	id := sendAt(b.Session, handle, "held", 1000)
	sendAt(b.Session, other, "free", 1000)
	b.Exec(`
		update parley._p_delayed_send as d
		set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'`)
	tx := b.Begin()
	sqltest.Equal(tx, true, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	b.Exec("select parley.fire_timers()")
	requireAnswered(b.Session, sqltest.Request+" free")
	tx.Rollback()
	// A sender does not hold it.
	tx = b.Begin()
	tx.Exec("select parley.send($1::uuid, $2, 'beside')", handle, sqltest.Request)
	makeSendsDue(b.Session)
	requireAnswered(b.Session, sqltest.Request+" held")
	tx.Commit()
	requireAnswered(b.Session, sqltest.Request+" beside")
}

func TestSendForLaterCountsAgainstTheQuota(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 2")
	handle := b.Dialog()
	sendAt(b.Session, handle, "a", 1000)
	sendAt(b.Session, handle, "b", 1000)
	b.Refuses(10928, "select parley.send($1::uuid, $2, 'c', deliver_at => clock_timestamp() + interval '1 hour')", handle, sqltest.Request)
	b.Exec("select parley.send($1::uuid, $2, 'x')", handle, sqltest.Request)
	makeSendsDue(b.Session)
	// One has room; the other waits until there is.
	requireAnswered(b.Session, sqltest.Request+" x", sqltest.Request+" a")
	makeSendsDue(b.Session)
	requireAnswered(b.Session, sqltest.Request+" b")
}

// Large bodies that nobody can receive yet fill the disk as well as many.
func TestSendForLaterCountsItsBytesAgainstTheQuota(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("bytes => 1000")
	handle := b.Dialog()
	const send = "select parley.send($1::uuid, $2, repeat('x', $3), deliver_at => clock_timestamp() + interval '1 hour')"
	b.Exec(send, handle, sqltest.Request, 600)
	b.Exec(send, handle, sqltest.Request, 400)
	b.Refuses(10928, send, handle, sqltest.Request, 1)
}

func TestSendForLaterIsOfThoseWhoMaySend(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	id := sendAt(b.Session, handle, "later", 1000)
	outsider := b.As(b.Role("outsider"))
	outsider.Refuses(229, "select parley.send($1::uuid, $2, 'x', deliver_at => clock_timestamp() + interval '1 hour')", handle, sqltest.Request)
	outsider.Refuses(229, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	outsider.Refuses(229, "select parley.reschedule_send($1::uuid, $2, null)", handle, id)
	sqltest.Equal(outsider, 0, "select count(*) from parley.delayed_sends")
}

// An END whose snapshot is older than what was sent for later does not get in front of it.
func TestEndAtRepeatableReadComesBehindWhatItDoesNotSee(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	id := sendAt(b.Session, handle, "first", 1000)
	sqltest.Equal(b.Session, true, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	old := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	old.Exec("select count(*) from parley.delayed_sends")
	sendAt(b.Session, handle, "unseen", 1000)
	old.Exec("select parley.end_conversation($1::uuid)", handle)
	old.Commit()
	b.Exec("select parley.fire_timers()")
	requireAnswered(b.Session)
	makeSendsDue(b.Session)
	requireAnswered(b.Session, sqltest.Request+" unseen", sqltest.EndDialog+" ")
}

// A message that the end of the other side has overtaken takes no room of the queue.
func TestWhatCanNoLongerBeSentForLaterTakesNoRoom(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.QuotaOf("messages => 1")
	handle, other := b.Dialog(), b.Dialog()
	b.Send(handle, sqltest.Request, "now")
	answered(b.Session)
	id := sendAt(b.Session, handle, "later", 1000)
	b.Refuses(10928, "select parley.send($1::uuid, $2, 'x', deliver_at => clock_timestamp() + interval '1 hour')", other, sqltest.Request)
	b.End(b.FarHandle(handle))
	sqltest.Equal(b.Session, 0, "select delayed_messages from parley.queue_backlogs() where queue_name = 'Answering'")
	sqltest.Equal(b.Session, false, "select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '1 hour')", handle, id)
	sqltest.Equal(b.Session, false, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	sendAt(b.Session, other, "later", 1000)
}

// A side that has ended and waits for what it sent for later is not stuck, unless nobody sends it when it is due.
func TestMessagesForLaterAreExplained(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	open, ended := b.Dialog(), b.Dialog()
	for _, handle := range []string{open, ended} {
		sendAt(b.Session, handle, "later", 1000)
	}
	b.End(ended)
	stuck := "select string_agg(remedy, ' ') from parley.stuck_conversations where conversation_handle = $1"
	for _, handle := range []string{open, ended} {
		sqltest.Equal(b.Session, true, "select ("+stuck+") is null", handle)
		sqltest.Equal(b.Session, true, `
			select bool_or(answer like '%Sent for later (parley.delayed_sends): 1, the first due at%.') and not bool_or(is_finding)
			from parley.explain_conversation($1)`, handle)
		sqltest.Equal(b.Session, true, `
			select bool_or(event = 'message for later' and message_type_name = $2 and body_bytes = 5)
			from parley.trace_conversation($1)`, handle, sqltest.Request)
	}
	b.Exec("update parley._p_delayed_send as d set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'")
	for _, handle := range []string{open, ended} {
		sqltest.Equal(b.Session, "select parley.fire_timers();", stuck, handle)
		sqltest.Equal(b.Session, true, "select bool_or(answer like '%A daemon sends it, or parley.fire_timers.') from parley.explain_conversation($1)", handle)
	}
	b.Exec("select parley.create_queue('jobs', kind => 'SIMPLE'), parley.put('jobs', 'late', deliver_at => now() + interval '1 hour')")
	b.Exec("update parley._p_delayed_message set due_at = now() - interval '1 day'")
	if late := b.RequireFinding(sqltest.Runtime, "timers-late"); !strings.Contains(late.Cause, "(4)") {
		t.Errorf("late are %q", late.Cause)
	}
	b.Exec("select parley.fire_timers()")
	b.RequireNoFinding(sqltest.Runtime, "timers-late")
	sqltest.Equal(b.Session, true, "select ("+stuck+") is null", open)
	requireAnswered(b.Session, sqltest.Request+" later")
	requireAnswered(b.Session, sqltest.Request+" later", sqltest.EndDialog+" ")
}
