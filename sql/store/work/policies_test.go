package work_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Attempts at 0, 1, 2, 3, 4, 9, 14, 19, 24, 29, 34 minutes and then every ten, as section 8.1 of the specification says.
func TestTheDefaultPolicyHasThreePhases(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	sqltest.Equal(b.Session, "1 2 3 4 9 14 19 24 29 34 44 54", `
		select string_agg((sum / 60)::int::text, ' ' order by attempt)
		from (
			select attempt, sum(extract(epoch from parley_store.retry_interval('default', attempt))) over (order by attempt) as sum
			from generate_series(1, 12) as attempt
		) as s`)
	sqltest.Equal(b.Session, true, `
		select bool_and(d between 50 and 70) and count(distinct d) > 50 from (
			select extract(epoch from parley_store.next_attempt('default', 1, null, '2026-01-01') - '2026-01-01'::timestamptz) as d
			from generate_series(1, 100)
		) as s`)
	sqltest.Equal(b.Session, true, "select parley_store.next_attempt('default', 50, now() - interval '2 days') is null")
	sqltest.Equal(b.Session, true, "select parley_store.next_attempt('default', 50, f - interval '2 days' + interval '1 s', f) = f + interval '1 s' from now() as f")
}

// Items that failed together do not come back together.
func TestIntervalsAreSpread(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	sqltest.Equal(b.Session, true, `select count(distinct n) > 90 and min(n) between interval '51 seconds' and interval '57 seconds'
			and max(n) between interval '63 seconds' and interval '69 seconds'
		from (select parley_store.next_attempt('default', 1, '2026-01-01', '2026-01-01') - '2026-01-01'::timestamptz as n from generate_series(1, 100)) as i`)
}

func TestExponentialPolicies(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.set_retry_policy('e', 'exponential', '1 hour', first_interval => '1 min', factor => 2, jitter => 0)")
	sqltest.Equal(b.Session, "1 2 4 8 16 32 60 60", "select string_agg((extract(epoch from parley_store.retry_interval('e', n)) / 60)::int::text, ' ' order by n) from generate_series(1, 8) as n")
	sqltest.Equal(b.Session, "01:00:00", "select parley_store.retry_interval('e', 1000000)::text")
	b.Fails("PS007", "select parley_store.retry_interval('f', 1)")
}

func TestPoliciesOutOfBoundsAreRefused(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	for _, policy := range []string{
		"null, 'steps', '10 min'", "'p', 'steps', null", "'p', 'other', '10 min'", "'p', null, '10 min'", "'p', 'steps', '21 days'",
		"'p', 'steps', '1 ms'", "'p', 'steps', '10 min', '{16}', '{1 min}'", "'p', 'steps', '10 min', '{-1}', '{1 min}'",
		"'p', 'steps', '10 min', '{1}', '{13 hours}'", "'p', 'steps', '10 min', '{1, 2}', '{1 min}'",
		"'p', 'steps', '10 min', '{null}', '{1 min}'", "'p', 'steps', '10 min', jitter => 0.6", "'p', 'steps', '10 min', jitter => null",
		"'p', 'steps', '10 min', expires_after => '4 s'", "'p', 'steps', '10 min', expires_after => '91 days'",
		"'p', 'steps', '10 min', '{10}', '{1 hour}', notice_after => '10 hours'", "'p', 'steps', '10 min', notice_after => '31 days'",
		"'p', 'exponential', '10 min'", "'p', 'exponential', '10 min', first_interval => '11 min', factor => 2",
		"'p', 'exponential', '10 min', first_interval => '1 min', factor => 0.5",
	} {
		b.Fails("PS007", "select parley_store.set_retry_policy("+policy+")")
	}
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.retry_policies")
}

// The ends of what a policy may say are still allowed: as many steps, attempts and intervals as docs and comments name.
func TestPoliciesAtTheirBoundsAreTaken(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	for _, policy := range []string{
		"'p', 'steps', '1 second'", "'p', 'steps', '20 days'", "'p', 'steps', '10 min', jitter => 0", "'p', 'steps', '10 min', jitter => 0.5",
		"'p', 'steps', '10 min', expires_after => '5 seconds'", "'p', 'steps', '10 min', expires_after => '90 days'",
		"'p', 'steps', '10 min', notice_after => '1 second'", "'p', 'steps', '10 min', notice_after => '30 days'",
		"'p', 'steps', '10 min', array_fill(1, array[10]), array_fill(interval '1 second', array[10])",
		"'p', 'steps', '10 min', '{0,15}', '{1 s,12 hours}', notice_after => '180 hours 1 s'",
		"'p', 'exponential', '1 s', first_interval => '1 s', factor => 1", "'p', 'exponential', '20 days', first_interval => '20 days', factor => 10",
	} {
		b.Exec("select parley_store.set_retry_policy(" + policy + ")")
	}
	for _, policy := range []string{
		"'p', 'steps', '10 min', array_fill(1, array[11]), array_fill(interval '1 second', array[11])", "'p', 'steps', '10 min', '{1}', '{999 ms}'",
		"'p', 'steps', '10 min', '{1}', '{12 hours 1 ms}', notice_after => '2 days'", "'p', 'steps', '10 min', '{0,15}', '{1 s,12 hours}', notice_after => '180 hours'",
		"'p', 'steps', '10 min', notice_after => '999 ms'", "'p', 'exponential', '10 min', first_interval => '999 ms', factor => 2",
		"'p', 'exponential', '10 min', first_interval => '1 min', factor => 10.1",
	} {
		b.Fails("PS007", "select parley_store.set_retry_policy("+policy+")")
	}
}

