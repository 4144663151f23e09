package arrival_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// A message that would come back as a report is refused while the peer is still there, and only such a message.
func TestMailForNobodyIsRefusedWhileThePeerIsThere(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	b.Exec(`create table public.orders (sender text)`)
	b.Exec(`select parley_mail.apply('{
		"organization": {"organization": {"postmaster": "ann@example.org"}},
		"accepted domain": {"relay.example.org": {"type": "INTERNAL_RELAY"}},
		"mailbox": {"small@example.org": {"store": "local", "max_receive_size": 1999}, "fits@example.org": {"store": "local", "max_receive_size": 2000},
			"shut@example.org": {"store": "local", "internal_senders_only": true}},
		"distribution group": {"all@example.org": {"members": ["ann@example.org"], "reject_from": ["spam.example"]}},
		"alias": {"first@example.org": {"target": "second@example.org"}, "second@example.org": {"target": "small@example.org"},
			"lost@example.org": {"target": "nobody@example.org"}, "out@example.org": {"target": "x@elsewhere.example"}},
		"service binding": {"orders": {"pattern": "orders+*@example.org", "table": "public.orders"}}
	}')`)
	for recipient, want := range map[string]string{
		"ann@example.org": "- true", "A@Example.org": "- true", "nobody@example.org": "5.1.1 true", "x@relay.example.org": "- true",
		"small@example.org": "5.2.3 false", "fits@example.org": "- false", "first@example.org": "5.2.3 false", "lost@example.org": "5.1.1 true", "out@example.org": "- true",
		"shut@example.org": "5.7.1 false", "all@example.org": "5.7.1 false", "orders+7@example.org": "- true", "orders@example.org": "5.1.1 true",
		"PostMaster@example.org": "- true",
	} {
		got := sqltest.Value[string](b.Session, `select coalesce(status, '-') || ' ' || is_for_all from parley_mail._p_check_recipient($1, 'x@spam.example', false, 2000)`, recipient)
		if got != want {
			t.Errorf("%s: %s, want %s", recipient, got, want)
		}
	}
	if got := sqltest.Value[string](b.Session, `select coalesce(status, '-') from parley_mail._p_check_recipient('shut@example.org', 'ann@example.org', true, 0)`); got != "-" {
		t.Errorf("a sender of ours: %s", got)
	}
	role := b.Role("clerk")
	may := func() string {
		return sqltest.Value[string](b.Session, `select parley_mail._p_may_submit($1)::text`, role)
	}
	before := may()
	b.Exec("select parley_mail.grant_right('SEND', $1)", role)
	b.Exec("alter role " + sqltest.Quote(role) + " login valid until 'infinity'")
	if after := may(); before != "false" || after != "true" {
		t.Errorf("a role may submit: %s, and with the right %s", before, after)
	}
	b.Exec("alter role " + sqltest.Quote(role) + " nologin")
	if mute := may(); mute != "false" {
		t.Errorf("a role that may not log in may submit: %s", mute)
	}
	b.Exec("alter role " + sqltest.Quote(role) + " login valid until '2001-01-01'")
	if late := may(); late != "false" {
		t.Errorf("a role whose password has expired: %s", late)
	}
	other := b.As(b.Role("other"))
	other.RefusesMail(1, "select parley_mail._p_check_recipient('ann@example.org', '', false, 0)")
	other.RefusesMail(1, "select parley_mail._p_check_sender('ann@example.org')")
	other.RefusesMail(1, "select parley_mail._p_may_submit('x')")
}
