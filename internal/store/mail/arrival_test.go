package mail_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"testing"
	"time"

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
	never := "NEVER"
	large := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	message, content, err := mailstore.BeginBody(t.Context(), db, 32768)
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
			Sender: "x@example.com", Recipients: []string{"one@example.net", "two@example.net"}, Notify: []*string{nil, &never},
			Source: "SMTP", SourceIP: "2001:db8::1", Verdicts: json.RawMessage(`{"spf": "pass"}`), Body: []byte("Subject: small\r\n\r\n"),
			ReceivedAt: &received,
		},
		{MessageID: message, ContentID: content, Size: int64(len(large)), Recipients: []string{"three@example.net"}, Source: "SMTP"},
	})
	if err != nil || len(ids) != 2 || ids[1] != message {
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
		case message:
			if c.Size != int64(len(large)) || c.Content != content || c.Sender != "" {
				t.Errorf("claimed %+v", c)
			}
		}
	}
	if configuration, err := mailstore.Configuration(t.Context(), db); err != nil || !bytes.Contains(configuration, []byte("internet")) {
		t.Errorf("configuration %s: %v", configuration, err)
	}
}
