package poison_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestRetryMatchingTakesTheOldestUpToANumber(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := b.SetAsideMany(3)
	if got := b.Retried("top => 2"); got != "2 4" {
		t.Errorf("put back %s", got)
	}
	sqltest.Equal(b.Session, targets[2], "select string_agg(conversation_handle::text, ' ') from parley.poison_conversations")
	if got := b.Retried("top => 0"); got != "0 0" {
		t.Errorf("put back %s", got)
	}
	if got := b.Retried("top => null"); got != "1 2" {
		t.Errorf("put back %s", got)
	}
	if got := b.Retried(""); got != "0 0" {
		t.Errorf("put back %s", got)
	}
	// Each in its order, and counted from the start again.
	for _, target := range targets {
		if got := b.Messages("select * from parley.receive('Answering', conversation_handle => $1)", target); len(got) != 2 || string(got[0].MessageBody) != "first" {
			t.Errorf("received %q", sqltest.BodiesOf(got))
		}
	}
}

func TestRetryMatchingFilters(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.SetAsideMany(2)
	for _, none := range []string{
		"queue => 'Asking'", "service_name => '//test/Asker'", "contract => 'DEFAULT'", "sqlstate => '22013'", "error => 'error 7'",
		"set_aside_before => now() - interval '1 hour'", "set_aside_before => (select min(s.set_aside_at) from parley._p_set_aside as s)", "sqlstate => '22012', error => 'none'",
	} {
		if got := b.Retried(none); got != "0 0" {
			t.Errorf("%s puts back %s", none, got)
		}
	}
	if got := b.Retried("queue => 'Answering', service_name => '//test/Answerer', contract => '//test/Work', sqlstate => '22012', error => 'ERROR 1', " +
		"set_aside_before => now()"); got != "1 2" {
		t.Errorf("put back %s", got)
	}
	sqltest.Equal(b.Session, "Error 0", "select string_agg(error, ' ') from parley.poison_conversations")
	b.Refuses(208, "select * from parley.retry_poison_matching(queue => 'None')")
	b.Refuses(127, "select * from parley.retry_poison_matching(top => -1)")
	tx := b.Begin(pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	tx.Refuses(8402, "select * from parley.retry_poison_matching()")
}

// A conversation that a sender or a reader holds is passed over, without a wait; a rollback takes all of it back.
func TestRetryMatchingPassesOverWhatIsHeld(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	targets := b.SetAsideMany(3)
	sender, reader := b.Begin(), b.Begin()
	sender.Send(sqltest.Value[string](b.Session, "select f.conversation_handle::text from parley._p_endpoint as e join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id where e.conversation_handle = $1",
		targets[0]), sqltest.Request, "more")
	reader.Exec("select from parley._p_conversation_group as g join parley._p_endpoint as e using (group_id) where e.conversation_handle = $1 for update of g", targets[1])
	tx := b.Begin()
	tx.Exec("set local lock_timeout = '2s'")
	if got := tx.Retried(""); got != "1 2" {
		t.Errorf("put back %s", got)
	}
	tx.Rollback()
	sender.Commit()
	reader.Rollback()
	if got := b.Retried(""); got != "3 7" {
		t.Errorf("put back %s", got)
	}
}

// Several at once share the work.
func TestRetryMatchingSeveralAtOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.SetAsideMany(4)
	one, two := b.Begin(), b.Begin()
	two.Exec("set local lock_timeout = '2s'")
	if first, second := one.Retried("top => 2"), two.Retried("top => 3"); first != "2 4" || second != "2 4" {
		t.Errorf("put back %s and %s", first, second)
	}
	one.Commit()
	two.Commit()
	sqltest.Equal(b.Session, 0, "select count(*) from parley.poison_conversations")
}
