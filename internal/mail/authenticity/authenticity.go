// Package authenticity verifies the claims of a message about its origin by SPF, DKIM and DMARC, and writes its findings into the field
// Authentication-Results.
package authenticity

import (
	"encoding/json"
	"io"
	"net/netip"

	"github.com/emersion/go-msgauth/authres"

	"github.com/parley-broker/parley/internal/mail/message"
)

// Check is the action on the finding of a check.
type Check int

// The actions on a finding.
const (
	Record  Check = iota // Authentication-Results states it
	Off                  // the check makes no question to DNS
	Enforce              // recorded and followed: a failure of SPF, the policy of DMARC of the domain in From
)

// Checks holds the action for each of the three. DMARC judges by the findings of SPF and DKIM. Where one of these is Off, DMARC lacks its
// finding.
type Checks struct{ SPF, DKIM, DMARC Check }

// Message is the message to verify.
type Message struct {
	Checks   Checks
	Peer     netip.Addr
	Helo     string
	Identity string // our name in Authentication-Results
	Sender   string // of the envelope; empty for the null sender
	Header   message.Header
	Body     func() io.Reader // the bytes behind the header; each call begins anew
	SPF      *SenderVerdict   // the result of VerifySender, nil where that was not called
}

// SenderVerdict is the finding of SPF about a sender.
type SenderVerdict struct {
	IsRefused  bool // the domain of the sender does not allow the host, and SPF is enforced
	IsDeferred bool // DNS did not answer, and SPF is enforced
	result     *authres.SPFResult
}

// Verdict is the result for a message.
type Verdict struct {
	Field      message.Field   // Authentication-Results
	Results    json.RawMessage // the findings as the store keeps them
	IsRefused  bool            // the policy of the domain in From is to reject, and DMARC is enforced
	IsDeferred bool            // DNS did not answer, and the policy depends on it
	Quarantine string          // the reason, where the policy is to quarantine
	Reason     string          // for the reply, where the message is refused or deferred
}
