package sql_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// newMail gives a test a database in which example.org is ours, with a mailbox store, two mailboxes and a way to everywhere else.
func newMail(t *testing.T) *broker {
	t.Helper()
	b := newBroker(t)
	b.exec(`select parley_mail.apply('{
		"organization": {"organization": {"default_domain": "example.org"}},
		"accepted domain": {"example.org": {}},
		"mailbox store": {"local": {"address": "unix:/run/lmtp"}},
		"mailbox": {
			"ann@example.org": {"store": "local", "aliases": ["a@example.org"]},
			"bob@example.org": {"store": "local"}
		},
		"send connector": {"internet": {"address_spaces": [{"pattern": "*"}]}}
	}')`)
	return b
}

// sender creates a role that may submit mail, and opens a session of it.
func (b *broker) sender(name string) session {
	b.Helper()
	role := b.role(name)
	b.exec("select parley_mail.grant_right('SEND', $1)", role)
	return b.as(role)
}

// refusesMail requires that a statement fails with an error of mail, well-formed, and gives it.
func (s session) refusesMail(number int, statement string, arguments ...any) pgconn.PgError {
	s.Helper()
	_, err := s.db.Exec(s.Context(), statement, arguments...)
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		s.Fatalf("%s: got %v, want error %d of mail", clip(statement), err, number)
	}
	if refusal.Code != fmt.Sprintf("PM%03d", number) {
		s.Errorf("%s: got %s, want error %d of mail", clip(statement), describe(err), number)
	}
	if refusal.Hint == "" || refusal.Message == "" || strings.Contains(refusal.Message+refusal.Detail+refusal.Hint, "%") {
		s.Errorf("%s: the error does not say what happened and what to do: %s", clip(statement), describe(err))
	}
	return *refusal
}

func splitLines(text string) []string { return strings.Split(text, "\r\n") }

// cutHeader gives the name and the value of a header line that is no continuation.
func cutHeader(line string) (name, value string, ok bool) {
	if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
		return "", "", false
	}
	return strings.Cut(line, ":")
}
