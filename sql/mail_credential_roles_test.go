package sql_test

import (
	"fmt"
	"testing"
)

// Users who stand for a role of PostgreSQL log in with its password: an administrator names none that he could not take himself, and
// nobody names a superuser. A role that becomes one later submits no more.
func TestRightsOfACredentialAreThoseOfARoleOfItsAuthor(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	admin, own, others, super, member := b.role("admin"), b.role("own"), b.role("others"), b.role("super"), b.role("member")
	b.exec("select parley_mail.grant_right('ADMINISTER', $1)", admin)
	b.exec("select parley_mail.grant_right('SEND', $1)", own)
	b.exec(fmt.Sprintf("grant %q to %q", own, admin))
	b.exec(fmt.Sprintf("alter role %q superuser", super))
	b.exec(fmt.Sprintf("grant %q to %q", super, member))
	for _, role := range []string{own, others} {
		b.exec(fmt.Sprintf("alter role %q login", role))
	}
	const create = "select parley_mail.create_object('credential', 'user', jsonb_build_object('role', $1::text))"
	administrator := b.as(admin)
	for name, c := range map[string]struct {
		who  session
		role string
	}{
		"a role of others":                       {administrator, others},
		"a superuser":                            {administrator, super},
		"a superuser, by a superuser":            {b.session, super},
		"a member of a superuser, by an owner":   {b.session, member},
		"the superuser who installed the server": {b.session, "postgres"},
	} {
		if refusal := c.who.refusesMail(3, create, c.role); refusal.Detail == "" {
			t.Errorf("%s is refused without a reason", name)
		}
	}
	administrator.refusesMail(2, create, "nobody at all")
	administrator.exec(create, own)
	administrator.refusesMail(3, "select parley_mail.alter_object('credential', 'user', jsonb_build_object('role', $1::text))", others)
	b.exec("select parley_mail.alter_object('credential', 'user', jsonb_build_object('role', $1::text))", others)
	equal(b.session, true, "select parley_mail._p_may_submit($1)", own)
	b.exec(fmt.Sprintf("alter role %q superuser", own))
	equal(b.session, false, "select parley_mail._p_may_submit($1)", own)
}
