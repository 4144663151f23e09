package schedules_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/cron"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/daemon/schedules"
	"github.com/parley-broker/parley/internal/notifier"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

// An expression that the daemon cannot read is refused when the schedule is made; one that it can read is not.
func TestTheDatabaseRefusesTheCronExpressionsThatTheDaemonCannotRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	for _, expression := range []string{
		"* * * * *", "*/5 * * * *", "30 2 * * 1-5", " 0  3 1,15 * * ", "0 0 * JAN-mar sun", "0 0 1 1 * 2031", "5 * * * * *", "0 0 L * *",
		"0 0 15W * *", "0 0 * * 5L", "0 0 * * MON#2", "0 0 * * 7-2", "0/10 0-23/2 * * ?", "@hourly", "@Daily", "@5minutes", "0 0 31 2 *",
		"99 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * 0 *", "* * * * 8", "*/0 * * * *", "*/x * * * *",
		"5-2 * * * *", "@hourli", "@", "* * * *", "a b c d e", "1, * * * *", "1/2/3 * * * *", "0 0 LW * *", "0 0 * * L", "0 0 * FOO *", "-1 * * * *",
	} {
		_, err := cron.Parse(expression)
		if reads := sqltest.Value[bool](b.Session, "select parley._p_is_cron($1)", expression); reads != (err == nil) {
			t.Errorf("%q: the database says %v, the daemon %v", expression, reads, err)
		}
	}
}

// A time that never comes is refused when the schedule is made; one that the daemon finds is not.
func TestTheDatabaseRefusesTheCronExpressionsThatAreNeverDue(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	now := time.Now().UTC()
	for _, expression := range []string{
		"* * * * *", "@monthly", "0 0 29 2 *", "0 0 28-31 2 *", "0 0 31 1-12/2 *", "0 0 L 2 *", "0 0 29W 2 *", "0 0 31W 1 *", "0 0 * 2 1#4",
		"0 0 * * 7L", "0 0 31 2 1", "0 0 31 2 7-2/2", "0 0 13 * */5", "0 0 1 1 * 2099", "0 0 */31 * 1L,1#1", "0 0 ? * 5-7/2", "0 0 0/7 0/6 *",
		"0 0 1 1 * */2,2090-2095/5", "0 0 1 1 7/3", "30 2 29 2 ? 2096",
		"0 0 31 2 *", "0 0 30 2 ?", "0 0 30-31 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 4/5 *,*", "0 0 30W 2 *", "0 0 31W 4 *", "0 0 31 2 */2", "0 0 */31 * 1#3",
		"0 0 1 1 * 2020", "0 0 1 1 * 1999-2025/2", "0 0 29 2 * 2097-2099", "0 0 0/40 * *", "0 0 * 0/13 *", "0 0 40/2 * *",
	} {
		read, err := cron.Parse(expression)
		if err != nil {
			continue // The other test has those.
		}
		_, err = read.Next(now, time.UTC)
		if due := sqltest.Value[bool](b.Session, "select parley._p_is_cron_ever_due($1, $2::date)", expression, now); due != (err == nil) {
			t.Errorf("%q: the database says %v, the daemon %v", expression, due, err)
		}
	}
	b.Exec("select parley.schedule('leap', 'jobs', 'leap', cron => '0 0 29 2 *')")
	for _, never := range []string{"0 0 31 2 *", "0 0 30W 2 *", "0 0 1 1 * 2020"} {
		b.Refuses(8402, "select parley.schedule('never', 'jobs', 'never', cron => $1)", never)
	}
}

