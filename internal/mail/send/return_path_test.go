package send_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-broker/parley/internal/mail/send"
)

// A recipient with a return path of its own has a transaction of its own, over the same connection.
func TestEachReturnPathIsATransaction(t *testing.T) {
	t.Parallel()
	for _, lmtp := range []bool{false, true} {
		h := &host{lmtp: lmtp, extensions: []string{"SMTPUTF8", "8BITMIME"}, answer: func(line string) string {
			if strings.HasPrefix(line, "RCPT TO:<b@") {
				return "550 5.1.1 no"
			}
			return ""
		}}
		c, err := open(t, h, func(target *send.Target) { target.LMTP = lmtp })
		if err != nil {
			t.Fatal(err)
		}
		message := letter("Subject: x\r\n\r\nbody\r\n", "a@b.example", "b@b.example", "ü@b.example")
		for i, recipient := range message.Recipients {
			message.Recipients[i].ReturnPath = strings.Replace("from+"+recipient.Address, "@", "=", 1) + "@a.example"
		}
		results := c.Send(t.Context(), message)
		if got := outcome(results); got != "delivered 2.0.0, failed 5.1.1, delivered 2.0.0" || c.Messages() != 3 {
			t.Errorf("lmtp %v: %s after %d messages", lmtp, got, c.Messages())
		}
		messages, lines := h.received()
		all := strings.Join(lines, "\n")
		for _, want := range []string{
			"MAIL FROM:<from+a=b.example@a.example> SMTPUTF8\nRCPT TO:<a@b.example>\nDATA", "MAIL FROM:<from+b=b.example@a.example> SMTPUTF8\nRCPT TO:<b@b.example>\nRSET",
			"MAIL FROM:<from+ü=b.example@a.example> SMTPUTF8\nRCPT TO:<ü@b.example>\nDATA",
		} {
			if !strings.Contains(all, want) {
				t.Errorf("lmtp %v: no %q in %s", lmtp, want, all)
			}
		}
		if len(messages) != 2 || h.sessions != 1 {
			t.Errorf("%d messages in %d sessions", len(messages), h.sessions)
		}
	}
}

// With return paths of their own, recipients are as many messages to a connection; whom the host cannot be given costs the others none.
func TestRecipientsWithReturnPathsCountAsMessages(t *testing.T) {
	t.Parallel()
	q, r := newQueue(), &road{limits: send.Limits{MessagesEach: 3, Idle: time.Hour}}
	dispatch(t, q, r)
	seven, four := slices.Repeat([]send.Recipient{{ReturnPath: "a+b=c@d.example"}}, 7), slices.Repeat([]send.Recipient{{ReturnPath: "a+b=c@d.example"}}, 4)
	four[1].Address = "left out"
	opened := 0
	for i, c := range []struct {
		hop         string
		recipients  []send.Recipient
		connections int
	}{{"c.example", seven, 3}, {"d.example", four, 1}} {
		q.batches <- send.Batch{Lease: int64(i + 1), Hop: hopTo("internet", c.hop), Deliveries: []send.Delivery{{
			Ordinals: make([]int32, len(c.recipients)), Message: send.Message{Recipients: c.recipients},
		}}}
		q.await(t, 1)
		n, results := r.connections()-opened, q.outcomes[i].Results
		if opened += n; n != c.connections || len(results) != len(c.recipients) {
			t.Errorf("to %s: %d connections, %d results for %d recipients", c.hop, n, len(results), len(c.recipients))
		}
	}
}
