package queues_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestRateOfADestinationPutsItsQueueOffWithoutAnAttempt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ rate, host string }{
		{rate: `[{"key": "DOMAIN", "messages": 2, "per": 3600}]`},
		{rate: `[{"key": "DOMAIN", "match": "b.example", "messages": 2, "per": 3600}, {"key": "TAG", "messages": 1, "per": 1}]`},
		{rate: `[{"key": "HOST", "match": "*.provider.example", "messages": 2, "per": 3600}]`, host: "mx1.provider.example"},
		{rate: `[{"key": "SOURCE", "match": "192.0.2.1", "recipients": 2, "per": 3600}]`},
		{rate: `[{"key": "remote_ip", "match": "2001:DB8::25", "messages": 2, "per": 3600}, {"key": "REMOTE_IP", "match": "192.0.2.1", "messages": 1, "per": 3600}]`},
	} {
		t.Run(c.rate, func(t *testing.T) {
			t.Parallel()
			b := sqltest.NewMail(t)
			b.Rates(c.rate)
			for n := range 4 {
				b.Delivery("DNS/internet/b.example", "", fmt.Sprintf("r%d@b.example", n))
			}
			other := b.Delivery("DNS/internet/c.example", "", "one@c.example")
			b.Exec(`delete from parley_store._p_item as i using parley_store._p_lane as l where i.lane_id = l.lane_id and l.lane like '%c.example'`)
			batch := b.ClaimMail(1, 10)
			allowed := b.Permit(batch, c.host)
			if fmt.Sprint(allowed) != fmt.Sprint([]int64{batch[0].Item, batch[1].Item}) {
				t.Fatalf("allowed %v of %+v", allowed, batch)
			}
			sqltest.Equal(b.Session, "POSTPONED 0 0", `select format('%s %s %s', l.status, l.failures, (select max(attempts) from parley_store.work_items as w where w.lane = l.lane))
				from parley_store.lanes as l where l.lane = 'DNS/internet/b.example'`)
			// Two tokens come in an hour: the two that are left wait for as long.
			sqltest.Equal(b.Session, true, `select next_attempt_at > now() + interval '55 minutes' from parley_store.lanes where lane = 'DNS/internet/b.example'`)
			sqltest.Equal(b.Session, "READY", `select status from parley_mail.queues where queue = 'DNS/internet/b.example'`)
			if again := b.ClaimMail(5, 10); len(again) != 0 {
				t.Errorf("claimed before there are tokens: %+v", again)
			}
			// A success that is reported of what went does not end the wait.
			b.Exec(`select parley_mail._p_report_hops('{DNS/internet/b.example}', array[null], array[now()])`)
			if again := b.ClaimMail(5, 10); len(again) != 0 {
				t.Errorf("claimed before there are tokens: %+v", again)
			}
			b.Exec(`update parley_mail._p_rate_bucket set filled_at = now() - interval '1 hour', reserved_to = now()`)
			b.Exec(`select parley_mail.retry_queue('DNS/internet/b.example')`)
			again := b.ClaimMail(1, 10)
			if len(again) != 2 || len(b.Permit(again, c.host)) != 2 {
				t.Errorf("with new tokens %+v", again)
			}
			_ = other
		})
	}
}

func TestRateOfASenderPutsOffHisMessagesAlone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Rates(`[{"key": "TAG", "match": "bulk", "messages": 1, "per": 60}]`)
	var ids []int64
	for n, tag := range []string{"bulk", "bulk", "", "bulk"} {
		ids = append(ids, b.Delivery("DNS/internet/b.example", "", fmt.Sprintf("r%d@b.example", n)))
		b.Exec(`update parley_mail._p_message set tag = nullif($2, '') where message_id = $1`, ids[n], tag)
	}
	batch := b.ClaimMail(1, 10)
	if allowed := b.Permit(batch, ""); fmt.Sprint(allowed) != fmt.Sprint([]int64{batch[0].Item, batch[2].Item}) {
		t.Fatalf("allowed %v of %+v", allowed, batch)
	}
	// One a minute, each at a time of its own.
	sqltest.Equal(b.Session, "DELAYED 0 1, DELAYED 0 2", `select string_agg(format('%s %s %s', state, attempts, round(extract(epoch from due_at - now()) / 60)), ', ' order by due_at)
		from parley_store.work_items where state <> 'IN_FLIGHT'`)
	b.Delivery("DNS/internet/b.example", "", "next@b.example")
	if next := b.ClaimMail(1, 10); len(next) != 1 {
		t.Errorf("the queue waits for the messages of one sender: %+v", next)
	}
}

func TestTokensAreSharedByAllDaemons(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Rates(`[{"key": "HOST", "match": "*.provider.example", "messages": 7, "per": 3600}]`)
	const daemons, each = 4, 5
	batches := make([][]sqltest.Claimed, daemons)
	for d := range daemons {
		for n := range each {
			b.Delivery(fmt.Sprintf("DNS/internet/d%d.example", d), "", fmt.Sprintf("r%d@d%d.example", n, d))
		}
	}
	for d := range daemons {
		batches[d] = b.ClaimMail(1, each)
	}
	allowed := make(chan int, daemons)
	var running sync.WaitGroup
	for d := range daemons {
		daemon := b.Connection()
		running.Go(func() { allowed <- len(daemon.Permit(batches[d], fmt.Sprintf("mx%d.provider.example", d))) })
	}
	running.Wait()
	close(allowed)
	sum := 0
	for n := range allowed {
		sum += n
	}
	if sum != 7 {
		t.Errorf("%d messages may be sent, of 7", sum)
	}
	sqltest.Equal(b.Session, 1, `select count(*)::int from parley_mail._p_rate_bucket`)
}

func TestWithoutRatesNothingIsCounted(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Delivery("DNS/internet/b.example", "", "one@b.example")
	batch := b.ClaimMail(1, 10)
	if allowed := b.Permit(batch, "mx.b.example"); len(allowed) != 1 {
		t.Errorf("allowed %v", allowed)
	}
	sqltest.Equal(b.Session, 0, `select count(*)::int from parley_mail._p_rate_bucket`)
	for _, rate := range []string{
		`{"key": "DOMAINS", "messages": 1, "per": 1}`, `{"key": "TAG", "messages": 1}`, `{"key": "TAG", "messages": 1, "recipients": 1, "per": 1}`,
		`{"key": "TAG", "messages": 0, "per": 1}`, `{"key": "TAG", "messages": 1, "per": 1, "unit": 1}`, `{"messages": 1, "per": 1}`,
	} {
		b.RefusesMail(3, `select parley_mail.alter_object('send connector', 'internet', jsonb_build_object('rates', jsonb_build_array($1::jsonb)))`, rate)
	}
	b.As(b.Role("outsider")).RefusesMail(1, `select parley_mail._p_permit('DNS/internet/b.example', 1, '{1}', '{1}', null, null)`)
}
