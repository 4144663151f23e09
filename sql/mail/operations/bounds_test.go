package operations_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A call gives up as many messages as it may: those that are scheduled count among them.
func TestRemovalCountsWhatIsScheduledAmongItsMessages(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for range 3 {
		b.Sent("waits", "x@example.com")
	}
	for range 2 {
		b.Exec("select parley_mail.send('ann', array['x@example.com'], 'later', 'text', not_before => now() + interval '1 day')")
	}
	const remove = "select parley_mail.remove_messages('{}', false, top => 3)"
	sqltest.Equal(b.Session, 3, remove)
	sqltest.Equal(b.Session, 2, "select count(*)::int from parley_mail._p_message")
	sqltest.Equal(b.Session, 2, remove)
	sqltest.Equal(b.Session, 0, remove)
}

// A time that is over, or is the one already, changes nothing: calling it again comes to an end.
func TestTimeOfTheNextAttemptIsChangedOnce(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Sent("waits", "x@example.com")
	const change = "select parley_mail.change_messages('{}', next_attempt => $1::timestamptz)"
	sqltest.Equal(b.Session, 0, change, "2020-01-01T00:00:00Z")
	sqltest.Equal(b.Session, 1, change, "2098-01-01T00:00:00Z")
	sqltest.Equal(b.Session, 0, change, "2098-01-01T00:00:00Z")
	sqltest.Equal(b.Session, 1, change, "2020-01-01T00:00:00Z")
	sqltest.Equal(b.Session, 0, change, "2020-01-01T00:00:00Z")
}

// A message counts how often it was submitted again, one by one, and stops at a number that its column can hold.
func TestResubmissionsAreCounted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Sent("comes back", "x@example.com")
	for before, after := range map[int]int{0: 1, 1: 2, 999: 1000, 1000: 1001, 1001: 1001} {
		tx := b.Begin()
		tx.Exec("update parley_mail._p_message set resubmissions = $1", before)
		tx.Exec("select parley_mail._p_submit_again(array[$1::bigint], array['DNS/internet/example.com'])", id)
		sqltest.Equal(tx, after, "select resubmissions::int from parley_mail._p_message")
		tx.Rollback()
	}
}
