package mail_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/adapter/adaptertest"
	"github.com/parley-broker/parley/internal/flow/adapter/mail"
	"github.com/parley-broker/parley/internal/logtest"
	"github.com/parley-broker/parley/internal/sqltest"
	"github.com/parley-broker/parley/parleytest"
)

type world struct {
	*sqltest.Broker

	role string // of the host, which may do what is granted; the login may do all
}

func newWorld(t *testing.T) *world {
	t.Helper()
	b := sqltest.NewBoundMail(t)
	w := &world{Broker: b, role: b.Role("host")}
	b.Afterwards("drop owned by " + sqltest.Quote(w.role))
	b.Exec("create table public.taken (n integer generated always as identity, type text, body text, properties jsonb, failure text)")
	b.Exec("grant insert, select on public.taken to " + sqltest.Quote(w.role))
	b.Exec("grant usage on schema parley to " + sqltest.Quote(w.role))
	return w
}

func (w *world) endpoint(address, settings string) adapter.Endpoint {
	return adapter.Endpoint{
		Name: "Mail", Address: address, Settings: json.RawMessage(settings), Pool: w.Pool, Role: w.role, Node: "one",
		Logger: (&logtest.Log{}).Logger(slog.LevelDebug),
	}
}

func message(id int64, body string, properties map[string]string) *adapter.Message {
	return &adapter.Message{
		ID: id, ReceivedAt: time.Now(), Size: int64(len(body)), Promoted: properties, ContentType: "application/xml",
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil },
	}
}

// send sends messages in a transaction that commits, or not, and gives an outcome for each.
func (w *world) send(address, settings string, isCommitted bool, messages ...*adapter.Message) string {
	w.Helper()
	made, err := mail.Kind.NewSender(w.endpoint(address, settings))
	if err != nil {
		w.Fatal(err)
	}
	sender, is := made.(adapter.TransactionSender)
	if !is || !sender.InTransaction() {
		w.Fatal("mail is not sent in the transaction of the host")
	}
	tx, err := w.Pool.Begin(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	deliveries, err := sender.SendIn(w.Context(), tx, messages)
	if err != nil {
		w.Fatal(err)
	}
	end := tx.Rollback
	if isCommitted {
		end = tx.Commit
	}
	if err := end(w.Context()); err != nil {
		w.Fatal(err)
	}
	var outcomes []string
	for _, d := range deliveries {
		f, is := errors.AsType[*adapter.Failure](d.Err)
		switch {
		case d.Err == nil:
			outcomes = append(outcomes, "sent")
		case is && f.Permanent:
			outcomes = append(outcomes, f.Code)
		case is && f.Unreachable:
			outcomes = append(outcomes, "the port waits")
		default:
			outcomes = append(outcomes, d.Err.Error())
		}
	}
	return strings.Join(outcomes, ", ")
}

const orders = `{"from": "Shop <shop@example.org>", "cc": ["bob@example.org"], "bcc": ["ann@example.org"],
	"subject": "Order %Number%", "text": "See order %Number%.", "file_name": "order-%Number%.xml", "macros": {"Number": "urn:p#Number", "To": "urn:p#To"}}`

func TestMailIsSubmittedInTheTransactionThatRecordsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	number := map[string]string{"urn:p#Number": "7/8"}
	if got := w.send("mailto:x@example.com", orders, true, message(1, "<o/>", number)); got != "the port waits" {
		t.Errorf("a role without the right to send gives %s", got)
	}
	w.Exec("select parley_mail.grant_right('SEND', $1)", w.role)
	const count = "select count(*)::integer from parley_mail._p_message"
	if got := w.send("mailto:x@example.com", orders, false, message(1, "<o/>", number)); got != "sent" {
		t.Errorf("it gives %s", got)
	}
	sqltest.Equal(w.Session, 0, count) // the transaction was rolled back
	got := w.send("mailto:x@example.com, Y <%To%>", orders, true,
		message(1, "<o/>", map[string]string{"urn:p#Number": "7/8", "urn:p#To": "y@example.com"}),
		message(2, "<o/>", map[string]string{"urn:p#To": "y@example.com"}),
		message(3, "<o/>", map[string]string{"urn:p#Number": "1\r\nBcc: thief@example.net", "urn:p#To": "y@example.com"}),
		message(4, "<o/>", map[string]string{"urn:p#Number": "9", "urn:p#To": "y@example.com>, Z <thief@example.net"}),
		message(5, "<o/>", map[string]string{"urn:p#Number": "9", "urn:p#To": "z@example.com"}))
	if want := "sent, send.refused, send.refused, send.refused, sent"; got != want {
		t.Errorf("messages are %s, and not %s", got, want)
	}
	sqltest.Equal(w.Session, 2, count)
	raw := sqltest.Value[string](w.Session, `select string_agg(convert_from(parley_mail._p_body_of(m.message_id), 'UTF8'), '' order by m.message_id)
		from parley_mail._p_message as m`)
	for _, part := range []string{
		"To: x@example.com, Y <y@example.com>", "Cc: bob@example.org", "Subject: Order 7/8", "See order 7/8.", "order-7_8.xml",
		base64.StdEncoding.EncodeToString([]byte("<o/>")), "application/xml",
	} {
		if !strings.Contains(raw, part) {
			t.Errorf("there is no %q in\n%s", part, raw)
		}
	}
	if strings.Contains(raw, "thief") || strings.Contains(raw, "\nBcc:") {
		t.Errorf("somebody else is named in\n%s", raw)
	}
	text := w.send("mailto:x@example.com", `{"from": "shop@example.org", "content": "html"}`, true, message(6, "<p>Größe</p>", nil),
		message(7, "\xff", nil))
	if text != "sent, send.refused" {
		t.Errorf("a text, and one that is none, are %s", text)
	}
	if got := w.send("mailto:x@example.com", `{"from": "%From%", "macros": {"From": "urn:p#From"}}`, true,
		message(8, "x", map[string]string{"urn:p#From": "boss@else.example"})); got != "send.refused" {
		t.Errorf("a message that names a sender whom the role is not gives %s", got)
	}
}

