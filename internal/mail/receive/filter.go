package receive

import (
	"context"
	"net/netip"
	"time"

	"github.com/emersion/go-smtp"

	"github.com/parley-broker/parley/internal/mail/authenticity"
	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/spool"
)

// Reply is an answer to a command.
type Reply = smtp.SMTPError //nolint:errname // most replies are no errors

// NewReply gives a reply. The enhanced code has the class of code.
func NewReply(code, subject, detail int, text string) *Reply {
	return &Reply{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, subject, detail}, Message: text}
}

// Event is a question to a filter, in the order of section 3.6.
type Event int

// The events of a session.
const (
	Connected Event = iota
	Greeted
	TLSStarted
	Authenticated
	SenderGiven
	RecipientGiven
	DataBegins
	HeaderEnded
	DataEnded
	BeforeQueue
	Aborted
	Disconnected
)

// Action is the decision of a filter.
type Action int

// The actions of a verdict.
const (
	Continue   Action = iota
	Refuse            // with the reply: 4yz or 5yz
	Quarantine        // accepted and held, for the reason
	Discard           // accepted and dropped
	Disconnect        // with the reply
)

// Verdict is an action with what it needs. The zero Verdict continues.
type Verdict struct {
	Action Action
	Reply  *Reply
	Reason string
	Delay  time.Duration // before the reply, whatever the action: a tarpit
	// Filter names the filter that decides, and Changes its changes of the message, such as "header", for the record.
	Filter  string
	Changes []string
}

// Exchange is the session as a filter sees it, and where it changes envelope, header and body.
type Exchange struct {
	Peer            netip.AddrPort
	PeerName        string
	Local           netip.AddrPort
	Connector       string
	FQDN            string
	Helo            string
	TLS             string // version and cipher, or nothing
	AuthenticatedAs string

	Envelope  *message.Envelope  // from SenderGiven on
	Recipient *message.Recipient // at RecipientGiven
	Header    message.Header     // from HeaderEnded on; changes count from DataEnded on
	Body      *spool.Body        // from DataEnded on: without the header
}

// Filter takes part in sessions. It is used by many of them at a time.
type Filter interface {
	// Session gives the filter's part in one session, which is used by one goroutine at a time, or nil to stay out of it. An error is
	// answered with 451 4.7.1 at MAIL FROM.
	Session(ctx context.Context) (FilterSession, error)
}

// FilterSession takes part in a session.
type FilterSession interface {
	Handle(ctx context.Context, event Event, exchange *Exchange) Verdict
	Close()
}

// Accepter stores messages. It returns when the message is durable, or will not be.
type Accepter interface {
	Accept(envelope message.Envelope, body *spool.Body) (id int64, err error)
}

// PeerClass is how near a peer is: pressure refuses the farthest first.
type PeerClass int

// The classes of peers.
const (
	AnonymousPeer PeerClass = iota
	UserPeer
	OwnNode
)

// Pressure is the decision for MAIL FROM just now.
type Pressure struct {
	Delay     time.Duration
	IsRefused bool // with 452 4.3.1
}

// Governor gives the decision that a class of peers meets at MAIL FROM (section 14.3). isOurSender is set for senders in the accepted
// domains, who pass at Medium.
type Governor interface {
	Pressure(class PeerClass, isOurSender bool) Pressure
}

// Directory knows our recipients and senders. A fact that it cannot find out is an error, and has the peer try again later.
type Directory interface {
	// Recipient gives nil for a recipient that is taken, or the reply for one that is not.
	Recipient(ctx context.Context, asked RecipientQuery) (*Reply, error)
	// Sender gives the settings for a sender in our domains; numbers are 0 where nothing holds.
	Sender(ctx context.Context, sender message.Address) (bytes int64, recipients int, err error)
}

// RecipientQuery asks about a recipient in our domains.
type RecipientQuery struct {
	Sender, Recipient message.Address
	IsOriginating     bool  // the sender is one of ours
	Size              int64 // as it was announced, or 0; and 0 for messages without a limit
}

// originVerifier verifies what a message says of its origin.
type originVerifier interface {
	// VerifySender verifies by SPF whether the peer may use the sender, before there is a message.
	VerifySender(ctx context.Context, m authenticity.Message) authenticity.SenderVerdict
	Verify(ctx context.Context, m authenticity.Message) authenticity.Verdict
}
