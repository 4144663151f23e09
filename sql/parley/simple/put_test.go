package simple_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// outcome gives the record that a put returns, and whether the message is withdrawn by its number.
const outcome = `
	select concat_ws(' ', p.is_duplicate, p.conversation_handle, p.sent_at is not null, p.message_id > 0, p.delayed_id > 0)
		|| case
			when p.message_id is not null then ' ' || parley.cancel('jobs', p.message_id)
			else ' ' || parley.withdraw_message('jobs', p.delayed_id)
		end
	from `

func TestPutGivesTheNumberOfItsMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	for _, call := range []string{
		"parley.put('jobs', 'text'::text)",
		"parley.put('jobs', 'bytes'::bytea)",
		"parley.put('jobs', ''::bytea)",
		"parley.put('jobs', '{}'::jsonb)",
		"parley.put('jobs', 'key', key => 'k')",
		// The first of a priority goes the long way, the second the short one.
		"parley.put('jobs', 'first of a priority', priority => 8)",
		"parley.put('jobs', 'second of a priority', priority => 8)",
		"parley.put('jobs', 'due', deliver_at => now() - interval '1 day')",
	} {
		sqltest.Equal(b.Session, "f f t true", outcome+call+" as p")
	}
	for _, call := range []string{
		"parley.put('jobs', 'later', deliver_at => now() + interval '1 day')",
		"parley.put('jobs', 'later', deliver_at => now() + interval '1 day', key => 'k', priority => 9)",
	} {
		sqltest.Equal(b.Session, "f f t true", outcome+call+" as p")
	}
	b.RequireTaken(10)
}

func TestMessagesAreTakenUnderTheNumbersThatPutGave(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec(`
		create table given as
		select n, (parley.put('jobs', n::text, key => case when n % 2 = 0 then 'k' end)).message_id
		from generate_series(1, 4) as n`)
	sqltest.Equal(b.Session, "1 2 3 4", `
		select string_agg(convert_from(t.body, 'UTF8'), ' ' order by t.message_id)
		from parley.take('jobs', 10) as t
		join given as g using (message_id)
		where g.n::text = convert_from(t.body, 'UTF8')`)
}