// box is a host of tests whose messages are rows, written in the transaction that takes.
type box struct {
	adaptertest.Intake

	mu     sync.Mutex
	refuse error
}

func (b *box) TakeIn(ctx context.Context, tx adapter.Transaction, inputs []adapter.Input) ([]adapter.Result, error) {
	results := make([]adapter.Result, len(inputs))
	for _, input := range inputs {
		properties, err := json.Marshal(map[string]any{"promoted": input.Promoted, "written": input.Written})
		if err != nil {
			return nil, err
		}
		var failure *string
		if input.Failure != nil {
			failure = &input.Failure.Code
		}
		_, err = tx.Exec(ctx, "insert into public.taken (type, body, properties, failure) values ($1, $2, $3, $4)", input.ContentType,
			string(input.Body), properties, failure)
		if err != nil {
			return nil, err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	err := b.refuse
	b.refuse = nil
	return results, err
}

// payload makes mail as a service gets it, with two attachments.
func payload(t *testing.T) string {
	t.Helper()
	order, picture := base64.StdEncoding.EncodeToString([]byte("<o>1</o>")), base64.StdEncoding.EncodeToString([]byte("GIF"))
	raw := "header\r\n\r\n" + order + "\r\n" + picture
	written, err := json.Marshal(map[string]any{
		"network_message_id": "n-1", "header_message_id": "<1@customer.example>", "sender": "cleo@customer.example",
		"recipient": "orders+1@example.org", "subject": "An order", "from": []any{map[string]any{"name": "Cleo", "address": "cleo@customer.example"}},
		"to": []any{map[string]any{"address": "orders+1@example.org"}}, "text": "It is attached.", "html": "<p>It is attached.</p>",
		"parsed": map[string]any{"state": "COMPLETE"}, "raw": base64.StdEncoding.EncodeToString([]byte(raw)),
		"attachments": []any{
			map[string]any{
				"part": "2", "type": "application/xml", "name": "Order.XML", "size": 8, "encoding": "base64",
				"offset": strings.Index(raw, order), "bytes": len(order),
			},
			map[string]any{
				"part": "3", "type": "image/gif", "name": "logo.gif", "size": 3, "encoding": "base64", "offset": strings.Index(raw, picture),
				"bytes": len(picture),
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(written)
}

func TestMailIsTakenInTheTransactionThatReceivesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Exec("select parley.grant('RECEIVE', 'QUEUE', 'orders', $1)", w.role)
	w.Exec("select parley.grant('CONTROL', 'SERVICE', '//orders', $1)", w.role)
	in := &box{}
	taken := func(settings, want string) {
		t.Helper()
		w.Exec("truncate public.taken")
		receiver, err := mail.Kind.NewReceiver(w.endpoint("//orders", settings))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- receiver.Run(ctx, in) }()
		parleytest.Until(t, "the mail is taken", func() bool {
			return sqltest.Value[bool](w.Session, "select count(*) > 0 from public.taken")
		})
		stop()
		if err := parleytest.Receive(t, ended, "the end of the location"); err != nil {
			t.Error(err)
		}
		got := sqltest.Value[string](w.Session, `select string_agg(concat_ws(' ', type, body, failure), '; ' order by n) from public.taken`)
		if !strings.HasPrefix(got, want) {
			t.Errorf("with %s there is %q, and not %q", settings, got, want)
		}
	}
	arrive := func(body string) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), w.Pool, func(tx pgx.Tx) error {
			_, err := parley.SendAndEnd(t.Context(), tx, "parley_mail/Status", "//orders", "DEFAULT", []byte(body), parley.OnContract("DEFAULT"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	arrive(payload(t))
	in.refuse = errors.New("the box is away") // once: what it has taken is rolled back
	taken(`{"promoted": {"From": "urn:p#From", "Subject": "urn:p#Subject"}}`, "text/plain It is attached.")
	sqltest.Equal(w.Session, `{"urn:p#From": "cleo@customer.example", "urn:p#Subject": "An order"}`, "select string_agg((properties -> 'promoted')::text, '; ') from public.taken")
	sqltest.Equal(w.Session, "orders+1@example.org", "select properties #>> '{written,urn:parley:mail#To}' from public.taken")
	arrive(payload(t))
	taken(`{"take": "attachments", "attachments": "*.xml"}`, "application/xml <o>1</o>")
	sqltest.Equal(w.Session, "Order.XML", "select properties #>> '{promoted,SourceFileName}' from public.taken")
	arrive(payload(t))
	taken(`{"take": "all", "body": "html"}`, "text/html <p>It is attached.</p>; application/xml <o>1</o>; image/gif GIF")
	arrive(payload(t))
	taken(`{"take": "attachments", "attachments": "*.pdf"}`, `application/json {"attachments"`)
	sqltest.Equal(w.Session, "receive.empty", "select failure from public.taken")
	arrive(`{"order": 1}`)
	taken(`{}`, `application/json {"order": 1} receive.pipeline`)
}
