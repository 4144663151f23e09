package categorizer_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A new column is one of the envelope, which a fork has too, or one of the state, which _p_initial_state names.
func TestForksHaveTheEnvelopesOfTheirParents(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	parent := b.Arriving("x@example.com", "ann@example.org", "bob@example.org")
	b.Exec(`do $$
		declare v record;
		begin
			for v in
				select a.attname as name, a.atttypid::regtype::text as type from pg_attribute as a
				where a.attrelid = 'parley_mail._p_message'::regclass and a.attnum > 0 and a.attname not in ('message_id', 'ret', 'sender')
			loop
				execute format('update parley_mail._p_message set %I = %s', v.name, case v.type
					when 'text' then quote_literal(v.name)
					when 'text[]' then '''{x,y}'''
					when 'boolean' then 'true'
					when 'jsonb' then '''{"x": [1, null]}'''
					when 'bytea' then '''x'''
					when 'inet' then '''192.0.2.1'''
					when 'uuid' then 'gen_random_uuid()'
					when 'timestamp with time zone' then 'clock_timestamp()'
					else '2' end);
			end loop;
			update parley_mail._p_message set ret = 'HDRS';
		end $$`)
	b.Exec("select parley_mail._p_insert_forks(array[1000001, 1000002], array[$1::bigint, $1], array[null, 'led@example.org'])", parent)
	const differences = `
		select string_agg(p.key, ' ' order by p.key)
		from parley_mail._p_message as parent, parley_mail._p_message as fork, jsonb_each(to_jsonb(parent)) as p
		join jsonb_each(to_jsonb(fork)) as f using (key)
		where parent.message_id = $1 and fork.message_id = $2 and p.value <> f.value`
	// The body_message_id of a fork of a fork is that of its parent.
	const state = "delay_reported_at is_resubmitted message_id notify original_recipients parent_message_id recipients reported_at reports resubmissions"
	sqltest.Equal(b.Session, "body content_id crash_count "+state, differences, parent, 1000001)
	sqltest.Equal(b.Session, "body content_id crash_count delay_reported_at has_verp is_resubmitted message_id notify original_recipients "+
		"parent_message_id recipients reported_at reports resubmissions sender", differences, parent, 1000002)
	sqltest.Equal(b.Session, "2 x@example.com t, 2 led@example.org f", `
		select string_agg(concat_ws(' ', body_message_id, sender, has_verp), ', ' order by message_id)
		from parley_mail._p_message where recipients = '{}' and crash_count = 0 and not is_resubmitted and parent_message_id = $1`, parent)
}
