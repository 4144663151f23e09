package arrival_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A report that is not sent says so among the events of its message.
func TestReportBeyondTheRateIsADropOfItsMessage(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`select parley_mail.alter_object('organization', 'organization', '{"dsn_rate": 2}')`)
	id := b.Delivery("DNS/internet/b.example", "", "one@b.example")
	for range 2 {
		sqltest.Equal(b.Session, true, "select parley_mail._p_may_report($1, 'x@example.com')", id)
		if got := b.Tracked(id, "DSN"); got != "" {
			t.Errorf("events within the rate: %s", got)
		}
	}
	sqltest.Equal(b.Session, false, "select parley_mail._p_may_report($1, 'X@Example.com')", id)
	if got := b.Tracked(id, "DSN"); got != "DROP" {
		t.Errorf("events beyond the rate: %q", got)
	}
	sqltest.Equal(b.Session, true, "select parley_mail._p_may_report($1, 'y@example.com')", id)
}

// Another message under a key that was used would be lost: its submitter has the number of the first.
func TestKeyOfARawMessageIsForItsBytes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	shop := b.Sender("shop")
	const send = "select parley_mail.send('shop', array['x@example.com'], raw => convert_to(E'From: a@example.org\\n\\n' || $1::text, 'UTF8'), idempotency_key => 'key')"
	first := sqltest.Value[int64](shop, send, "one")
	sqltest.Equal(shop, first, send, "one")
	shop.RefusesMail(11, send, "two")
	b.RequireSubmitted(1)
}

// A message that a mailbox has got makes a duplicate for the window alone, also where maintenance has not been there since.
func TestDuplicateIsNoneAfterTheWindow(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	deliver := func() (delivered int) {
		t.Helper()
		id := b.Arriving("x@example.com", "ann@example.org")
		b.Exec("update parley_mail._p_message set identity = '00000000-0000-0000-0000-000000000001' where message_id = $1", id)
		b.Categorize("1 0 0")
		for _, c := range b.ClaimMail(10, 10) {
			b.Outcomes(c, "DELIVERED")
			delivered++
		}
		return delivered
	}
	b.Exec(`select parley_mail.alter_object('mailbox store', 'local', '{"duplicate_window": 600}')`)
	if got := deliver(); got != 1 {
		t.Fatalf("%d were delivered", got)
	}
	sqltest.Equal(b.Session, true, "select until between now() + interval '9 minutes' and now() + interval '11 minutes' from parley_mail._p_delivered")
	if got := deliver(); got != 0 {
		t.Errorf("%d were delivered within the window", got)
	}
	b.Exec("update parley_mail._p_delivered set until = clock_timestamp() - interval '1 millisecond'")
	if got := deliver(); got != 1 {
		t.Errorf("%d were delivered after the window", got)
	}
}

// An owner whose table forces its policies on him is asked them himself.
func TestBindingAsksAboutForcedRowSecurity(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	owner, role := sqltest.Value[string](b.Session, "select current_user::text"), b.Role("administrator")
	b.Exec("select parley_mail.grant_right('ADMINISTER', $1)", role)
	b.Exec("grant " + sqltest.Quote(owner) + " to " + sqltest.Quote(role))
	b.Exec("create table public.box (sender text)")
	b.Afterwards("drop table public.box")
	b.As(role).Exec(`select parley_mail.apply('{"service binding": {"box": {"pattern": "box@example.org", "table": "public.box"}}}')`)
	for _, test := range []struct {
		statement string
		delivered int
	}{
		{"alter table public.box enable row level security", 1},
		{"alter table public.box force row level security", 0},
		{"alter table public.box no force row level security", 2},
	} {
		b.Exec(test.statement)
		b.Exec("select parley_mail.send('ann', array['box@example.org'], 'a', 'b')")
		b.Exec("select parley_mail._p_categorize()")
		b.Exec("select parley_mail.retry_messages('{}')")
		sqltest.Equal(b.Session, test.delivered, "select parley_mail._p_deliver_to_services()")
	}
}
