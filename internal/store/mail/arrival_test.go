package mail_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/message"
	mailstore "github.com/parley-broker/parley/internal/store/mail"
	"github.com/parley-broker/parley/parleytest"
)

// A message that is accepted, whole or in chunks, is categorized and claimed as it came.
func TestAcceptedMessagesComeToTheirNextHop(t *testing.T) {
	t.Parallel()
	db := parleytest.Database(t)
	_, err := db.Exec(t.Context(), `select parley_mail.create_object('send connector', 'internet', '{"address_spaces": [{"pattern": "*"}]}')`)
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	id, content, err := mailstore.BeginBody(t.Context(), db, 32768)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := mailstore.AppendBody(t.Context(), db, content, i, large[i*32768:(i+1)*32768]); err != nil {
			t.Fatal(err)
		}
	}
	sum := sha256.Sum256(large)
	if err := mailstore.FinishBody(t.Context(), db, content, int64(len(large)), sum[:]); err != nil {
		t.Fatal(err)
	}
	received := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	ids, err := mailstore.Accept(t.Context(), db, []mailstore.Arriving{
		{
			Envelope: message.Envelope{
				Sender: "x@example.com", Recipients: []message.Recipient{{Address: "one@example.net"}, {Address: "two@example.net", Notify: "NEVER"}},
				Source: "SMTP", Peer: netip.MustParseAddr("2001:db8::1"), Verdicts: json.RawMessage(`{"spf": "pass"}`), ReceivedAt: received,
			},
			Body: []byte("Subject: small\r\n\r\n"),
		},
		{
			Envelope:  message.Envelope{Recipients: []message.Recipient{{Address: "three@example.net"}}, Source: "SMTP"},
			MessageID: id, ContentID: content, Size: int64(len(large)),
		},
	})
	if err != nil || len(ids) != 2 || ids[1] != id {
		t.Fatalf("accepted %v: %v", ids, err)
	}
	done, err := mailstore.Categorize(t.Context(), db, 10, time.Second)
	if err != nil || done != (mailstore.Categorized{Messages: 2}) {
		t.Fatalf("categorized %+v: %v", done, err)
	}
	claimed, err := mailstore.Claim(t.Context(), db, 10, 10, time.Minute, "test", nil)
	if err != nil || len(claimed) != 2 {
		t.Fatalf("claimed %+v: %v", claimed, err)
	}
	for _, c := range claimed {
		switch c.MessageID {
		case ids[0]:
			if string(c.Body) != "Subject: small\r\n\r\n" || len(c.Addresses) != 2 || c.Notify[1] != "NEVER" {
				t.Errorf("claimed %+v", c)
			}
		case id:
			if c.Size != int64(len(large)) || c.Content != content || c.Sender != "" {
				t.Errorf("claimed %+v", c)
			}
		}
	}
	if configuration, err := mailstore.Configuration(t.Context(), db); err != nil || !bytes.Contains(configuration, []byte("internet")) {
		t.Errorf("configuration %s: %v", configuration, err)
	}
}

// A field without a column would be lost without a word.
func TestEachFieldOfAnEnvelopeIsAColumn(t *testing.T) {
	t.Parallel()
	db := parleytest.Database(t)
	address := netip.MustParseAddr("192.0.2.1")
	const id = "01900000-0000-7000-8000-000000000001"
	whole := message.Envelope{
		NetworkMessageID: id, HeaderMessageID: "x", Subject: "x", Sender: "x@example.com",
		Recipients: []message.Recipient{{Address: "y@example.com", Original: "rfc822;y@example.com", Notify: "NEVER"}}, Return: "FULL", EnvelopeID: "x",
		HasVERP: true, IsUTF8: true, BodyType: "8BITMIME", Priority: "low", ReceivedAt: time.Now(), Source: message.SourceSMTP, Connector: "x",
		Peer: address, Local: address, Took: message.Took(time.Second), Identity: id, Helo: "x", AuthenticatedAs: "x",
		Directionality: message.Originating, Verdicts: json.RawMessage(`{"spf": "pass"}`), ParentMessageID: 1, Quarantine: "x",
		Refusal: message.Refusal{Status: "5.0.0", Text: "x"}, IdempotencyKey: "x", ContentHash: "00",
	}
	value := reflect.ValueOf(whole)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("give the field %s a value here", value.Type().Field(i).Name)
		}
	}
	written, err := json.Marshal(mailstore.Arriving{Envelope: whole, Size: 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), `select parley_mail.create_object('send connector', 'internet', '{"address_spaces": [{"pattern": "*"}]}')`); err != nil {
		t.Fatal(err)
	}
	whole.Refusal = message.Refusal{} // of which nothing would stay
	ids, err := mailstore.Accept(t.Context(), db, []mailstore.Arriving{{Envelope: whole, Size: 4, Body: []byte("body")}})
	if err != nil {
		t.Fatal(err)
	}
	var lost []string
	if err := db.QueryRow(t.Context(), `
		select array(
			select w.key
			from parley_mail._p_message as m
			cross join jsonb_each($2::jsonb) as w
			left join jsonb_each(to_jsonb(m)) as c on c.key = w.key
			left join jsonb_each(to_jsonb(jsonb_populate_record(null::parley_mail._p_message, $2::jsonb))) as p on p.key = w.key
			where m.message_id = $1::bigint and (c.value = p.value) is not true
			order by w.key
		)`, ids[0], written).Scan(&lost); err != nil {
		t.Fatal(err)
	}
	// Acceptance alone needs these.
	if !slices.Equal(lost, []string{"content_hash", "idempotency_key", "quarantine", "refusal"}) {
		t.Errorf("without a column: %q", lost)
	}
}
