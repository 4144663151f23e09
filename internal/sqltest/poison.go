package sqltest

import (
	"fmt"
	"slices"
)

// Poison gives both handles of a conversation that is set aside: "first" is received and came back twice, with some messages behind it.
func (b *Broker) Poison(behind ...string) (initiator, target string) {
	b.Helper()
	b.Exec("select parley.alter_queue('Answering', poison_rollbacks => 2)")
	initiator = b.Dialog()
	b.Send(initiator, Request, "first")
	for _, body := range behind {
		b.Send(initiator, Request, body)
	}
	target = b.FarHandle(initiator)
	b.SetAside(target)
	return initiator, target
}

// SetAside receives from a conversation, rolls back, and reports, twice.
func (b *Broker) SetAside(handle string) {
	b.Helper()
	for range 2 {
		tx := b.Begin()
		if len(tx.Messages("select * from parley.receive('Answering', top => 1, conversation_handle => $1)", handle)) != 1 {
			b.Fatal("there is nothing to receive")
		}
		tx.Rollback()
		Equal(b.Session, true, "select parley.record_failure($1, '22012', 'division by zero')", handle)
	}
	if got := Values[string](b.Session, "select conversation_handle::text from parley.poison_conversations"); !slices.Contains(got, handle) {
		b.Fatalf("set aside are %v, want %s", got, handle)
	}
}

// SetAsideMany gives a number of targets that are set aside, each with an error of its own.
func (b *Broker) SetAsideMany(count int) (targets []string) {
	b.Helper()
	for i := range count {
		_, target := b.Poison("behind")
		b.Exec("update parley._p_failure as f set error = $2 from parley._p_endpoint as e where e.endpoint_id = f.endpoint_id and e.conversation_handle = $1",
			target, fmt.Sprintf("Error %d", i))
		targets = append(targets, target)
	}
	return targets
}

// Retried counts what a call puts back, and how many messages that are.
func (s Session) Retried(arguments string) string {
	s.Helper()
	return Value[string](s, "select format('%s %s', count(*), coalesce(sum(messages), 0)) from parley.retry_poison_matching("+arguments+")")
}
