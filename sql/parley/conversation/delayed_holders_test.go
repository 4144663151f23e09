package conversation_test

import (
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/sqltest"
)

// laterOf counts what a side has sent for later, EndDialog included.
const laterOf = `
	select count(*) from parley._p_delayed_send as d
	join parley._p_endpoint as e using (endpoint_id)
	where e.conversation_handle = $1::uuid`

// EndDialog that is due waits for nobody: it is put off while another session has a side that END locks.
func TestDelayedEndIsPutOffWhileASideIsHeld(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]string{
		"its own, by a sender": "select from parley._p_endpoint as e where e.conversation_handle = $1::uuid for key share",
		"the other one": `
			select from parley._p_endpoint as f
			join parley._p_endpoint as e on e.far_endpoint_id = f.endpoint_id
			where e.conversation_handle = $1::uuid
			for no key update of f`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewWorld(t)
			handle, _ := b.Conversation()
			sendAt(b.Session, handle, "later", 1000)
			b.End(handle)
			holder := b.Begin()
			holder.Exec(lock, handle)
			asked := sqltest.Value[time.Time](b.Session, "select clock_timestamp()")
			makeSendsDue(b.Session)
			requireAnswered(b.Session, sqltest.Request+" later")
			sqltest.Equal(b.Session, 1, laterOf, handle)
			sqltest.Equal(b.Session, true, "select bool_and(try_at >= $1::timestamptz + interval '1 second') from parley._p_delayed_send", asked)
			holder.Rollback()
			makeSendsDue(b.Session)
			requireAnswered(b.Session, sqltest.EndDialog+" ")
			sqltest.Equal(b.Session, 0, laterOf, handle)
		})
	}
}

// A message that is not due yet is not tried sooner because the rest of its conversation was held.
func TestWhatIsHeldIsPutOffAloneWhereItIsDue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle, _ := b.Conversation()
	sendAt(b.Session, handle, "due", 1000)
	b.Exec("update parley._p_delayed_send set due_at = due_at - interval '1 day', try_at = due_at - interval '1 day'")
	sendAt(b.Session, handle, "not due", 1000)
	holder := b.Begin()
	holder.Exec("select from parley._p_endpoint as e where e.conversation_handle = $1::uuid for no key update", handle)
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 2, laterOf, handle)
	sqltest.Equal(b.Session, "due, not due as it was sent", `
		select string_agg(
			convert_from(d.body, 'UTF8') || case when d.try_at = d.due_at then ' as it was sent' else '' end, ', ' order by d.due_at
		)
		from parley._p_delayed_send as d`)
}

// EndDialog is nothing that anybody has sent: it goes with its conversation, and not by itself.
func TestEndThatWaitsIsNotWithdrawn(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle, _ := b.Conversation()
	sendAt(b.Session, handle, "later", 1000)
	b.End(handle)
	id := sqltest.Value[int64](b.Session, "select delayed_id from parley.delayed_sends where message_type_name = $1", sqltest.EndDialog)
	sqltest.Equal(b.Session, false, "select parley.withdraw_send($1::uuid, $2)", handle, id)
	sqltest.Equal(b.Session, false, "select parley.reschedule_send($1::uuid, $2, null)", handle, id)
	// A message that stays is not put forward either because another one was withdrawn.
	second := sqltest.Value[int64](b.Session, "select delayed_id from parley.delayed_sends where message_type_name = $1", sqltest.Request)
	other, _ := b.Conversation()
	kept, gone := sendAt(b.Session, other, "kept", 2000), sendAt(b.Session, other, "gone", 1000)
	sqltest.Equal(b.Session, true, "select parley.withdraw_send($1::uuid, $2)", other, gone)
	sqltest.Equal(b.Session, true, "select due_at > now() + interval '1500 seconds' from parley.delayed_sends where delayed_id = $1", kept)
	sqltest.Equal(b.Session, true, "select parley.withdraw_send($1::uuid, $2)", handle, second)
}

func TestFireTimersSendsNoMoreThanItIsAskedFor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	first, _ := b.Conversation()
	second, _ := b.Conversation()
	for _, handle := range []string{first, second} {
		sendAt(b.Session, handle, "1", 1000)
		sendAt(b.Session, handle, "2", 2000)
	}
	b.Exec("update parley._p_delayed_send as d set due_at = d.due_at - interval '1 day', try_at = d.due_at - interval '1 day'")
	for left := 3; left >= 0; left-- {
		b.Exec("select parley.fire_timers(1)")
		sqltest.Equal(b.Session, left, "select count(*) from parley._p_delayed_send")
	}
}

func TestWhatIsSentForLaterIsScannedForNoLaterThanItIsDue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle, _ := b.Conversation()
	const next = "select (extract(epoch from clock_timestamp() + interval '1 day') * 1000000)::bigint"
	const isInTime = `
		select (select last_value from parley._p_next_due_send) <= extract(epoch from clock_timestamp() + interval '1 hour') * 1000000`
	late := sqltest.Value[int64](b.Session, next)
	b.Exec("select setval('parley._p_next_due_send', $1)", late)
	id := sendAt(b.Session, handle, "later", 1000)
	sqltest.Equal(b.Session, true, isInTime)
	for _, statement := range []string{
		"select parley.reschedule_send($1::uuid, $2, clock_timestamp() + interval '1000 seconds')",
		"select parley.end_conversation($1::uuid) where $2 > 0",
		"select parley.withdraw_send($1::uuid, $2)",
	} {
		b.Exec("select setval('parley._p_next_due_send', $1)", late)
		b.Exec(statement, handle, id)
		if !sqltest.Value[bool](b.Session, isInTime) {
			t.Errorf("%s: the next scan is too late", statement)
		}
	}
}

func TestCopyOfWhatWasSentForLaterIsKeptWhenItIsSent(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.alter_queue('Asking', retention => true)")
	const copies = `select count(*) from parley_queue."Asking" where status = 3 and parley.body_text(message_body) like 'later%'`
	open, _ := b.Conversation()
	sendAt(b.Session, open, "later", 1000)
	sqltest.Equal(b.Session, 0, copies)
	makeSendsDue(b.Session)
	sqltest.Equal(b.Session, 1, copies)
	// A side that has ended keeps none: nobody would ever remove it.
	ended, _ := b.Conversation()
	sendAt(b.Session, ended, "later, and ended", 1000)
	b.End(ended)
	makeSendsDue(b.Session)
	sqltest.Equal(b.Session, 1, "select count(distinct endpoint_id) from parley._p_retained")
}
