package send_test

import (
	"testing"

	"github.com/parley-broker/parley/internal/mail/send"
)

// Mail can be routed to a store that the daemon has not read yet: it waits for its configuration, and not for a retry.
func TestAStoreThatTheDaemonDoesNotKnowYetIsAwaited(t *testing.T) {
	t.Parallel()
	asked := 0
	carrier := &send.MailboxCarrier{Store: func(string) (send.MailboxStore, bool) {
		asked++
		return send.MailboxStore{}, asked > 2
	}}
	way, err := carrier.Connect(t.Context(), send.Hop{Kind: "MAILBOX", Connector: "new", Name: "-"})
	if err != nil || way == nil {
		t.Errorf("after %d questions: %v", asked, err)
	}
}
