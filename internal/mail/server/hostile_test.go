package server_test

import (
	"fmt"
	netsmtp "net/smtp"
	"strings"
	"testing"
)

// Nothing of a body is interpreted: what would be a bomb to a reader of MIME comes through as it is.
func TestBombsPassThroughUnchanged(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.start()
	h.await("the listener", h.listens)
	var nested, parts, fields strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&nested, "Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n", i, i)
	}
	parts.WriteString("Content-Type: multipart/mixed; boundary=b\r\n\r\n")
	for range 100_000 {
		parts.WriteString("--b\r\n\r\nx\r\n")
	}
	for i := range 20_000 {
		fmt.Fprintf(&fields, "X-%d:\r\n", i)
	}
	letters := map[string]string{"nested": nested.String(), "parts": parts.String(), "fields": fields.String() + "\r\nx\r\n"}
	for name, text := range letters {
		letter := "From: bob@b.example\r\nSubject: " + name + "\r\n" + text
		if err := netsmtp.SendMail(h.address, nil, "bob@b.example", []string{"ann@example.org", "orders@example.org"}, []byte(letter)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	h.await("the end", h.empty)
	inbox := h.inbox()
	for name, text := range letters {
		found := 0
		for _, message := range inbox {
			if strings.HasSuffix(message, "Subject: "+name+"\r\n"+text) {
				found++
			}
		}
		if found != 1 {
			t.Errorf("%s: %d of %d letters are as they were sent", name, found, len(inbox))
		}
	}
	if got := h.text(`select string_agg(subject, ' ' order by subject) from public.orders`); got != "fields nested parts" {
		t.Errorf("the table has %s", got)
	}
}

func TestMessageForTenThousandGoesToEachOnce(t *testing.T) {
	t.Parallel()
	h := newHub(t)
	h.exec(`select parley_mail.alter_object('organization', 'organization', '{"max_recipients": 10000}')`)
	h.start()
	h.exec(`select parley_mail.send('ann@example.org', array(select 'r' || n || '@c.example' from generate_series(1, 10000) as n),
		subject => 'to all', text => 'to all', headers => '{"To": "all@example.org"}')`)
	h.await("the end", h.empty)
	times := map[string]int{}
	for _, message := range h.relayed() {
		recipients, text, _ := strings.Cut(message, "\n")
		for recipient := range strings.SplitSeq(recipients, ",") {
			times[recipient]++
		}
		if len(text) > 2000 {
			t.Errorf("a copy for %d recipients has %d bytes", strings.Count(recipients, ",")+1, len(text))
		}
	}
	for n := range 10_000 {
		if recipient := fmt.Sprintf("r%d@c.example", n+1); times[recipient] != 1 {
			t.Fatalf("%s got the message %d times", recipient, times[recipient])
		}
	}
}
