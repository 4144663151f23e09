package send_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// A store gets one recipient in a transaction, unless it takes more.
func TestStoreGetsOneRecipientInATransaction(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{0: 3, 1: 3, 2: 2, 100: 1} {
		h := &host{lmtp: true}
		address := h.serve(t)
		carrier := &send.MailboxCarrier{Store: func(string) (send.MailboxStore, bool) {
			return send.MailboxStore{Network: "tcp", Address: address, Hello: "client.example", Recipients: most}, true
		}}
		way, err := carrier.Connect(t.Context(), send.Hop{Kind: "MAILBOX", Connector: "local", Name: "-"})
		if err != nil {
			t.Fatal(err)
		}
		got := outcome(way.Send(t.Context(), letter("Subject: x\r\n\r\nx\r\n", "a@b.example", "b@b.example", "c@b.example")))
		if messages, _ := h.received(); len(messages) != want || strings.Count(got, "delivered") != 3 || way.Messages() != 1 {
			t.Errorf("at most %d: %d transactions of %d messages, %s", most, len(messages), way.Messages(), got)
		}
		way.Close()
	}
}

// The answers of stores for a mailbox that is full or elsewhere.
func TestAnswersOfMailboxStores(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply, want     string
		fullIsPermanent bool
	}{
		{reply: "452 4.2.2 over quota", want: "deferred 4.2.2"},
		{reply: "452 4.2.2 over quota", fullIsPermanent: true, want: "failed 5.2.2"},
		{reply: "551 5.1.6 moved", want: "rerouted 5.1.6"},
		{reply: "550 5.1.1 no such user", fullIsPermanent: true, want: "failed 5.1.1"},
	} {
		h := &host{lmtp: true, answer: func(line string) string {
			if strings.HasPrefix(line, "RCPT") {
				return c.reply
			}
			return ""
		}}
		address := h.serve(t)
		carrier := &send.MailboxCarrier{Store: func(string) (send.MailboxStore, bool) {
			return send.MailboxStore{Network: "tcp", Address: address, Hello: "client.example", FullIsPermanent: c.fullIsPermanent}, true
		}}
		way, err := carrier.Connect(t.Context(), send.Hop{Kind: "MAILBOX", Connector: "local", Name: "-"})
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(way.Send(t.Context(), letter("Subject: x\r\n\r\nx\r\n", "a@b.example"))); got != c.want {
			t.Errorf("%s: %s, want %s", c.reply, got, c.want)
		}
		way.Close()
	}
}
