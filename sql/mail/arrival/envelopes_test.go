package arrival_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A daemon says neither who submitted a message by SQL nor what became of one.
func TestEnvelopesSayNeitherSubmitterNorState(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const row = "select to_jsonb(m) - '{message_id, network_message_id, received_at, expires_at}'::text[] from parley_mail._p_message as m where m.message_id = $1"
	const accept = `select a.id from parley_mail._p_accept(array[$1::jsonb], array['x'::bytea]) as a (id)`
	const envelope = `{"sender": "x@example.com", "recipients": ["ann@example.org"], "source": "SMTP"`
	plain := sqltest.Value[int64](b.Session, accept, envelope+"}")
	forged := sqltest.Value[int64](b.Session, accept, envelope+`, "submitted_by": 1, "not_before": "2030-01-01Z", "on_status": "status", "tag": "x", "body": "\\x61",
		"body_message_id": 1, "crash_count": 3, "delay_reported_at": "2030-01-01Z", "is_resubmitted": true, "resubmissions": 1, "reports": 1, "reported_at": "2030-01-01Z"}`)
	sqltest.Equal(b.Session, sqltest.Value[string](b.Session, "select ("+row+")::text", plain), "select ("+row+")::text", forged)
	// Of a batch each has its own, also behind one that was accepted before.
	keyed := envelope + `, "priority": 2, "idempotency_key": "k"}`
	sqltest.Value[int64](b.Session, accept, keyed)
	b.Exec("select parley_mail._p_accept(array[$1, $2, $3]::jsonb[], array['x', 'y', 'z']::bytea[])", keyed, envelope+"}", envelope+`, "priority": 0}`)
	sqltest.Equal(b.Session, "1 1 2 1 0", "select string_agg(priority::text, ' ' order by message_id) from parley_mail._p_message")
	sqltest.Equal(b.Session, "10 1, 5 3, 1 1", `
		select string_agg(format('%s %s', q.priority, q.messages), ', ' order by q.priority desc)
		from (select priority, count(*) as messages from parley.peek_messages('parley_mail_submission', 100) group by priority) as q`)
}
