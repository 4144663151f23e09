package views_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

const destination = "tcp://there.example:4022"

// farDialog begins a dialog with a service behind an address, without encryption.
func farDialog(s sqltest.Session) string {
	s.Helper()
	s.CreateRoute("there", destination, sqltest.Far)
	return sqltest.Value[string](s, "select parley.begin_dialog('//test/Asker', $1, encryption => false)", sqltest.Far)
}

func TestDestinationsShowWhatWaitsForThemAndHowTheLastAttemptWent(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	sqltest.Equal(b.Session, 0, "select count(*) from parley.transmission_destinations()")
	handle := farDialog(b.Session)
	b.Send(handle, "DEFAULT", "one")
	b.Exec("select parley.send_batch($1::uuid, 'DEFAULT', array['two', 'three', 'four'])", handle)
	const reported = `
		select format('%s waiting %s estimated %s transit %s attempts %s status %s due %s old %s', address, waiting_messages, is_estimated,
			messages_in_transit, attempts, transmission_status, next_attempt_time is not null, oldest_enqueue_time <= clock_timestamp())
		from parley.transmission_destinations()`
	sqltest.Equal(b.Session, destination+" waiting 4 estimated f transit 0 attempts 0 status  due f old t", reported)

	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	sqltest.Equal(b.Session, 2, `
		select count(*) from parley._p_take_runs(1, (select d.destination_id from parley._p_destination as d), 2, 1000000)`)
	sqltest.Equal(b.Session, destination+" waiting 0 estimated f transit 4 attempts 0 status  due f old t", reported)
	b.Exec("select parley._p_report_attempt(1, (select d.destination_id from parley._p_destination as d), 'nobody there')")
	sqltest.Equal(b.Session, destination+" waiting 0 estimated f transit 4 attempts 1 status nobody there due t old t", reported)
}

// Beyond 10,000 rows what waits is estimated: here from rows that are all alike, so it is exact but for the ends.
func TestLongTransmissionQueueIsEstimated(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := farDialog(b.Session)
	b.Exec("select parley.send($1::uuid, 'DEFAULT', n::text) from generate_series(1, 15000) as n", handle)
	sqltest.Equal(b.Session, true, `
		select is_estimated and waiting_messages between 14500 and 15500 from parley.transmission_destinations()`)
}

func TestDestinationsAreShownToAdministratorsOnly(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	farDialog(b.Session)
	b.As(b.Role("curious")).Refuses(15151, "select * from parley.transmission_destinations()")
}

// A take scans its lane more than once. Where it begins must lie in front of all that senders under way may still put there, or it
// would number the later messages of one of them first (keeps S4).
func TestTakeBeginsInFrontOfWhatSendersUnderWayHave(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	slow := farDialog(b.Session)
	quick := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', $1, encryption => false)", sqltest.Far)
	b.Send(slow, "DEFAULT", "opening")
	b.Send(quick, "DEFAULT", "opening")
	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	take := "select count(*) from parley._p_take_runs(1, (select d.destination_id from parley._p_destination as d), 100, 1000000)"
	sqltest.Equal(b.Session, 2, take)
	sender := b.Begin()
	sender.Send(slow, "DEFAULT", "1")
	b.Send(quick, "DEFAULT", "2")
	low := sqltest.Value[int64](b.Session, `
		select parley._p_low_position(d.destination_id, parley._p_lane(d.destination_id, 5)) from parley._p_destination as d`)
	sender.Send(slow, "DEFAULT", "3")
	sender.Commit()
	if first := sqltest.Value[int64](b.Session, "select min(m.position) from parley._p_message as m"); low > first {
		t.Errorf("the take begins at %d, and the first message has the position %d", low, first)
	}
	sqltest.Equal(b.Session, 3, take)
}

