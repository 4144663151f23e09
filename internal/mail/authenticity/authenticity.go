// Package authenticity verifies what a message says of its origin: SPF, DKIM and DMARC, and writes it as Authentication-Results.
package authenticity

import (
	"encoding/json"
	"io"
	"net/netip"

	"github.com/emersion/go-msgauth/authres"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Check is what becomes of a finding.
type Check int

// What becomes of a finding.
const (
	Record  Check = iota // it stands in Authentication-Results
	Off                  // nothing is looked up
	Enforce              // and is followed: of SPF a failure, of DMARC the policy of the domain in From
)

// Checks say what becomes of which finding. DMARC asks what SPF and DKIM have found, so it stands on what they are not asked for.
type Checks struct{ SPF, DKIM, DMARC Check }

// Message is what is verified.
type Message struct {
	Checks   Checks
	Peer     netip.Addr
	Helo     string
	Identity string // our name in Authentication-Results
	Sender   string // of the envelope; nothing for the null sender
	Header   message.Header
	Body     func() io.Reader // behind the header, as often as it is asked for
	SPF      *SenderVerdict   // as VerifySender gave it, where it was asked
}

// SenderVerdict is what SPF says of a sender.
type SenderVerdict struct {
	IsRefused  bool // the domain of the sender does not allow the host, and that is enforced
	IsDeferred bool // DNS did not answer, and that is enforced
	result     *authres.SPFResult
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
