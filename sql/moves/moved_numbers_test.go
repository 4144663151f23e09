package moves_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// without are the sequences of which no row may say how far they were, with the reason.
var without = map[string]string{
	"wakeup": "until when somebody sleeps", "rollback": "counts of what came back, about messages that are there", "counter": "who counted that",
	"_p_next_": "when to scan next: early is right", "_p_alarm_wakeup": "until when somebody sleeps", "_p_transmission_wakeup": "until when somebody sleeps",
	"_p_savepoint_": "of transactions that run", "_p_report_": "for half a second", "_p_framed_": "a counter of figures", "_p_leader_lease": "until when somebody leads",
	"_p_poison_found": "a mark", "_p_trace_until": "until when something is traced", "_p_broker_switch": "a switch", "quota": "until where nobody counts",
}

// A sequence that is set back, as in a copy without the values of sequences, is found before anything is lost, and put right.
func TestEverySequenceThatIsBehindIsFoundAndPutRight(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(sqltest.World)
	b.Conversation()
	b.Exec("select parley.create_queue('Simple', kind => 'SIMPLE')")
	b.Exec("select parley.put('Simple', 'a'), parley.put('Simple', 'b', deliver_at => now() + interval '1 day') from generate_series(1, 3)")
	b.Exec("select parley.send($1::uuid, $2, 'c') from generate_series(1, 3)", b.DialogTo("//test/Answerer"), sqltest.Request)
	b.Exec("select parley_mail.send('shop', array['x@example.com'], 'Order ' || n, repeat('a', 20000)) from generate_series(1, 3) as g (n)")
	b.Exec("select parley_mail._p_categorize()")
	for _, sequence := range sqltest.Values[string](b.Session, `
		select c.oid::regclass::text from pg_class as c
		where c.relkind = 'S' and c.relnamespace::regnamespace::text like 'parley%' order by 1`) {
		if reason := reasonWithout(sequence); reason == "" {
			t.Run(sequence, func(t *testing.T) { requireFoundBehind(t, b, sequence) })
		}
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.check_broker() where level = 'ERROR'")
}

func reasonWithout(sequence string) string {
	for part, reason := range without {
		if strings.Contains(sequence, part) {
			return reason
		}
	}
	return ""
}

// requireFoundBehind sets a sequence back, and requires that it has a floor where its numbers are in use.
func requireFoundBehind(t *testing.T, b *sqltest.Broker, sequence string) {
	t.Helper()
	s := sqltest.Session{T: t, DB: b.DB}
	sqltest.Equal(s, true, "select exists (select from parley._p_sequence_floors() as f where f.sequence = $1::text::regclass)", sequence)
	floor := sqltest.Value[int64](s, "select coalesce(max(f.floor), 0) from parley._p_sequence_floors() as f where f.sequence = $1::text::regclass", sequence)
	if floor <= sqltest.Value[int64](s, "select s.start_value from pg_sequences as s where format('%I.%I', s.schemaname, s.sequencename)::regclass = $1::text::regclass", sequence) {
		return
	}
	const found = "select count(*)::int from parley.diagnose_configuration() as f where f.code = 'sequence-behind' and f.object_name = $1"
	const checked = "select count(*)::int from parley.check_broker() as f where f.object_kind = 'sequence' and f.object_name = $1"
	sqltest.Equal(s, 0, found, sequence)
	s.Exec("select setval($1::text::regclass, 1, false)", sequence)
	sqltest.Equal(s, 1, found, sequence)
	sqltest.Equal(s, 1, checked, sequence)
	s.Exec("select parley.enable_broker()")
	sqltest.Equal(s, 0, found, sequence)
	sqltest.Equal(s, true, "select nextval($1::text::regclass) > $2", sequence, floor)
	s.Exec("select setval($1::text::regclass, 1, false)", sequence)
	sqltest.Equal(s, true, "select bool_or(f.repaired) from parley.check_broker(repair => true) as f where f.object_kind = 'sequence' and f.object_name = $1", sequence)
	sqltest.Equal(s, 0, checked, sequence)
}

// A message that was sent while the sequence of a queue was behind is behind the readers too, who never return there; enabling the broker
// brings it back.
func TestMessagesThatWerePassedByComeBackWhenTheBrokerIsEnabled(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	handle := b.Dialog()
	b.Exec("select parley.send($1::uuid, $2, n::text) from generate_series(1, 2000) as g (n)", handle, sqltest.Request)
	for receiveSome(b) > 0 {
	}
	b.Exec("select setval((select position_sequence from parley._p_queue where name = 'Answering'), 1)")
	for _, body := range []string{"first", "second", "third"} {
		b.Send(handle, sqltest.Request, body)
	}
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.receive('Answering')")
	sqltest.Equal(b.Session, 1, "select count(*)::int from parley.diagnose_configuration() as f where f.code = 'messages-passed-by' and f.object_name = 'Answering'")
	b.Exec("select parley.enable_broker()")
	sqltest.Equal(b.Session, "first,second,third", "select string_agg(convert_from(message_body, 'UTF8'), ',') from parley.receive('Answering', top => 10)")
	sqltest.Equal(b.Session, 0, "select count(*)::int from parley.diagnose_configuration()")
	b.Send(handle, sqltest.Request, "fourth")
	sqltest.Equal(b.Session, "fourth", "select convert_from(message_body, 'UTF8') from parley.receive('Answering', top => 10)")
}

// receiveSome receives a hundred messages at most and gives how many it has got; readers record where to begin now and then.
func receiveSome(b *sqltest.Broker) int {
	b.Helper()
	b.Exec("select setval('parley._p_next_probe', 0)")
	return sqltest.Value[int](b.Session, "select count(*)::int from parley.receive('Answering', top => 100)")
}

// Items of the store carry the number of a transaction. In another server transactions have lower ones, and what they put must not be passed by.
func TestWorkOfAServerWithHigherTransactionsHidesNothingNewer(t *testing.T) {
	t.Parallel()
	for _, isEnabled := range []bool{false, true} {
		t.Run(map[bool]string{false: "before it is enabled", true: "enabled"}[isEnabled], func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewStore(t)
			b.PutWork("lane", 1, 1)
			b.Exec("update parley_store._p_item set put_by = '999999999999'")
			if isEnabled {
				b.Exec("update parley._p_broker set system_identifier = 1")
				b.Exec("select parley.enable_broker()")
				sqltest.Equal(b.Session, true, "select bool_and(put_by < pg_current_xact_id()) from parley_store._p_item")
			}
			b.Exec("select parley_store._p_renew_mark(i.lane_id, i.priority, parley_store._p_newest_mark(i.lane_id, i.priority)) from parley_store._p_item as i")
			b.PutWork("lane", 2, 2)
			got := b.Claim("lane", 10)
			slices.Sort(got)
			b.RequireClaimed(got, []int64{1, 2})
		})
	}
}
