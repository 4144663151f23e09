package submission_test

import (
	"bytes"
	"context"
	"errors"
	"net/mail"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/parleytest"
)

// A submission with any input of a caller is refused as malformed, or becomes a message with the header lines that he named and no others.
func FuzzMailSend(f *testing.F) {
	pool := parleytest.Database(f)
	if _, err := pool.Exec(f.Context(), `select parley_mail.apply('{
		"organization": {"organization": {"default_domain": "example.org"}}, "send connector": {"internet": {"address_spaces": [{"pattern": "*"}]}}}')`); err != nil {
		f.Fatal(err)
	}
	for _, s := range [][6]string{
		{"Ann <ann@example.org>", "x@example.com", "Order 7", "X-Order", "7", "Thank you."},
		{"\"A\\\"\" <a@b.c>", "=?utf-8?q?=0D=0A?= <x@y.z>", "=?utf-8?b?DQpCY2M6IHg=?=", "X-A\r\nBcc", "x", ".\r\n.\n"},
		{"ä@ö.example", "\"a b\"@c.d", strings.Repeat("𝄞", 300), "To", "friends: a@b.c;", "\x00"},
		{">", "<>", "", "", "", ""}, // once refused as a substring of negative length
		{"a@[IPv6:::1]", "<<x@y>", "\u2028", "List-Unsubscribe", "<https://x>,\r\n <y>", "=\t "},
	} {
		f.Add(s[0], s[1], s[2], s[3], s[4], s[5])
	}
	f.Fuzz(func(t *testing.T, sender, recipient, subject, name, value, text string) {
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		var id int64
		var message []byte
		err = tx.QueryRow(t.Context(), `
			select parley_mail.send($1, array[$2], subject => $3, text => $6, headers => jsonb_build_object($4::text, $5::text))`,
			sender, recipient, subject, name, value, text).Scan(&id)
		if refused, is := errors.AsType[*pgconn.PgError](err); is {
			isNoText := slices.ContainsFunc([]string{sender, recipient, subject, name, value, text}, func(given string) bool {
				return !utf8.ValidString(given) || strings.Contains(given, "\x00")
			})
			if !isNoText && !strings.HasPrefix(refused.Code, "PM") {
				t.Errorf("%q is refused with %s %s", []string{sender, recipient, subject, name, value}, refused.Code, refused.Message)
			}
			return
		}
		if err != nil {
			return
		}
		if err := tx.QueryRow(t.Context(), "select parley_mail._p_body_of($1)", id).Scan(&message); err != nil {
			t.Fatal(err)
		}
		parsed, err := mail.ReadMessage(bytes.NewReader(message))
		if err != nil {
			t.Fatalf("%q: %v", message, err)
		}
		allowed := map[string]bool{
			"From": true, "To": true, "Subject": true, "Message-Id": true, "Date": true, "Mime-Version": true, "Content-Type": true,
			"Content-Transfer-Encoding": true,
		}
		for field, values := range parsed.Header {
			if !allowed[field] && !strings.EqualFold(field, name) || len(values) > 1 {
				t.Errorf("%q has the field %s: %q", message, field, values)
			}
		}
		requireLines(t, message)
	})
}
