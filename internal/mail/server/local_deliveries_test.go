package server_test

import (
	"errors"
	"fmt"
	netsmtp "net/smtp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	mailstore "github.com/parley-broker/parley/internal/store/mail"
)

// Mail of a table is tried again whatever its code does, in the middle or at the end of the transaction, and all other mail is delivered.
func TestTableThatFailsItsTransactionHoldsUpNoOtherMail(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`create table public.box (subject text);
		create function public.obey() returns trigger language plpgsql as $$
		begin
			if new.subject = 'sleep' and current_setting('statement_timeout') = '50ms' then
				perform pg_sleep(60);
			elsif new.subject = 'die' then
				perform pg_terminate_backend(pg_backend_pid());
			elsif new.subject ~ '^[0-9]' then
				raise exception 'it says %', new.subject using errcode = new.subject;
			end if;
			return new;
		end $$;
		create constraint trigger late after insert on public.orders deferrable initially deferred for each row when (new.subject ~ '^23') execute function public.obey();
		create trigger obey after insert on public.orders for each row when (new.subject !~ '^23') execute function public.obey();
		select parley_mail.apply('{"service binding": {"box": {"pattern": "box@example.org", "table": "public.box"}}}')`)
	// The database ends what takes too long.
	h.exec("select parley_mail.send('ann', array['orders@example.org'], 'sleep', '')")
	h.exec("select parley_mail._p_categorize()")
	claimed, err := mailstore.ClaimForServices(t.Context(), h.pool, 10)
	if err != nil {
		t.Fatal(err)
	}
	_, err = mailstore.DeliverToServices(t.Context(), h.pool, claimed.Leases, []int64{claimed.Messages[0].Item}, [][]byte{nil}, 50*time.Millisecond)
	if refused, ok := errors.AsType[*pgconn.PgError](err); !ok || refused.Code != "57014" {
		t.Errorf("what sleeps ended with %v", err)
	}
	mailstore.ReleaseForServices(t.Context(), h.pool, claimed.Leases)
	// Behind what took too long the rest of its queue waits: so that comes last.
	h.exec(`select parley_mail.send('ann', array['orders@example.org'], s, '')
		from unnest(array['23503', '40001', '40P01', 'die', 'good', '57014']) with ordinality as u (s, n) order by n`)
	h.exec(`select parley_mail.send('ann', array['box@example.org'], 'good', '')`)
	h.start()
	h.await("the listener", h.listens)
	h.await("all that can be delivered", func() bool {
		return h.text(`select concat_ws(' ', (select string_agg(subject, ' ' order by subject) from public.orders), (select count(*) from public.box),
			(select string_agg(subject, ' ' order by subject) from parley_mail.waiting_recipients where attempts > 0))`) == "good sleep 1 23503 40001 40P01 57014 die"
	})
	if err := netsmtp.SendMail(h.address, nil, "cleo@c.example", []string{"box@example.org"}, crlf("Subject: late\n\n")); err != nil {
		t.Fatal(err)
	}
	h.await("mail for the other table", func() bool { return h.text("select count(*)::text from public.box") == "2" })
}

// Before each message that is delivered by itself the leases of all that wait are renewed, for longer than it may take: none of them comes
// into the hands of another daemon because those before it take long.
func TestLeasesAreRenewedBeforeEachMessageThatIsDeliveredByItself(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`create function public.fail_late() returns trigger language plpgsql as $$
		begin
			if current_setting('statement_timeout') = '10s' then
				perform pg_sleep(0.7);
			end if;
			raise exception 'it is late' using errcode = '23503';
		end $$;
		create constraint trigger late after insert on public.orders deferrable initially deferred for each row execute function public.fail_late()`)
	h.exec("select parley_mail.send('ann', array['orders@example.org'], n::text, '') from generate_series(1, 3) as n")
	h.exec("select parley_mail._p_categorize()")
	h.start()
	for n := range 3 {
		h.await(fmt.Sprintf("message %d of those that are delivered alone", n+1), func() bool {
			return h.text(`select (select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep')
				|| ' ' || (select count(*) from parley_mail.waiting_recipients where attempts > 0)`) == fmt.Sprint("1 ", n)
		})
		// A lease that its own transaction has renewed nobody sees, and the renewal goes when it fails.
		until := h.text("select min(until)::text from parley_store._p_lease")
		if left := h.text("select extract(epoch from min(until) - clock_timestamp())::integer::text from parley_store._p_lease"); len(left) < 2 || left < "30" {
			t.Errorf("while message %d is delivered the lease lasts for %s s", n+1, left)
		}
		// It waits for that transaction. Where that ended too early, the lease has been renewed for the next one, and stays.
		h.exec("update parley_store._p_lease set until = clock_timestamp() + interval '3 seconds' where until = '" + until + "'")
	}
}
