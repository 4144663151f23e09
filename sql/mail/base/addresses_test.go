package base_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The table is that of internal/mail/message: what is one domain to the daemon is one to the database, whatever its locale.
func TestDomainsOfMailHaveOneForm(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	table, err := os.ReadFile("../../../internal/mail/message/testdata/domains.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		written, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		if written == "#" {
			continue
		}
		if written, err = strconv.Unquote(`"` + written + `"`); err != nil {
			t.Fatal(err)
		}
		sqltest.Equal(b.Session, want, "select coalesce(parley_mail._p_a_labels($1), '-')", written)
		sqltest.Equal(b.Session, want != "-", "select parley_mail._p_is_domain($1) and parley_mail._p_is_address('a@' || $1)", written)
		if want == "-" {
			b.RefusesMail(10, "select parley_mail.send('ann', array['x@' || $1], 'a', 'b')", written)
			continue
		}
		sqltest.Equal(b.Session, "Änn+k@*."+want, "select parley_mail._p_folded('Änn+K@*.' || $1)", written)
	}
	// So an address is found however its domain is written, and a list of senders is none that a capital letter passes.
	b.Apply(`{"accepted domain": {"Bücher.example": {}}, "mailbox": {"Kim@BÜCHER.example": {"store": "local", "reject_from": ["Eve@Straße.example"]}}}`)
	sqltest.Equal(b.Session, "accepted domain xn--bcher-kva.example,mailbox kim@xn--bcher-kva.example", `
		select string_agg(kind || ' ' || name, ',' order by kind) from parley_mail.objects where name like '%xn--%'`)
	sqltest.Equal(b.Session, "KIM@xn--bcher-kva.example MAILBOX", `
		select concat_ws(' ', recipient, delivery_type, status) from parley_mail.test_address(E'KIM@bu\u0308cher.example')`)
	sqltest.Equal(b.Session, "5.7.1", "select status from parley_mail.test_address('kim@bücher.example', sender => 'EVE@xn--strae-oqa.example')")
	// The Kelvin sign is no k, and a dotless letter is no i: nobody but the host knows who is meant.
	sqltest.Equal(b.Session, "5.1.1", `select status from parley_mail.test_address(U&'\212Aim@bücher.example')`)
}
