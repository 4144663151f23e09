// Package authenticity verifies what a message says of its origin: SPF, DKIM and DMARC, and writes it as Authentication-Results.
package authenticity

import (
	"encoding/json"
	"io"
	"net/netip"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Message is what is verified.
type Message struct {
	Peer     netip.Addr
	Helo     string
	Identity string // our name in Authentication-Results
	Sender   string // of the envelope; nothing for the null sender
	Header   message.Header
	Body     func() io.Reader // behind the header, as often as it is asked for
}

// Verdict is what was found.
type Verdict struct {
	Field      message.Field   // Authentication-Results
	Results    json.RawMessage // the same for the store
	IsRefused  bool            // the policy of the sender's domain is to reject, and is followed
	IsDeferred bool            // DNS did not answer, and the policy depends on it
	Quarantine string          // the reason, where the policy is to quarantine
	Reason     string          // for the reply, where the message is refused or deferred
}
