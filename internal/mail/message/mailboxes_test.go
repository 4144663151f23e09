package message_test

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

// table gives the columns of a table of testdata, which sql/mail/base/written_addresses_test.go holds the database to.
func table(t *testing.T, name string, columns int) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if row := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); row[0][0] != '#' {
			if len(row) != columns {
				t.Fatalf("%s: %q has %d columns", name, line, len(row))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// An address is the same by SMTP, in a field of a message, and where a program gives it.
func TestAnAddressIsOneByWhateverWayItComes(t *testing.T) {
	t.Parallel()
	for _, row := range table(t, "addresses.txt", 2) {
		written, want := row[0], row[1]
		got := func(address message.Address, err error) string {
			if err != nil {
				return "-"
			}
			return address.String()
		}
		if is := got(message.ParseAddress(written)); is != want {
			t.Errorf("%s is %q, want %q", written, is, want)
		}
		path, rest, err := message.ParsePath("<" + written + ">")
		if is := got(path, err); is != want && (want != "-" || rest == "") {
			t.Errorf("<%s> of an envelope is %q, want %q", written, is, want)
		}
		mailbox, err := message.ParseMailbox("Name <" + written + ">")
		if is := got(mailbox.Address, err); is != want && !strings.HasPrefix(written, "(") {
			t.Errorf("Name <%s> is %q, want %q", written, is, want)
		}
		read := message.ParseMailboxes("Name <" + written + ">, other@b.example")
		if is := read.List[0].Address.String(); want != "-" && (is != want || len(read.List) != 2 || read.IsOdd) {
			t.Errorf("Name <%s> of a field is %q, want %q", written, is, want)
		}
	}
	for _, row := range table(t, "mailboxes.txt", 3) {
		mailbox, err := message.ParseMailbox(row[0])
		if err != nil {
			mailbox = message.Mailbox{Name: "-", Address: message.Address{Local: "-"}}
		}
		if mailbox.Name != row[1] || mailbox.Address.String() != row[2] {
			t.Errorf("%s is %q %q, want %q %q", row[0], mailbox.Name, mailbox.Address, row[1], row[2])
		}
		if err != nil {
			continue
		}
		again := message.ParseMailboxes(mailbox.String())
		if len(again.List) != 1 || again.List[0] != mailbox || again.IsOdd {
			t.Errorf("%s is written as %s, which is %+v", row[0], mailbox, again)
		}
	}
}

// An address that is read from any field of addresses can stand in an envelope and in a database.
func FuzzMailboxes(f *testing.F) {
	for _, field := range []string{
		`Eva (at (the) shop) <eva(x)@b>, a@b <c@d>, "x" . y @ z`, "friends: a@b, c@d;, <@a,@b:c@d>", `"a, (b <c@d`, "a@b c@d; Eva e@f", "=?utf-8?q?=0d=0a,?= <a@b>", "'a@b', <mailto:c@d>,[x]@[y",
	} {
		f.Add(field)
	}
	f.Fuzz(func(t *testing.T, field string) {
		read := message.ParseMailboxes(strings.ToValidUTF8(field, "\uFFFD"))
		if len(read.Unread) > 0 && !read.IsOdd {
			t.Errorf("%q has %q, and is not odd", field, read.Unread)
		}
		for _, one := range read.List {
			again, err := message.ParseAddress(one.Address.String())
			if err != nil || again != one.Address {
				t.Errorf("%q has the address %q, which is read as %q: %v", field, one.Address, again, err)
			}
			if !utf8.ValidString(one.Name) || strings.ContainsFunc(one.Name, unicode.IsControl) {
				t.Errorf("%q has the name %q", field, one.Name)
			}
		}
		if _, isKnown := message.DecodeWords(field); !isKnown && !strings.Contains(field, "=?") {
			t.Errorf("%q has no encoded word, and nobody can read it", field)
		}
		if one, err := message.ParseMailbox(field); err == nil {
			if _, err := message.ParseAddress(one.Address.String()); err != nil {
				t.Errorf("%q is %q: %v", field, one.Address, err)
			}
		}
	})
}

// A list that is made to take long does not.
func TestListsOfAddressesTakeTimeByTheirLength(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"(", `"`, `\"`, "<@a,", "<", "=?a?q?", "=?", "[", "a@b ", "a ", "(a)", "a@b,", ":", `"a"`, "<a@b,"} {
		field := strings.Repeat(piece, 128<<10/len(piece))
		begin := time.Now()
		message.ParseMailboxes(field)
		message.IDs(field)
		message.ParseDate(field)
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("%q 128 KB long takes %s", piece, took)
		} else {
			t.Logf("%q: %s", piece, took)
		}
	}
}

// Each date that is read is one that a database takes.
func FuzzDate(f *testing.F) {
	for _, date := range []string{"Fri, 21 Nov 97 09(x):55 : 06.5 GMT+02:00", "Nov 21 9:55 1997", "1-Jan-0001 0:0 +2359", "31 dec 9999 23:59:60 -2359"} {
		f.Add(date)
	}
	f.Fuzz(func(t *testing.T, written string) {
		if date, isDate := message.ParseDate(written); isDate && (date.Year() < 1 || date.Year() > 9999 || date.Location() != time.UTC) {
			t.Errorf("%q is %s", written, date)
		}
	})
}
