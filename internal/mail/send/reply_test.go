package send_test

import (
	"strings"
	"testing"
)

// Reports repeat a reply as it was received, whatever it says of its status.
func TestReplyIsKeptAsItWasReceived(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string][2]string{
		"550 5.1.1 no such user": {"5.1.1", "5.1.1 no such user"},
		"550 no such user":       {"5.0.0", "no such user"},
		"550 2.1.0 odd":          {"5.0.0", "2.1.0 odd"},
		"550-5.1.1 no such user\r\n550 5.1.1 see https://x": {"5.1.1", "5.1.1 no such user 5.1.1 see https://x"},
		"552 5.5.3 too many": {"4.5.3", "5.5.3 too many"},
	} {
		h := &host{answer: func(line string) string {
			if strings.HasPrefix(line, "RCPT") {
				return reply
			}
			return ""
		}}
		connection, err := open(t, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		result := connection.Send(t.Context(), letter("x\r\n", "a@b.example"))[0]
		if result.Enhanced != want[0] || result.Text != want[1] {
			t.Errorf("%q is %s %q", reply, result.Enhanced, result.Text)
		}
		if reason := result.Reason(); strings.Count(reason, "5.1.1 no") > 1 || !strings.HasPrefix(reason, want[0]+" ") {
			t.Errorf("%q gives the reason %q", reply, reason)
		}
	}
}
