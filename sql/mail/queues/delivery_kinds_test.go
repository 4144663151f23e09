package queues_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A row names objects, settings and policies that there are; a name that is misspelt would be a limit that never holds.
func TestKindsOfDeliveriesNameSettingsThatThereAre(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	sqltest.Equal(b.Session, "", `
		select coalesce(string_agg(k.kind || ' ' || n.object_kind || ' ' || n.setting, ', ' order by k.kind, n.setting), '')
		from parley_mail._p_delivery_kind as k
		cross join lateral (
			select k.object_kind, k.connections_setting
			union all select k.object_kind, k.first_connections_setting
			union all select k.object_kind, 'duplicate_window' where k.keeps_duplicates
			union all select k.object_kind, s from unnest(array['high_share', 'normal_share', 'low_share']) as s where k.has_priority_shares
		) as n (object_kind, setting)
		where n.setting is not null
			and not exists (select from parley_mail.setting_definitions as d where d.kind = n.object_kind and d.setting = n.setting)`)
	sqltest.Equal(b.Session, true, `select bool_and(object_kind is null or object_kind = any (parley_mail._p_kinds())) from parley_mail._p_delivery_kind`)
	sqltest.Equal(b.Session, true, `select array_agg(k.kind order by k.ordinal) = (
			select d.choices from parley_mail.setting_definitions as d where d.kind = 'send connector' and d.setting = 'routing')
		from parley_mail._p_delivery_kind as k where k.object_kind = 'send connector'`)
	sqltest.Equal(b.Session, true, `select bool_and((k.retry_policy is null) = (k.connections_setting is null)
			and (k.retry_policy is null or k.retry_policy in (select p.policy from parley_store.retry_policies as p)))
		from parley_mail._p_delivery_kind as k`)
	sqltest.Equal(b.Session, true, `select bool_and(system is null or system in ('mail', 'mail_service')) from parley_mail._p_delivery_kind`)
	sqltest.Equal(b.Session, true, `select bool_and(counter is null or counter in ('Remote', 'Mailbox', 'Non-Smtp', 'Unreachable', 'Poison'))
		from parley_mail._p_delivery_kind`)
}

// Statements about claims and outcomes take lanes apart for each row: a function that is called there would cost more than the rest.
func TestTakingALaneApartIsPutInLine(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	plan := strings.Join(sqltest.Values[string](b.Session, `explain (verbose) select p.connector
		from unnest('{DNS/internet/b.example}'::text[]) as u (lane) cross join parley_mail._p_parts_of_lane(u.lane) as p`), "\n")
	if strings.Contains(plan, "_p_parts_of_lane") || !strings.Contains(plan, "split_part") {
		t.Error(plan)
	}
	sqltest.Equal(b.Session, "DNS internet b.example, MAILBOX local -, a  , ", `
		select string_agg(concat_ws(' ', p.kind, p.connector, p.next_hop), ', ' order by n)
		from unnest(array['DNS/internet/b.example', 'MAILBOX/local/-', 'a', null]) with ordinality as u (lane, n)
		cross join parley_mail._p_parts_of_lane(u.lane) as p`)
}

// A kind that nobody has heard of works by its row: limits and policies, counters, filters, events, reports, duplicates.
func TestNewKindOfDeliveryIsARow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`insert into parley_mail._p_delivery_kind (kind, ordinal, system, object_kind, is_local, tracking_source, keeps_duplicates,
			connections_setting, retry_policy, counter, goes_to)
		values ('FAX', 9, 'mail', 'mailbox store', true, 'TELEPHONE', true, 'max_connections', 'mail_store', 'Non-Smtp', 'fax %1$s')`)
	b.Apply(`{"mailbox store": {"local": {"address": "unix:/run/lmtp", "max_connections": 4, "duplicate_window": 60}}}`)
	const lane = "FAX/local/-"
	b.Exec("select parley_mail._p_set_hops(array[$1])", lane)
	sqltest.Equal(b.Session, "4 mail_store t t", `select concat_ws(' ', lease_max, retry_policy, lease_start is null, priority_shares = array_fill(100, array[10]))
		from parley_store.lanes where lane = $1`, lane)
	id := b.Delivery(lane, "SUCCESS", "one@b.example")
	b.Exec("select parley_store.fold_lane_counts()")
	sqltest.Equal(b.Session, "FAX/local/- FAX local -", `select string_agg(concat_ws(' ', queue, delivery_type, connector, next_hop), ', ')
		from parley_mail.find_queues('{"delivery_type": "fax"}')`)
	sqltest.Equal(b.Session, 1, `select value::int from parley_mail.queue_counters where counter = 'Active Non-Smtp Delivery Queue Length'`)
	batch := b.ClaimMail(10, 10)
	if len(batch) != 1 || batch[0].Message != id {
		t.Fatalf("claimed %+v", batch)
	}
	b.Outcomes(batch[0], "DELIVERED")
	if got, want := b.LeftOf(id), "1 message, 0 recipients, 0 items, reports DELIVERED"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	sqltest.Equal(b.Session, true, "select host is null from parley_mail._p_report")
	sqltest.Equal(b.Session, "DELIVER TELEPHONE local", `select concat_ws(' ', event, source, fields ->> 'connector') from parley_store.tracking
		where message_id = $1::text and event not in ('SUBMIT', 'RESOLVE')`, fmt.Sprint(id))
	sqltest.Equal(b.Session, 1, `select count(*)::int from parley_mail._p_delivered where until between now() and now() + interval '61 seconds'`)
	sqltest.Equal(b.Session, true, `select parley_mail._p_configuration() -> 'kinds' -> 'FAX' = '{"object_kind": "mailbox store", "next_hop_is_domain": false}'`)
}

// Operators write the queues of which there is one by their kind.
func TestQueueOfWhichThereIsOneIsWrittenByItsKind(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	for written, want := range map[string]string{
		"SUBMISSION": "SUBMISSION/-/-", "submission/-/-": "SUBMISSION/-/-", "Poison": "POISON/-/-", "UNREACHABLE": "UNREACHABLE/-/-",
		"MAILBOX": "MAILBOX", "DNS/*": "DNS/*", "": "",
	} {
		sqltest.Equal(b.Session, want, "select parley_mail._p_queue_named($1)", written)
	}
	sqltest.Equal(b.Session, true, "select parley_mail._p_queue_named(null) is null")
}
