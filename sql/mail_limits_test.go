package sql_test

import "testing"

// A report that is not sent says so among the events of its message.
func TestReportBeyondTheRateIsADropOfItsMessage(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	b.exec(`select parley_mail.alter_object('organization', 'organization', '{"dsn_rate": 2}')`)
	id := b.delivery("DNS/internet/b.example", "", "one@b.example")
	for range 2 {
		equal(b.session, true, "select parley_mail._p_may_report($1, 'x@example.com')", id)
		if got := b.tracked(id, "DSN"); got != "" {
			t.Errorf("events within the rate: %s", got)
		}
	}
	equal(b.session, false, "select parley_mail._p_may_report($1, 'X@Example.com')", id)
	if got := b.tracked(id, "DSN"); got != "DROP" {
		t.Errorf("events beyond the rate: %q", got)
	}
	equal(b.session, true, "select parley_mail._p_may_report($1, 'y@example.com')", id)
}

// Another message under a key that was used would be lost: its submitter has the number of the first.
func TestKeyOfARawMessageIsForItsBytes(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	shop := b.sender("shop")
	const send = "select parley_mail.send('shop', array['x@example.com'], raw => convert_to(E'From: a@example.org\\n\\n' || $1::text, 'UTF8'), idempotency_key => 'key')"
	first := value[int64](shop, send, "one")
	equal(shop, first, send, "one")
	shop.refusesMail(11, send, "two")
	b.requireSubmitted(1)
}

// What a mailbox has got is a duplicate for the window alone, also where maintenance has not been there since.
func TestDuplicateIsNoneAfterTheWindow(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	deliver := func() (delivered int) {
		t.Helper()
		id := b.arriving("x@example.com", "ann@example.org")
		b.exec("update parley_mail._p_message set identity = '00000000-0000-0000-0000-000000000001' where message_id = $1", id)
		b.categorize("1 0 0")
		for _, c := range b.claimMail(10, 10) {
			b.outcomes(c, "DELIVERED")
			delivered++
		}
		return delivered
	}
	b.exec(`select parley_mail.alter_object('mailbox store', 'local', '{"duplicate_window": 600}')`)
	if got := deliver(); got != 1 {
		t.Fatalf("%d were delivered", got)
	}
	equal(b.session, true, "select until between now() + interval '9 minutes' and now() + interval '11 minutes' from parley_mail._p_delivered")
	if got := deliver(); got != 0 {
		t.Errorf("%d were delivered within the window", got)
	}
	b.exec("update parley_mail._p_delivered set until = clock_timestamp() - interval '1 millisecond'")
	if got := deliver(); got != 1 {
		t.Errorf("%d were delivered after the window", got)
	}
}

// An owner whose table forces its policies on him is asked them himself.
func TestBindingAsksAboutForcedRowSecurity(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	owner, role := value[string](b.session, "select current_user::text"), b.role("administrator")
	b.exec("select parley_mail.grant_right('ADMINISTER', $1)", role)
	b.exec("grant " + quote(owner) + " to " + quote(role))
	b.exec("create table public.box (sender text)")
	b.afterwards("drop table public.box")
	b.as(role).exec(`select parley_mail.apply('{"service binding": {"box": {"pattern": "box@example.org", "table": "public.box"}}}')`)
	for _, test := range []struct {
		statement string
		delivered int
	}{
		{"alter table public.box enable row level security", 1},
		{"alter table public.box force row level security", 0},
		{"alter table public.box no force row level security", 2},
	} {
		b.exec(test.statement)
		b.exec("select parley_mail.send('ann', array['box@example.org'], 'a', 'b')")
		b.exec("select parley_mail._p_categorize()")
		b.exec("select parley_mail.retry_messages('{}')")
		equal(b.session, test.delivered, "select parley_mail._p_deliver_to_services()")
	}
}
