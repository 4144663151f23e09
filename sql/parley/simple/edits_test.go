package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// setAside puts a message that comes back until it is set aside, and gives its number.
func setAside(b *sqltest.Broker, body string) int64 {
	b.Helper()
	b.Put(body)
	for range 3 {
		tx := b.Begin()
		tx.Take(1)
		tx.Rollback()
	}
	b.RequireTaken(1)
	return sqltest.Value[int64](b.Session, "select message_id from parley.set_aside_messages")
}

func TestMessageThatIsSetAsideIsEditedAndItsOldBodyKept(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	id := setAside(b, "{")
	b.Exec("select parley.edit_message('jobs', $1, '{}', 'a bracket was missing')", id)
	b.Exec("select parley.edit_message('jobs', $1, '[]', 'a list is asked for')", id)
	sqltest.Equal(b.Session, "[]", "select parley.body_text(body) from parley.set_aside_messages")
	sqltest.Equal(b.Session, "{ a bracket was missing, {} a list is asked for", `
		select string_agg(parley.body_text(e.body) || ' ' || e.reason, ', ' order by e.edit_id)
		from parley.edited_messages as e
		where e.role_name = current_user and e.message_id = $1`, id)
	b.Exec("select parley.retry_message('jobs', $1)", id)
	b.RequireTaken(1, "[]")
	b.Refuses(8426, "select parley.edit_message('jobs', $1, '{}', 'too late')", id)
}

func TestEditThatIsRolledBackChangesNothing(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	id := setAside(b, "old")
	tx := b.Begin()
	tx.Exec("select parley.edit_message('jobs', $1, 'new', 'a try')", id)
	tx.Rollback()
	sqltest.Equal(b.Session, "old", "select parley.body_text(body) from parley.set_aside_messages")
	sqltest.Equal(b.Session, 0, "select count(*)::integer from parley.edited_messages")
}

// To edit a message is to take it and to put another one.
func TestEditingAMessageNeedsTheRightsToTakeAndToPutAndAReason(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	id := setAside(b, "old")
	role := b.Role("taker")
	taker := b.As(role)
	const edit = "select parley.edit_message('jobs', $1, 'new', 'why')"
	taker.Refuses(229, edit, id)
	b.Exec("select parley.grant('RECEIVE', 'queue', 'jobs', $1)", role)
	taker.Refuses(229, edit, id)
	sqltest.Equal(taker, 0, "select count(*)::integer from parley.edited_messages")
	b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", role)
	for _, reason := range []string{"''", "null", "repeat('x', 1001)"} {
		taker.Refuses(8402, "select parley.edit_message('jobs', $1, 'new', "+reason+")", id)
	}
	taker.Exec(edit, id)
	sqltest.Equal(b.Session, role+" old", "select role_name || ' ' || parley.body_text(body) from parley.edited_messages")
	b.Exec("select parley.revoke('RECEIVE', 'queue', 'jobs', $1)", role)
	sqltest.Equal(taker, 0, "select count(*)::integer from parley.edited_messages")
}

// Of a session that puts a message back and one that edits it, the second one finds what the first one left.
func TestMessageThatIsPutBackMeanwhileIsNotEdited(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	id := setAside(b, "old")
	tx := b.Begin()
	tx.Exec("select parley.retry_message('jobs', $1)", id)
	edit := b.Blocked("select parley.edit_message('jobs', $1, 'new', 'why')", id)
	tx.Commit()
	edit.RequireRefusal(8426)
	b.RequireTaken(1, "old")
	sqltest.Equal(b.Session, 0, "select count(*)::integer from parley.edited_messages")
}

func TestOldEditsAreForgotten(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	id := setAside(b, "old")
	b.Exec("select parley.edit_message('jobs', $1, '1', 'first')", id)
	b.Exec("update parley._p_edited_message set edited_at = clock_timestamp() - interval '31 days'")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.edited_messages")
	sqltest.Equal(b.Session, 1, "select count(*) from parley._p_edited_message")
	b.Exec("select parley.fire_timers()")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_edited_message")
	b.Exec("select parley.edit_message('jobs', $1, '2', 'second')", id)
	b.Exec(`insert into parley._p_edited_message (queue_id, position, role_name, reason)
		select e.queue_id, 1024, 'x', 'many' from parley._p_edited_message as e cross join generate_series(1, 1005)`)
	b.Exec("select parley.edit_message('jobs', $1, '3', 'last')", id)
	sqltest.Equal(b.Session, "0 999 1", `select concat_ws(' ', count(*) filter (where reason = 'first'), count(*) filter (where reason = 'many'),
		count(*) filter (where reason = 'last')) from parley.edited_messages`)
}
