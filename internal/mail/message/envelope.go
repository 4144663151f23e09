package message

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"
)

// Sources of messages, as tracking names them.
const (
	SourceSMTP   = "SMTP"
	SourceHTTP   = "HTTP"
	SourcePickup = "PICKUP"
	SourceReplay = "REPLAY"
)

// Directions of messages.
const (
	Incoming    = "Incoming"    // from outside of the organization
	Originating = "Originating" // from somebody whom we trust to be inside
)

// Recipient is a recipient of an envelope, with what RFC 3461 says of its reports.
type Recipient struct {
	Address  string
	Original string // ORCPT, as it was given: rfc822;ann@example.com
	Notify   string // NOTIFY, such as FAILURE,DELAY; nothing where it was not given
}

// OriginalRecipient gives an address the type that it has as an original recipient (RFC 3461 section 4.2, RFC 6533 section 3).
func OriginalRecipient(address string) string {
	if isASCII(address) {
		return "rfc822;" + address
	}
	return "utf-8;" + address
}

// Envelope is everything about an arriving message that is not its bytes.
type Envelope struct {
	NetworkMessageID string // a UUID: a store that sees it twice has the message already
	HeaderMessageID  string
	Subject          string
	Sender           string // nothing for the null sender
	Recipients       []Recipient
	Return           string // RET: FULL, HDRS or nothing
	EnvelopeID       string // ENVID
	HasVERP          bool   // each recipient has a return path of its own
	IsUTF8           bool   // SMTPUTF8
	BodyType         string // 7BIT or 8BITMIME
	Priority         string // of the header: high, normal or low
	ReceivedAt       time.Time
	Source           string
	Connector        string
	Peer             netip.Addr
	Local            netip.Addr    // the address of ours at which it came
	Took             time.Duration // how long it took to arrive
	Identity         string        // a UUID that another copy of the message has too, which came because nobody answered to the first
	Helo             string
	AuthenticatedAs  string
	Directionality   string
	Verdicts         json.RawMessage // of SPF, DKIM and DMARC, and what filters did; null where nothing was verified
	Quarantine       string          // the reason why the message is to be held, or nothing
	Refusal          Refusal         // why nobody gets it, where it is stored for a report to its sender alone
	IdempotencyKey   string
	ContentHash      string // with the key: what the submitter gave, whose bytes differ from those stored
}

// AskReturnPaths gives each recipient a return path of its own, whichever way the message came; a sender that can have none is refused.
func (e *Envelope) AskReturnPaths(sender Address) error {
	if !sender.hasReturnPaths() {
		return fmt.Errorf(
			"of sender %q no return path of a recipient can be made: it is the null sender, or its local part is long, needs quotes or has a +",
			sender.String(),
		)
	}
	e.HasVERP = true
	return nil
}

// Refusal says why a message is given up as soon as it is stored: a code of RFC 3463 and a text. Nothing says that it is not.
type Refusal struct{ Status, Text string }

// NewNetworkMessageID makes a UUID of version 7, which indexes keep in the order of time.
func NewNetworkMessageID(now time.Time) string {
	token := Token()
	ms := now.UnixMilli()
	const digits = "0123456789abcdef"
	id := []byte(token)
	for i := range 12 {
		id[i] = digits[ms>>(44-4*i)&0xf]
	}
	id[12] = '7'
	id[16] = "89ab"[id[16]&3]
	return string(id[:8]) + "-" + string(id[8:12]) + "-" + string(id[12:16]) + "-" + string(id[16:20]) + "-" + string(id[20:])
}

// PriorityOf reads how urgent a message says it is, in any of the fields that programs use.
func PriorityOf(h Header) string {
	switch value := firstWord(h.Value("Importance")); value {
	case "high", "low":
		return value
	}
	switch firstWord(h.Value("Priority")) {
	case "urgent":
		return "high"
	case "non-urgent":
		return "low"
	}
	switch firstWord(h.Value("X-Priority")) {
	case "1", "2":
		return "high"
	case "4", "5":
		return "low"
	}
	return "normal"
}

func firstWord(value string) string {
	words := strings.Fields(strings.ToLower(value))
	if len(words) == 0 {
		return ""
	}
	return words[0]
}
