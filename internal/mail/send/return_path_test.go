package send_test

import (
	"strings"
	"testing"

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
