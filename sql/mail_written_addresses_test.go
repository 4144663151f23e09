package sql_test

import (
	"os"
	"strings"
	"testing"
)

// The tables are those of internal/mail/message: what is an address to the daemon, by SMTP and in the fields of messages, is one to SQL.
func TestAddressesAreThoseThatTheDaemonReads(t *testing.T) {
	t.Parallel()
	b := newMail(t)
	rows := func(name string, columns int) (all [][]string) {
		text, err := os.ReadFile("../internal/mail/message/testdata/" + name)
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
		equal(b.session, want != "-", "select parley_mail._p_is_address($1)", written)
		if want == "-" {
			if !strings.HasPrefix(written, "(") {
				b.refusesMail(10, "select parley_mail.send('ann', array[$1], 'a', 'b')", written)
			}
			continue
		}
		equal(b.session, want, "select parley_mail._p_require_address($1)", written)
		id := value[int64](b.session, "select parley_mail.send('ann', array[$1::text], 'a', 'b')", written)
		equal(b.session, want, "select recipients[1] from parley_mail.submitted_messages where message_id = $1", id)
	}
	for _, row := range rows("mailboxes.txt", 3) {
		if row[2] == "-" {
			b.refusesMail(10, "select parley_mail._p_parsed_mailbox($1)", row[0])
			continue
		}
		equal(b.session, row[1]+"|"+row[2], "select concat(m.display_name, '|', m.address) from parley_mail._p_parsed_mailbox($1) as m", row[0])
	}
	// Many are checked together, and each is what it would be alone.
	id := value[int64](b.session, `
		select parley_mail.send('ann', array_fill('"eva"@b.example'::text, array[6]) || array_fill('eva@b.example (Eva)'::text, array[6]), 'a', 'b')`)
	equal(b.session, "eva@b.example", `
		select string_agg(distinct r.address, ' ') from parley_mail.submitted_messages as m cross join unnest(m.recipients) as r (address)
		where m.message_id = $1`, id)
}
