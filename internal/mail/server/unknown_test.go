package server_test

import "testing"

// A message that may have been delivered is neither sent again nor given up before somebody has decided, where that is wanted.
func TestMessageWithoutAnAnswerIsHeldWhereTheConnectorSaysSo(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.alter_object('send connector', 'outbound', '{"unknown_outcomes": "HOLD"}')`)
	h.start()
	h.exec(`select parley_mail.send('ann@example.org', array['mute@c.example', 'x@c.example'], subject => 'hello', text => 'hello')`)
	held := func() bool {
		return h.text(`select coalesce(min(concat_ws(', ', m.status, m.reason, left(q.last_error, 43))), '')
			from parley_mail.messages as m join parley_mail.queues as q using (queue)`) ==
			"SUSPENDED, unknown outcome, 4.4.2 the message was sent and not answered"
	}
	h.await("the message", held)
	if got := h.text(`select string_agg(concat_ws(' ', event_id, recipient_count, server_ip), ', ') from parley_mail.tracking where source = 'SMTP'`); got !=
		"UNKNOWN 2 127.0.0.1" {
		t.Errorf("tracked: %s", got)
	}
	h.exec(`select parley_mail.resume_messages('{"status": "SUSPENDED"}')`)
	h.await("it again", func() bool { return len(h.relayed()) == 2 && held() })
}