// Each due time has one message, whatever daemons there are, and the next time of a schedule is moved with it.
func TestEachDueTimeHasOneMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	owner := b.Role("scheduler")
	b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", owner)
	b.As(owner).Exec("select parley.schedule('tick', 'jobs', 'tick', every => '1 second')")
	b.Exec("select parley.schedule('yearly', 'jobs', 'year', cron => '0 0 1 1 *', time_zone => 'Europe/Berlin')")
	b.Exec("select parley.schedule('talk', from_service => '//test/Asker', to_service => '//test/Answerer', body => 'tick', every => '1 second')")
	// An hour that nobody was there for, once; and an owner who may not put any more.
	b.Exec("select parley.schedule('hourly', 'jobs', 'hour', cron => '@hourly')")
	fallen := b.Role("fallen")
	b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", fallen)
	b.As(fallen).Exec("select parley.schedule('refused', 'jobs', 'no', every => '1 second')")
	b.Exec("select parley.revoke('SEND', 'queue', 'jobs', $1)", fallen)
	b.Exec("update parley._p_schedule set next_at = date_trunc('hour', now()) - interval '3 hours' where name = 'hourly'")
	term := sqltest.Value[int64](b.Session, "select parley._p_lead(leader => 'a test', term => 0, milliseconds => 600000, serves_neighbours => false)")

	ctx, stop := context.WithCancel(t.Context())
	var daemons sync.WaitGroup
	logger := slog.New(slog.DiscardHandler)
	for range 3 {
		events := notifier.New(notifier.Config{Pool: b.Pool, Logger: logger})
		daemons.Go(func() {
			schedules.New(b.Pool, logger).Lead(ctx, &daemon.Term{Number: term, Notifier: events})
		})
	}
	parleytest.Until(t, "three ticks", func() bool {
		return sqltest.Value[int](b.Session, `
			select least(count(*) filter (where name = 'tick'), count(*) filter (where name = 'talk')) from parley.schedule_runs`) >= 3
	})
	b.WaitUntil("select exists (select from parley.schedules where name = 'refused' and fault like '%permission%')")
	stop()
	daemons.Wait()

	sqltest.Equal(b.Session, true, `
		select count(*) = count(distinct due_at) and count(*) = count(distinct message_id)
			and count(*) = 1 + extract(epoch from max(due_at) - min(due_at))
			and count(*) = (select count(*) from parley.peek_messages('jobs', 1000) as m where parley.body_text(m.body) = 'tick')
		from parley.schedule_runs where name = 'tick'`)
	// The same where each begins a conversation.
	sqltest.Equal(b.Session, true, `
		select count(*) = count(distinct due_at) and count(*) = count(distinct conversation_handle)
			and count(*) = 1 + extract(epoch from max(due_at) - min(due_at))
			and count(*) = (select count(*) from parley.conversation_endpoints as e where e.is_initiator = 0)
		from parley.schedule_runs where name = 'talk'`)
	sqltest.Equal(b.Session, "1 3", `
		select concat_ws(' ', count(*), max(missed)) from parley.schedule_runs where name = 'hourly'`)
	sqltest.Equal(b.Session, true, "select next_at = date_trunc('hour', now()) + interval '1 hour' from parley.schedules where name = 'hourly'")
	sqltest.Equal(b.Session, true, `
		select extract(month from next_at at time zone 'Europe/Berlin') = 1 and last_at is null from parley.schedules where name = 'yearly'`)
	sqltest.Equal(b.Session, "0 1", `
		select concat_ws(' ', count(message_id), count(error)) from parley.schedule_runs where name = 'refused'`)
	// A daemon whose term is over finds nothing to do.
	b.Exec("update parley._p_schedule set wake_at = now() where name = 'tick'")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_due_schedules($1, 10)", term+1)
}

// A schedule of which the owner makes the run last, by a lock or by a validation function, is tried again later, and says why. The others
// go on.
func TestAScheduleThatLastsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	thief := b.Role("thief")
	b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", thief)
	holds := b.As(thief)
	holds.Exec("select parley.schedule('a lock', 'jobs', 'x', every => '1 second', priority => 7)")
	holds.Exec("begin")
	holds.Exec("select parley.put('jobs', 'the first of its priority'::text, priority => 7)")
	b.Exec("create function public.lasts(body bytea) returns boolean language plpgsql security definer as $$ begin perform pg_sleep(3600); return true; end $$")
	b.Exec("select parley.create_message_type('Lasting', 'FUNCTION', 'public.lasts(bytea)')")
	b.Exec("select parley.create_contract('Lasting', '{\"Lasting\": \"INITIATOR\"}'::jsonb), parley.create_queue('Lasting')")
	b.Exec("select parley.create_service('Lasting', 'Lasting', array['Lasting'])")
	b.Exec("select parley.schedule('a function', from_service => 'Lasting', to_service => 'Lasting', contract => 'Lasting', message_type => 'Lasting', body => 'x', every => '1 second')")
	b.Exec("select parley.schedule('tick', 'jobs', 'tick', every => '1 second')")
	term := sqltest.Value[int64](b.Session, "select parley._p_lead(leader => 'a test', term => 0, milliseconds => 600000, serves_neighbours => false)")
	ctx, stop := context.WithCancel(t.Context())
	logger := slog.New(slog.DiscardHandler)
	var leading sync.WaitGroup
	leading.Go(func() {
		events := notifier.New(notifier.Config{Pool: b.Pool, Logger: logger})
		schedules.New(b.Pool, logger).Lead(ctx, &daemon.Term{Number: term, Notifier: events})
	})
	b.WaitUntil("select count(*) = 2 from parley.schedules where name in ('a lock', 'a function') and fault like 'it took longer than%'")
	b.WaitUntil("select count(*) >= 2 from parley.schedule_runs where name = 'tick'")
	stop()
	leading.Wait()
	holds.Rollback()
}