func TestTrackingIsKeptByDay(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec(`select parley_store.track('mail', array['RECEIVE', 'SEND'], array['m', 'm'], '[["a@x", "b@x"]]', '[{"bytes": 5}]', array['SMTP', null],
		array[now() - interval '40 days', null])`)
	sqltest.Equal(b.Session, "RECEIVE SMTP {a@x,b@x} 5; SEND  {} ", `
		select string_agg(event || ' ' || source || ' ' || recipients::text || ' ' || coalesce(fields ->> 'bytes', ''), '; ' order by at)
		from parley_store.tracking where message_id = 'm'`)
	sqltest.Equal(b.Session, 2, "select count(*)::int from pg_inherits where inhparent = 'parley_store._p_tracking'::regclass")
	reader := b.Begin()
	sqltest.Equal(reader, 2, "select count(*)::int from parley_store.tracking")
	// It does not wait for who reads.
	sqltest.Equal(b.Session, 0, "select parley_store.maintain_tracking(3, '30 days')")
	reader.Rollback()
	sqltest.Equal(b.Session, 1, "select parley_store.maintain_tracking(3, '30 days')")
	sqltest.Equal(b.Session, 4, "select count(*)::int from pg_inherits where inhparent = 'parley_store._p_tracking'::regclass")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley_store.tracking")
	b.Fails("PS002", "select parley_store.track('mail', array['X'], array['a', 'b'])")
	b.Fails("PS002", "select parley_store.track('mail', null, array['a'])")
}

func TestPressureIsRecorded(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	b.Exec("select parley_store.seed_thresholds('mail'), parley_store.seed_thresholds('mail')")
	sqltest.Equal(b.Session, 14, "select count(*)::int from parley_store.thresholds")
	for _, bad := range []string{"10, 5, 4, 3", "10, 20, 21, 5", "10, 20, 8, 11", "10, 20, 3, 5", "null, 20, 15, 5"} {
		b.Fails("PS008", "select parley_store.set_threshold('mail', 'r', "+bad+")")
	}
	b.Exec("select parley_store.set_threshold('mail', 'r', 10, 20, 15, 5)")
	for _, step := range [][2]string{{"NORMAL", "MEDIUM"}, {"MEDIUM", "HIGH"}, {"HIGH", "MEDIUM"}, {"MEDIUM", "NORMAL"}, {"NORMAL", "MEDIUM"}} {
		b.Exec("select parley_store.record_pressure('mail', 'n', 'r', 15004, $1, $2, 1, null, 'text')", step[0], step[1])
	}
	sqltest.Equal(b.Session, "HIGH 1, MEDIUM 3, NORMAL 1", "select string_agg(level || ' ' || transitions, ', ' order by level) from parley_store.pressure_history")
	sqltest.Equal(b.Session, true, "select bool_and(total_time >= longest_time and longest_time >= '0') from parley_store.pressure_history")
	b.Exec("select parley_store.set_pressure_action('mail', 'r', 'tarpit', 'medium'), parley_store.set_pressure_action('mail', 'r', 'x', null)")
	sqltest.Equal(b.Session, "tarpit", "select string_agg(action, ',') from parley_store.pressure_actions")
	sqltest.Equal(b.Session, 5, "select count(*)::int from parley_store.measure('mail')")
}

// Only the owner may use the store.
func TestTheStoreIsItsOwnersAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewStore(t)
	clerk := b.As(b.Role("clerk"))
	for _, statement := range []string{
		"select parley_store.put_work('mail', array['a'], array[1])", "select * from parley_store.lanes",
		"select parley_store.open_content(1, 'mail', 1)", "select * from parley_store.errors", "select parley_store.maintain()",
	} {
		clerk.Fails("42501", statement)
	}
	for _, open := range sqltest.Values[string](b.Session, `
		select p.oid::regprocedure::text from pg_proc as p
		where p.pronamespace = 'parley_store'::regnamespace and (p.prosecdef or has_function_privilege('public', p.oid, 'execute'))`) {
		t.Errorf("%s is open to others than the owner", open)
	}
}
