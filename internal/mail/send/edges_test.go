package send_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// The longest answer of a host to one command: 200 lines of 4,096 bytes with their ends. Of a reply 1,000 bytes are kept.
func TestReplyIsBounded(t *testing.T) {
	t.Parallel()
	lines := func(n int) string { return strings.Repeat("250-X\r\n", n-1) + "250 X" }
	for name, c := range map[string]struct {
		reply string
		fails bool
	}{
		"200 lines":            {lines(200), false},
		"201 lines":            {lines(201), true},
		"a line of 4096 bytes": {"250 " + strings.Repeat("x", 4096-6), false},
		"a line of 4097 bytes": {"250 " + strings.Repeat("x", 4097-6), true},
	} {
		h := &host{answer: func(line string) string {
			if strings.HasPrefix(line, "EHLO") {
				return c.reply
			}
			return ""
		}}
		if _, err := open(t, h, nil); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
	for length, want := range map[int]int{999: 999, 1000: 1000, 1001: 1000, 3000: 1000} {
		h := &host{answer: func(line string) string {
			if strings.HasPrefix(line, "EHLO") {
				return "550 " + strings.Repeat("x", length)
			}
			return ""
		}}
		_, err := open(t, h, nil)
		if failed, is := errors.AsType[*send.OpenError](err); !is || len(failed.Result.Text) != want {
			t.Errorf("of a reply of %d bytes %d are kept, want %d", length, len(failed.Result.Text), want)
		}
	}
}

// A host that says how large a message may be gets none that is larger; 0 and what is no number say nothing.
func TestSizeThatTheHostTakesHolds(t *testing.T) {
	t.Parallel()
	for extension, want := range map[string]string{
		"SIZE 20": "delivered 2.0.0", "SIZE 19": "failed 5.3.4", "SIZE 0": "delivered 2.0.0", "SIZE": "delivered 2.0.0", "SIZE many": "delivered 2.0.0",
		"size 19": "failed 5.3.4",
	} {
		connection, err := open(t, &host{extensions: []string{extension}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(connection.Send(t.Context(), letter("Subject: x\r\n\r\nbody\r\n", "a@b.example"))); got != want {
			t.Errorf("%s: %s, want %s", extension, got, want)
		}
	}
}

// How many recipients a transaction has: as many as the connector says, and each gets its result.
func TestTransactionHasAsManyRecipientsAsItMay(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]string{0: "5", 1: "1 1 1 1 1", 2: "2 2 1", 4: "4 1", 5: "5", 6: "5"} {
		h := &host{}
		connection, err := open(t, h, func(target *send.Target) { target.Recipients = most })
		if err != nil {
			t.Fatal(err)
		}
		results := connection.Send(t.Context(), letter("x\r\n", "a@b.example", "b@b.example", "c@b.example", "d@b.example", "e@b.example"))
		if got := outcome(results); strings.Count(got, "delivered 2.0.0") != 5 {
			t.Errorf("at most %d: %s", most, got)
		}
		_, lines := h.received()
		var counts []string
		for _, transaction := range strings.Split(strings.Join(lines, "\n"), "MAIL FROM")[1:] {
			counts = append(counts, string(rune('0'+strings.Count(transaction, "RCPT TO"))))
		}
		if got := strings.Join(counts, " "); got != want {
			t.Errorf("at most %d: transactions of %s recipients, want %s", most, got, want)
		}
	}
}

// A host that closes behind the message that it wanted although nobody receives it is asked for nothing more.
func TestHostThatClosesBehindAnEmptyMessageIsLeft(t *testing.T) {
	t.Parallel()
	for reply, usable := range map[string]bool{"421 4.3.2 closing": false, "554 5.5.1 nobody receives it": true, "": true} {
		h := &host{extensions: []string{"PIPELINING"}, answer: func(line string) string {
			switch {
			case strings.HasPrefix(line, "RCPT"):
				return "550 5.1.1 no"
			case line == ".0":
				return reply
			}
			return ""
		}}
		connection, err := open(t, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := outcome(connection.Send(t.Context(), letter("Subject: x\r\n\r\nbody\r\n", "a@b.example"))); got != "failed 5.1.1" {
			t.Errorf("%q: %s", reply, got)
		}
		_, lines := h.received()
		if hasReset := lines[len(lines)-1] == "RSET"; hasReset != usable || connection.Usable() != usable {
			t.Errorf("%q: the connection is usable: %v, want %v, after %q", reply, connection.Usable(), usable, lines)
		}
	}
}
