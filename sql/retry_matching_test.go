package sql_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// setAsideMany gives a number of targets that are set aside, each with an error of its own.
func (b *broker) setAsideMany(count int) (targets []string) {
	b.Helper()
	for i := range count {
		_, target := b.poison("behind")
		b.exec("update parley._p_failure as f set error = $2 from parley._p_endpoint as e where e.endpoint_id = f.endpoint_id and e.conversation_handle = $1",
			target, fmt.Sprintf("Error %d", i))
		targets = append(targets, target)
	}
	return targets
}

// retried counts what a call puts back, and how many messages that are.
func (s session) retried(arguments string) string {
	s.Helper()
	return value[string](s, "select format('%s %s', count(*), coalesce(sum(messages), 0)) from parley.retry_poison_matching("+arguments+")")
}

func TestRetryMatchingTakesTheOldestUpToANumber(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.setAsideMany(3)
	if got := b.retried("top => 2"); got != "2 4" {
		t.Errorf("put back %s", got)
	}
	equal(b.session, targets[2], "select string_agg(conversation_handle::text, ' ') from parley.poison_conversations")
	if got := b.retried("top => 0"); got != "0 0" {
		t.Errorf("put back %s", got)
	}
	if got := b.retried("top => null"); got != "1 2" {
		t.Errorf("put back %s", got)
	}
	if got := b.retried(""); got != "0 0" {
		t.Errorf("put back %s", got)
	}
	// Each in its order, and counted from the start again.
	for _, target := range targets {
		if got := b.messages("select * from parley.receive('Answering', conversation_handle => $1)", target); len(got) != 2 || string(got[0].MessageBody) != "first" {
			t.Errorf("received %q", bodiesOf(got))
		}
	}
}

func TestRetryMatchingFilters(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.setAsideMany(2)
	for _, none := range []string{
		"queue => 'Asking'", "service_name => '//test/Asker'", "contract => 'DEFAULT'", "sqlstate => '22013'", "error => 'error 7'",
		"set_aside_before => now() - interval '1 hour'", "set_aside_before => (select min(s.set_aside_at) from parley._p_set_aside as s)", "sqlstate => '22012', error => 'none'",
	} {
		if got := b.retried(none); got != "0 0" {
			t.Errorf("%s puts back %s", none, got)
		}
	}
	if got := b.retried("queue => 'Answering', service_name => '//test/Answerer', contract => '//test/Work', sqlstate => '22012', error => 'ERROR 1', " +
		"set_aside_before => now()"); got != "1 2" {
		t.Errorf("put back %s", got)
	}
	equal(b.session, "Error 0", "select string_agg(error, ' ') from parley.poison_conversations")
	b.refuses(208, "select * from parley.retry_poison_matching(queue => 'None')")
	b.refuses(127, "select * from parley.retry_poison_matching(top => -1)")
	tx := b.begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.refuses(8402, "select * from parley.retry_poison_matching()")
}

// What a sender or a reader holds is passed over, without a wait; a rollback takes all of it back.
func TestRetryMatchingPassesOverWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	targets := b.setAsideMany(3)
	sender, reader := b.begin(), b.begin()
	sender.send(value[string](b.session, "select f.conversation_handle::text from parley._p_endpoint as e join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id where e.conversation_handle = $1",
		targets[0]), request, "more")
	reader.exec("select from parley._p_conversation_group as g join parley._p_endpoint as e using (group_id) where e.conversation_handle = $1 for update of g", targets[1])
	tx := b.begin()
	tx.exec("set local lock_timeout = '2s'")
	if got := tx.retried(""); got != "1 2" {
		t.Errorf("put back %s", got)
	}
	tx.rollback()
	sender.commit()
	reader.rollback()
	if got := b.retried(""); got != "3 7" {
		t.Errorf("put back %s", got)
	}
}

// Several at once share the work.
func TestRetryMatchingSeveralAtOnce(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.setAsideMany(4)
	one, two := b.begin(), b.begin()
	two.exec("set local lock_timeout = '2s'")
	if first, second := one.retried("top => 2"), two.retried("top => 3"); first != "2 4" || second != "2 4" {
		t.Errorf("put back %s and %s", first, second)
	}
	one.commit()
	two.commit()
	equal(b.session, 0, "select count(*) from parley.poison_conversations")
}

func TestRightsOfRetryMatching(t *testing.T) {
	t.Parallel()
	b := newWorld(t)
	b.setAsideMany(1)
	name := b.role("outsider")
	outsider := b.as(name)
	if got := outsider.retried(""); got != "0 0" {
		t.Errorf("an outsider puts back %s", got)
	}
	outsider.refuses(229, "select * from parley.retry_poison_matching(queue => 'Answering')")
	b.exec("select parley.grant('RECEIVE', 'queue', 'Answering', $1)", name)
	if got := outsider.retried(""); got != "1 2" {
		t.Errorf("who may receive puts back %s", got)
	}
}
