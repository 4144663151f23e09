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
		"cron => '* * * *'", "cron => '99 * * * *'", "cron => '@hourli'", "cron => '* * * * * * *'", "every => '1 day', missed => 'NEVER'", "every => '1 day', time_zone => 'Mars'", "every => '1 day', time_zone => null",
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

// A schedule of services begins a conversation each time, with the rights of its owner at that time.
func TestScheduleBeginsConversations(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	owner := b.Role("owner")
	begins := "select parley.schedule('count', from_service => '//test/Asker', to_service => '//test/Answerer', contract => '//test/Work', " +
		"message_type => '//test/Request', body => 'count', every => '1 day')"
	b.As(owner).Refuses(229, begins)
	b.Exec("select parley.grant('RECEIVE', 'queue', 'Asking', $1)", owner)
	b.Exec("select parley.grant('REFERENCES', 'contract', '//test/Work', $1)", owner)
	b.Exec("select parley.grant('REFERENCES', 'message type', '//test/Request', $1)", owner)
	b.Exec("select parley.grant('SEND', 'service', '//test/Answerer', $1)", owner)
	owns := b.As(owner)
	sqltest.Equal(owns, "t f", "select concat_ws(' ', ("+begins+"), ("+begins+"))")
	sqltest.Equal(owns, "//test/Asker //test/Answerer //test/Work //test/Request", `
		select concat_ws(' ', queue_name, from_service, to_service, contract, message_type) from parley.schedules`)
	sqltest.Equal(b.Session, true, "select parley.run_schedule('count') is null")
	sqltest.Equal(b.Session, true, "select parley.run_schedule('count') is null")
	got := b.Messages("select * from parley.receive('Answering', top => 10, groups => 10)")
	if len(got) != 2 || string(got[0].MessageBody) != "count" || got[0].ConversationHandle == got[1].ConversationHandle {
		t.Errorf("received %+v", got)
	}
	sqltest.Equal(b.Session, 2, `
		select count(distinct r.conversation_handle)
		from parley.schedule_runs as r
		join parley.conversation_endpoints as e on e.conversation_handle = r.conversation_handle and e.is_initiator = 1
		where r.message_id is null and r.error is null`)
	sqltest.Equal(b.Session, true, "select last_conversation_handle is not null and last_message_id is null from parley.schedules")
	sqltest.Equal(b.As(b.Role("nobody")), 0, "select (select count(*) from parley.schedules) + (select count(*) from parley.schedule_runs)")

	// It may become one of a queue, and the other way round.
	sqltest.Equal(b.Session, true, "select parley.schedule('own', 'jobs', 'count', every => '1 day', key => 'k')")
	sqltest.Equal(b.Session, true, "select parley.schedule('own', from_service => '//test/Asker', to_service => '//test/Answerer', every => '1 day')")
	sqltest.Equal(b.Session, true, "select from_service is not null and queue_name is null and key is null from parley.schedules where name = 'own'")
	b.Exec("select parley.revoke('RECEIVE', 'queue', 'Asking', $1)", owner)
	b.Refuses(229, "select parley.run_schedule('count')")
	// A service takes its schedules with it.
	b.Exec("select parley.drop_service('//test/Asker')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_schedule")
}

func TestScheduleIsForAQueueOrForServices(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	const services = "from_service => '//test/Asker', to_service => '//test/Answerer'"
	for arguments, number := range map[string]int{
		"'jobs', " + services:                                     8402,
		"body => 'b'":                                             8402,
		"from_service => '//test/Asker'":                          8402,
		"'jobs', to_service => '//test/Answerer'":                 8402,
		services + ", key => 'k'":                                 8402,
		services + ", priority => 6":                              8402,
		services + ", message_type => ''":                         8402,
		services + ", contract => null":                           8417,
		services + ", contract => 'none'":                         8425,
		"from_service => 'none', to_service => '//test/Answerer'": 8423,
		"from_service => '//test/Asker', to_service => ''":        8412,
	} {
		b.Refuses(number, "select parley.schedule('s', "+arguments+", every => '1 day')")
	}
}

// The daemon asks every second when a schedule is due next: however many there are, it reads none that is not.
func TestSchedulesThatAreNotDueAreNotRead(t *testing.T) {
	t.Parallel()
	b := sqltest.NewJobs(t)
	b.Exec("select parley.schedule('s', 'jobs', 'b', every => '1 day')")
	b.Exec("alter table parley._p_schedule disable trigger _p_number_roles") // The role has its number.
	b.Exec(`
		insert into parley._p_schedule (name, owner, queue_id, cron, every, time_zone, missed, priority, next_at, wake_at)
		select 's' || n, s.owner, s.queue_id, s.cron, s.every, s.time_zone, s.missed, s.priority, now() + interval '1 day' + n * interval '1 s',
			now() + interval '1 day' + n * interval '1 s'
		from parley._p_schedule as s
		cross join generate_series(1, 10000) as n`)
	b.Exec("update parley._p_schedule set next_at = now() + interval '1 hour', wake_at = now() + interval '1 hour' where name = 's'")
	b.RequireFewReads(20, "select parley._p_next_schedule_ms()")
	sqltest.Equal(b.Session, true, "select parley._p_next_schedule_ms() between 3500000 and 3600000")
	term := sqltest.Value[int64](b.Session, "select parley._p_lead(leader => 'a test', term => 0, milliseconds => 600000, serves_neighbours => false)")
	b.RequireFewReads(40, "select from parley._p_due_schedules($1, 100)", term)
	sqltest.Equal(b.Session, 0, "select count(*) from parley._p_due_schedules($1, 100)", term)
}
