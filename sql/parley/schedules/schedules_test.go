package schedules_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestScheduleIsChangedByItsOwnerAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	owner, other := b.Role("owner"), b.Role("other")
	for _, role := range []string{owner, other} {
		b.Exec("select parley.grant('SEND', 'queue', 'jobs', $1)", role)
	}
	owns, others := b.As(owner), b.As(other)
	sqltest.Equal(owns, true, "select parley.schedule('nightly', 'jobs', 'report', cron => '30 2 * * *', time_zone => 'Europe/Berlin')")
	b.Exec("update parley._p_schedule set next_at = now() + interval '1 hour', wake_at = now() + interval '1 hour'")
	// Said again it keeps its time; another time is found out anew.
	sqltest.Equal(owns, false, "select parley.schedule('nightly', 'jobs', 'report', cron => '30 2 * * *', time_zone => 'Europe/Berlin')")
	sqltest.Equal(owns, true, "select parley.schedule('nightly', 'jobs', 'new report', cron => '30 2 * * *', time_zone => 'Europe/Berlin', key => 'k')")
	sqltest.Equal(owns, true, "select next_at > now() from parley.schedules")
	sqltest.Equal(owns, true, "select parley.schedule('nightly', 'jobs', 'new report', every => '1 day')")
	sqltest.Equal(owns, true, "select next_at is null and not is_paused from parley.schedules")

	sqltest.Equal(others, 0, "select (select count(*) from parley.schedules) + (select count(*) from parley.schedule_runs)")
	others.Refuses(2714, "select parley.schedule('nightly', 'jobs', 'mine', every => '1 day')")
	for _, function := range []string{"unschedule", "pause_schedule", "resume_schedule", "run_schedule"} {
		others.Refuses(208, "select parley."+function+"('nightly')")
	}
	b.As(b.Role("nobody")).Refuses(229, "select parley.schedule('mine', 'jobs', 'mine', every => '1 day')")

	// It runs as its owner, whoever asks.
	id := sqltest.Value[int64](b.Session, "select parley.run_schedule('nightly')")
	sqltest.Equal(b.Session, true, "select message_id = $1 and due_at is null from parley.schedule_runs", id)
	b.RequireTaken(1, "new report")
	b.Exec("select parley.revoke('SEND', 'queue', 'jobs', $1)", owner)
	b.Refuses(229, "select parley.run_schedule('nightly')")
	sqltest.Equal(owns, true, "select parley.pause_schedule('nightly') and not parley.pause_schedule('nightly')")
	sqltest.Equal(owns, true, "select is_paused from parley.schedules")
	sqltest.Equal(owns, true, "select parley.resume_schedule('nightly') and not parley.resume_schedule('nightly')")
	owns.Exec("select parley.unschedule('nightly')")
	owns.Refuses(208, "select parley.unschedule('nightly')")
}

func TestSchedulesThatCannotBe(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	for _, arguments := range []string{
		"cron => null", "cron => '* * * * *', every => '1 day'", "every => '0.5 seconds'", "every => '1 month'", "every => '2 years'", "cron => 'often'",
		"cron => '* * * *'", "every => '1 day', missed => 'NEVER'", "every => '1 day', time_zone => 'Mars'", "every => '1 day', time_zone => null",
		"every => '1 day', priority => 11", "every => '1 day', key => repeat('k', 257)",
	} {
		b.Refuses(8402, "select parley.schedule('s', 'jobs', 'b', "+arguments+")")
	}
	b.Refuses(8402, "select parley.schedule('', 'jobs', 'b', every => '1 day')")
	b.Refuses(8402, "select parley.schedule('s', 'Answering', 'b', every => '1 day')")
	b.Refuses(208, "select parley.schedule('s', 'none', 'b', every => '1 day')")
	// A queue takes its schedules with it, and a run its place.
	b.Exec("select parley.schedule('s', 'jobs', 'b', every => '1 day')")
	b.Exec("select parley.run_schedule('s') from generate_series(1, 103)")
	sqltest.Equal(b.Session, 100, "select count(*) from parley.schedule_runs")
	b.Exec("select parley.drop_queue('jobs', force => true)")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_schedule")
}
