package queues_test

import (
	"fmt"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// endLeases ends all leases, as when their daemons are gone, and gives their items back.
func endLeases(b *sqltest.Broker) {
	b.Helper()
	b.Exec(`update parley_store._p_lease set until = now() - interval '1 second'`)
	b.Exec(`select parley_store.expire_leases()`)
}

// Wherever its item has come to meanwhile: what is suspended nobody claims, and no operation would reach it.
func TestWorkOfAMessageGoesWithAnOutcomeThatComesLate(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]string{
		"waiting":              "select 1",
		"suspended":            `select parley_mail.suspend_messages('{}')`,
		"in a suspended queue": `select parley_mail.suspend_queue('DNS/internet/b.example')`,
		"delayed":              `select parley_mail.change_messages('{}', next_attempt => now() + interval '1 hour')`,
		"poison": `with gone as (select parley_store.remove_work('mail', '{"lane": "DNS/internet/b.example"}')),
			moved as (update parley_mail._p_recipient set lane = 'POISON/-/-')
			select parley_mail._p_set_aside(array(select message_id from parley_mail._p_message), 'for a test') from gone`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewMail(t)
			id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
			first := b.ClaimMail(1, 1)[0]
			endLeases(b)
			b.Exec(meanwhile)
			b.Late(first, "DELIVERED")
			if got := b.LeftOf(id); got != "0 message, 0 recipients, 0 items, reports none" {
				t.Errorf("left: %s", got)
			}
			b.Exec("select parley_store.fold_lane_counts()")
			sqltest.Equal(b.Session, 0, "select coalesce(sum(messages), 0) from parley_mail.queues where queue <> 'SUBMISSION/-/-'")
		})
	}
}

// Resumed, it would be categorized as a message that never was, and sent to everybody again.
func TestPoisonThatWasDeliveredAfterAllIsNotResumed(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	b.Exec(`insert into parley_mail._p_recipient (message_id, ordinal, address, lane) values ($1, 2, 'two@c.example', 'DNS/internet/c.example')`, id)
	b.Exec(`select parley_store.put_work('mail', '{DNS/internet/c.example}', array[$1::bigint])`, id)
	b.Exec("select parley_mail.suspend_queue('DNS/internet/c.example')")
	first := b.ClaimMail(1, 1)[0]
	endLeases(b)
	b.Exec(`select parley_store.remove_work('mail', '{"lane": "DNS/internet/b.example"}')`)
	b.Exec(`update parley_mail._p_recipient set lane = 'POISON/-/-' where ordinal = 1`)
	b.Exec(`select parley_mail._p_set_aside(array[$1::bigint], 'for a test')`, id)
	b.Late(first, "DELIVERED")
	sqltest.Equal(b.Session, 0, `select parley_mail.resume_messages('{"queue": "POISON/-/-"}')`)
	if got := b.LeftOf(id); got != "1 message, 1 recipients, 1 items, reports none" {
		t.Errorf("left: %s", got)
	}
}

func TestWorkWithoutItsMessageIsFoundAndSwept(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	const orphans = "select count(*) from parley_store.work_items where system in ('mail', 'mail_service')"
	orphan := func() {
		b.Exec(`select parley_store.put_work('mail', '{DNS/internet/b.example,DNS/internet/c.example,POISON/-/-}', '{11,12,13}')`)
		b.Exec(`select parley_store.put_work('mail_service', '{SERVICE/x/b.example}', '{14}')`)
		b.Exec(`select parley_store.suspend_work('mail', '{"lane": "DNS/internet/b.example"}', 'for a test')`)
		b.Exec(`select parley_store.suspend_work('mail_service', '{}', 'for a test')`)
		b.Exec("select parley_store.suspend_lane('mail', 'DNS/internet/c.example', 'for a test')")
	}
	// Of a message that is there nothing is swept, wherever it stands: in the queue of poison without a recipient, too.
	kept := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	b.Exec(`select parley_mail.suspend_messages('{}')`)
	poison := sqltest.Value[int64](b.Session, `select parley_mail.send('ann@example.org', '{two@b.example}', 'hello')`)
	b.Exec(`select parley_mail._p_set_aside(array[$1::bigint], 'for a test')`, poison)
	sqltest.Equal(b.Session, 2, orphans)
	if found := b.Check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}

	orphan()
	sqltest.Equal(b.Session, 6, orphans)
	found := fmt.Sprint(b.Check("check_broker()"))
	const want = "[{0 mail queue DNS/internet/b.example <nil> false} {0 mail queue DNS/internet/c.example <nil> false} " +
		"{0 mail queue POISON/-/- <nil> false} {0 mail queue SERVICE/x/b.example <nil> false}]"
	if found != want {
		t.Errorf("found %s", found)
	}
	b.WaitUntil("select exists (select from parley_mail._p_maintain() where task = 'orphaned work' and done = 4)")
	sqltest.Equal(b.Session, 2, orphans)
	sqltest.Equal(b.Session, 0, "select count(*) from parley_store.operations where operation = 'remove'")

	orphan()
	if found := b.Check("check_broker(repair => true)"); len(found) != 4 || !found[0].Repaired {
		t.Errorf("repaired %+v", found)
	}
	sqltest.Equal(b.Session, fmt.Sprint([]int64{kept, poison}), "select format('[%s]', string_agg(subject::text, ' ' order by subject)) from parley_store.work_items")
}

// A message that stands in a queue and has no work item would never be delivered.
func TestMessageWithoutWorkIsFoundAndCategorizedAnew(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example", "two@b.example")
	b.Exec(`select parley_store.remove_work('mail', '{}')`)
	// Others of its queue, and itself in another queue, have theirs.
	b.Delivery("DNS/internet/b.example", "", "three@b.example")
	b.Exec(`insert into parley_mail._p_recipient (message_id, ordinal, address, lane) values ($1, 3, 'one@c.example', 'DNS/internet/c.example')`, id)
	b.Exec(`select parley_store.put_work('mail', '{DNS/internet/c.example}', array[$1::bigint])`, id)
	if found := b.Check("check_broker()"); len(found) != 1 || found[0].ObjectName != "DNS/internet/b.example" {
		t.Fatalf("found %+v", found)
	}
	b.Check("check_broker(repair => true)")
	b.WaitUntil("select exists (select from parley_mail._p_categorize() where categorized > 0)")
	if got := b.LeftOf(id); got != "1 message, 3 recipients, 2 items, reports none" {
		t.Errorf("left: %s", got)
	}
	if found := b.Check("check_broker()"); len(found) != 0 {
		t.Errorf("found %+v", found)
	}
}