// END CONVERSATION WITH ERROR drops what is not on its way yet row by row. A take that comes half way must not begin with what END has not got
// at, which would be the far side's first message (keeps S4). Other conversations go on.
func TestTakeLeavesAConversationOfWhichAnEarlierMessageIsBeingDropped(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	ending := farDialog(b.Session)
	other := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', $1, encryption => false)", sqltest.Far)
	for _, text := range []string{"1", "2", "3", "4"} {
		b.Send(ending, "DEFAULT", text)
		b.Send(other, "DEFAULT", text)
	}
	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	take := `
		select coalesce(string_agg(parley.body_text(t.body), ' ' order by t.first_sequence, t.ordinal), '')
		from (
			select r.first_sequence, b.ordinal, b.body
			from parley._p_take_runs(1, (select d.destination_id from parley._p_destination as d), 100, 1000000) as r
			cross join unnest(r.bodies) with ordinality as b (body, ordinal)
			where r.conversation_id = (select e.conversation_id from parley._p_endpoint as e where e.conversation_handle = $1)
		) as t`
	hold := func(place int) sqltest.Session {
		ender := b.Begin()
		ender.Exec(`
			select from parley._p_message as m
			where m.position = (
				select n.position
				from parley._p_message as n
				join parley._p_endpoint as e on n.endpoint_id = -e.endpoint_id
				where e.conversation_handle = $1
				order by n.position
				offset $2
				limit 1
			)
			for update`, ending, place)
		return ender
	}
	ender := hold(2)
	sqltest.Equal(b.Session, "1 2", take, ending)
	ender.Rollback()
	ender = hold(0)
	sqltest.Equal(b.Session, "", take, ending)
	sqltest.Equal(b.Session, 4, "select count(*) from parley._p_transit as t join parley._p_endpoint as e using (endpoint_id) where e.conversation_handle = $1", other)
	ender.Rollback()
	sqltest.Equal(b.Session, "3 4", take, ending)
}

// An answer that is late asks for what END CONVERSATION WITH ERROR has dropped since, or for what was forgotten when the far side ended. Nothing
// was lost, so that no Error says so.
func TestLateAnswerBreaksNoConversationThatIsOver(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	farDialog(b.Session)
	sqltest.Equal(b.Session, int64(1), "select parley._p_lead('a daemon', 0, 60000)")
	begin := func() string {
		handle := sqltest.Value[string](b.Session, "select parley.begin_dialog('//test/Asker', $1, encryption => false)", sqltest.Far)
		for _, text := range []string{"1", "2", "3"} {
			b.Send(handle, "DEFAULT", text)
		}
		b.Exec("select from parley._p_take_runs(1, (select d.destination_id from parley._p_destination as d), 100, 1000000)")
		return handle
	}
	const inTransit = `
		select count(*) from parley._p_transit as t join parley._p_endpoint as e using (endpoint_id) where e.conversation_handle = $1`
	answer := func(handle string, first int, outcome string, next int) {
		b.Exec(`
			select parley._p_acknowledge(1, array[e.endpoint_id], array[$2::bigint], array[true], array[false], array[$3], array[$4::bigint],
				array[null::integer], array[null::text], array[gen_random_uuid()], array[1::bigint])
			from parley._p_endpoint as e
			where e.conversation_handle = $1`, handle, first, outcome, next)
	}
	handle := begin()
	answer(handle, 0, "accepted", 1)
	b.Exec("select parley.end_conversation($1::uuid, 9, 'mine')", handle)
	answer(handle, 2, "expected", 1)
	sqltest.Equal(b.Session, true, `
		select convert_from(m.body, 'UTF8') like '%mine%'
		from parley._p_message as m
		join parley._p_endpoint as e on m.endpoint_id = -e.endpoint_id
		where e.conversation_handle = $1 and m.message_type_id = -1`, handle)
	sqltest.Equal(b.Session, 0, inTransit, handle)

	handle = begin()
	answer(handle, 0, "accepted", 1)
	b.Exec("select parley._p_accept_end(e, 2, null) from parley._p_endpoint as e where e.conversation_handle = $1", handle)
	sqltest.Equal(b.Session, 0, inTransit, handle)
	answer(handle, 2, "expected", 1)
	sqltest.Equal(b.Session, "DISCONNECTED_INBOUND", "select e.state_desc from parley.conversation_endpoints as e where e.conversation_handle = $1", handle)
}
