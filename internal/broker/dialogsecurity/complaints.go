package dialogsecurity

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-broker/parley"
)

const (
	complaintPause = 10 * time.Second
	complaintsKept = 1024
	// expiryNotice is how long ahead the log warns that a certificate expires, once a day.
	expiryNotice = 30 * 24 * time.Hour
	expiryPause  = 24 * time.Hour
)

// complaints logs what others can cause as often as they like: each reason once in some seconds, with the number of
// those in between.
type complaints struct {
	logger *slog.Logger

	mu     sync.Mutex
	logged map[string]*complaint
	// warned is when the log was last warned that a certificate expires.
	warned map[[fingerprintSize]byte]time.Time
}

type complaint struct {
	at       time.Time
	withheld int
}

func newComplaints(logger *slog.Logger) *complaints {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &complaints{logger: logger, logged: map[string]*complaint{}, warned: map[[fingerprintSize]byte]time.Time{}}
}

// trouble is the subject of a complaint.
type trouble bool

const (
	undelivered trouble = false // a message could not be opened
	unsigned    trouble = true  // a result was not signed
)

func (c *complaints) complain(about trouble, conversation parley.UUID, reason string) {
	c.mu.Lock()
	key := fmt.Sprint(about, reason)
	last := c.logged[key]
	if last != nil && time.Since(last.at) < complaintPause {
		last.withheld++
		c.mu.Unlock()
		return
	}
	withheld := 0
	if last != nil {
		withheld = last.withheld
	}
	if len(c.logged) >= complaintsKept {
		clear(c.logged)
	}
	c.logged[key] = &complaint{at: time.Now()}
	c.mu.Unlock()
	details := append(eventOf(about, reason), "conversation_id", conversation, "reason", reason, "withheld", withheld)
	if about == unsigned {
		c.logger.Warn("a result that the other side did not sign was not believed", details...)
		return
	}
	c.logger.Warn("a message was discarded because it could not be opened", details...)
}

// eventOf names a complaint as SQL Server's profiler would: dialog security that was refused, or a message that makes no sense.
func eventOf(about trouble, reason string) []any {
	subclass, happened := 0, ""
	switch {
	case about == unsigned:
	case strings.HasPrefix(reason, "9727:"):
		subclass, happened = 1, "No Security Header"
	case slices.ContainsFunc(noCertificate, func(number string) bool { return strings.HasPrefix(reason, number) }):
		subclass, happened = 2, "No Certificate"
	case strings.HasPrefix(reason, "28056:"):
		subclass, happened = 4, "Run As Target Failure"
	case reason == errTampered.Error(), reason == errForgedAgreement.Error():
		subclass, happened = 3, "Invalid Signature"
	}
	if subclass == 0 {
		return []any{"event", "Broker:Corrupted Message", "event_id", 161}
	}
	return []any{"event", "Audit Broker Conversation", "event_id", 158, "event_subclass", subclass, "event_subclass_name", happened}
}

// noCertificate are the numbers of what [truststore.JudgeCertificates] refuses: a certificate that is missing, not known, or not in its
// time.
var noCertificate = []string{"9731:", "9733:", "28024:", "28025:"}

// warnOfExpiry logs that a certificate in use expires soon.
func (c *complaints) warnOfExpiry(certificate Certificate) {
	left := time.Until(certificate.End)
	if certificate.Bytes == nil || left > expiryNotice {
		return
	}
	c.mu.Lock()
	last, isKnown := c.warned[certificate.Fingerprint]
	isDue := !isKnown || time.Since(last) > expiryPause
	if isDue {
		c.warned[certificate.Fingerprint] = time.Now()
	}
	c.mu.Unlock()
	if isDue {
		c.logger.Warn("a certificate of dialogs expires soon: see parley dialog-certificate rotate",
			"subject", certificate.Subject, "expires", certificate.End, "fingerprint", fmt.Sprintf("%x", certificate.Fingerprint))
	}
}
