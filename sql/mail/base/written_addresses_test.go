package base_test

import (
	"os"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// The tables are those of internal/mail/message: what is an address to the daemon, by SMTP and in the fields of messages, is one to SQL.
func TestAddressesAreThoseThatTheDaemonReads(t *testing.T) {
	t.Parallel()
	b := sqltest.NewMail(t)
	rows := func(name string, columns int) (all [][]string) {
		text, err := os.ReadFile("../../../internal/mail/message/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if row := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(row) == columns {
				all = append(all, row)
			}
		}
		if len(all) < 10 {
			t.Fatalf("%s has %d rows", name, len(all))
		}
		return all
	}
	for _, row := range rows("addresses.txt", 2) {
		written, want := row[0], row[1]
		sqltest.Equal(b.Session, want != "-", "select parley_mail._p_is_address($1)", written)
		if want == "-" {
			if !strings.HasPrefix(written, "(") {
				b.RefusesMail(10, "select parley_mail.send('ann', array[$1], 'a', 'b')", written)
			}
			continue
		}
		sqltest.Equal(b.Session, want, "select parley_mail._p_require_address($1)", written)
		id := sqltest.Value[int64](b.Session, "select parley_mail.send('ann', array[$1::text], 'a', 'b')", written)
		sqltest.Equal(b.Session, want, "select recipients[1] from parley_mail.submitted_messages where message_id = $1", id)
	}
	for _, row := range rows("mailboxes.txt", 3) {
		if row[2] == "-" {
			b.RefusesMail(10, "select parley_mail._p_parsed_mailbox($1)", row[0])
			continue
		}
		sqltest.Equal(b.Session, row[1]+"|"+row[2], "select concat(m.display_name, '|', m.address) from parley_mail._p_parsed_mailbox($1) as m", row[0])
	}
	// Many are checked together, and each is what it would be alone.
	id := sqltest.Value[int64](b.Session, `
		select parley_mail.send('ann', array_fill('"eva"@b.example'::text, array[6]) || array_fill('eva@b.example (Eva)'::text, array[6]), 'a', 'b')`)
	sqltest.Equal(b.Session, "eva@b.example", `
		select string_agg(distinct r.address, ' ') from parley_mail.submitted_messages as m cross join unnest(m.recipients) as r (address)
		where m.message_id = $1`, id)
}
