package activation_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const (
	refusal = "select concat_ws(' ', attempts, is_set_aside) from parley.fail_message_delivery('jobs', $1, "
	waited  = "update parley._p_message_wait set retry_at = now() - interval '1 second'"
	failing = `
		select concat_ws(' ', error, failures, attempts, losses, round(extract(epoch from retry_at - now()) / 3600), answer) from parley.failing_messages`
)

// A web address is a worker like any other: its refusals wait by the policy, and count with the failures of the rest.
func TestRefusedMessageWaitsByTheRetryPolicyOfItsQueue(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, ", max_attempts => 1, first_retry_ms => 1, longest_retry_ms => 1")
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', factor => 2, longest => '24 hours', jitter => 0, attempts => 3)")
	b.PutKeyed("x:1", "x:2")
	b.Put("a")
	ids := requireDelivered(b.Session, 1, "x:1")
	sqltest.Equal(b.Session, "1 f", refusal+"'answered 500', answer => 'no')", ids)
	sqltest.Equal(b.Session, "answered 500 1 1 0 1 no", failing)
	requireDelivered(b.Session, 5, "a")
	b.RequireTaken(5, "a")
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') between 3500 and 3600")
	b.Exec(waited)
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') = 0")

	// A worker that takes it beside the web address goes on counting, and the other way round.
	tx := b.Begin()
	tx.RequireTaken(1, "x:1")
	tx.Rollback()
	sqltest.Equal(b.Session, true, "select not is_set_aside from parley.retry('jobs', $1, 'refused')", ids[0])
	sqltest.Equal(b.Session, "refused 1 2 0 2", failing)
	b.Exec(waited)
	requireDelivered(b.Session, 1, "x:1")
	sqltest.Equal(b.Session, 3, "select attempt from parley.next_message_delivery('jobs')")

	// A receiver that is not there counts as no attempt, and has it wait longer.
	sqltest.Equal(b.Session, "1 f", refusal+"'not there', is_attempt => false)", ids)
	sqltest.Equal(b.Session, "not there 2 2 0 2", failing)
	b.Exec(waited)
	sqltest.Equal(b.Session, "2 t", refusal+"'answered 500')", ids)
	sqltest.Equal(b.Session, "x:1 3", "select concat_ws(' ', parley.body_text(body), rollbacks) from parley.set_aside_messages")
	sqltest.Equal(b.Session, true, "select parley.seconds_to_next_message_delivery('jobs') is null")
	requireDelivered(b.Session, 5, "x:2")
}

// Retry-After is kept, however long the policy would wait, and a message that is refused for ever is not tried again.
func TestReceiverSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Exec("select parley.set_retry_policy('jobs', first => '1 second', longest => '1 minute', attempts => 2)")
	b.Put("a", "b")
	ids := requireDelivered(b.Session, 1, "a")
	b.Exec(refusal+"'answered 429', is_attempt => false, retry_ms => 7200000)", ids)
	sqltest.Equal(b.Session, true, "select retry_at between now() + interval '119 minutes' and now() + interval '133 minutes' from parley.failing_messages")
	b.Exec(waited)
	b.Exec(refusal+"'answered 429', is_attempt => false, retry_ms => 2000000000)", ids)
	sqltest.Equal(b.Session, true, "select retry_at between now() + interval '23 hours' and now() + interval '27 hours' from parley.failing_messages")
	ids = requireDelivered(b.Session, 1, "b")
	sqltest.Equal(b.Session, "1 t", refusal+"'answered 410', is_final => true)", ids)
	sqltest.Equal(b.Session, "b answered 410", "select concat_ws(' ', parley.body_text(body), error) from parley.set_aside_messages")
}

// Of several that were refused together nobody knows which was bad, whatever the policy: each comes alone at once.
func TestRefusedBatchOfAQueueWithAPolicyComesApart(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', longest => '1 hour', attempts => 1)")
	b.Put("a", "b", "c")
	ids := requireDelivered(b.Session, 2, "a", "b")
	sqltest.Equal(b.Session, "0 f", refusal+"'answered 410', is_final => true)", ids)
	requireDelivered(b.Session, 5, "a")
	// When the receiver is not there, all of them wait, and count nothing.
	sqltest.Equal(b.Session, "0 f", refusal+"'not there', is_attempt => false)", ids)
	sqltest.Equal(b.Session, 2, "select count(*) from parley.failing_messages where retry_at > now() + interval '50 minutes' and attempts = 0")
	requireDelivered(b.Session, 5, "c")
}

// A reader that does not know whether another attempt would be in vain has it made.
func TestRefusalThatMayBeFinalIsNot(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', longest => '1 hour', attempts => 9)")
	b.Put("a")
	ids := requireDelivered(b.Session, 1, "a")
	sqltest.Equal(b.Session, "1 f", refusal+"'answered 500', is_final => null)", ids)
}

// A claim whose delivery fails is given up in the same transaction.
func TestRefusedClaimIsGivenUp(t *testing.T) {
	t.Parallel()
	b := newDeliveredJobs(t, "")
	b.Exec("select parley.set_retry_policy('jobs', first => '1 hour', longest => '1 hour')")
	b.Put("a")
	claim, id, _ := claimOne(b.Session)
	sqltest.Equal(b.Session, false, "select is_lost from parley.fail_message_delivery('jobs', array[$1::bigint], 'answered 500', claim => $2)", id, claim)
	sqltest.Equal(b.Session, "0 1", `
		select concat_ws(' ', (select count(*) from parley.delivery_claims), (select count(*) from parley.failing_messages where retry_at > now()))`)
	sqltest.Equal(b.Session, true, "select is_lost from parley.fail_message_delivery('jobs', array[$1::bigint], 'again', claim => $2)", id, claim)
}

// A queue of conversations has waits of the webhook, until it is given a policy.
func TestRefusedConversationWaitsByTheRetryPolicyOfItsQueue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec(hook)
	b.Exec("select parley.set_retry_policy('Answering', first => '5 hours', factor => 2, longest => '24 hours', jitter => 0, attempts => 2)")
	initiator := b.Dialog()
	b.Send(initiator, sqltest.Request, "first")
	handle := b.FarHandle(initiator)
	const fails = "select concat_ws(' ', attempts, is_set_aside) from parley.fail_delivery('Answering', $1, 'answered 500'"
	const next = "select round(extract(epoch from retry_at - now()) / 3600)::integer from parley.failing_conversations"
	sqltest.Equal(b.Session, "1 f", fails+")", handle)
	sqltest.Equal(b.Session, 5, next)
	sqltest.Equal(b.Session, "1 f", fails+", is_attempt => false, retry_ms => 72000000)", handle)
	sqltest.Equal(b.Session, true, "select retry_at between now() + interval '19 hours' and now() + interval '23 hours' from parley.failing_conversations")
	sqltest.Equal(b.Session, "2 t", fails+")", handle)
}
