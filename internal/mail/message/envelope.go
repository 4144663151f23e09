package message

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Sources of messages, as tracking names them.
const (
	SourceSMTP   = "SMTP"
	SourceHTTP   = "HTTP"
	SourcePickup = "PICKUP"
	SourceReplay = "REPLAY"
	SourceReport = "DSN"
)

// Directions of messages.
const (
	Incoming    = "INCOMING"    // from outside of the organization
	Originating = "ORIGINATING" // from somebody whom we trust to be inside
)

// Recipient is a recipient of an envelope, with what RFC 3461 says of its reports.
type Recipient struct {
	Address  string
	Original string // ORCPT, as it was given: rfc822;ann@example.com
	Notify   string // NOTIFY, such as FAILURE,DELAY; nothing where it was not given
}

// Columns gives recipients as the database has them: an element of each list for each recipient, nil where nothing was said. Of what was
// said of none there is no list.
func Columns(recipients []Recipient) (addresses []string, notify, originals []*string) {
	addresses = make([]string, len(recipients))
	for i, recipient := range recipients {
		addresses[i] = recipient.Address
		notify, originals = setAt(notify, i, len(recipients), recipient.Notify), setAt(originals, i, len(recipients), recipient.Original)
	}
	return addresses, notify, originals
}

// setAt sets an element of a list, which is made of so many elements for the first one that is not empty.
func setAt(list []*string, i, of int, text string) []*string {
	if text == "" {
		return list
	}
	if list == nil {
		list = make([]*string, of)
	}
	list[i] = &text
	return list
}

// OriginalRecipient gives an address the type that it has as an original recipient (RFC 3461 section 4.2, RFC 6533 section 3).
func OriginalRecipient(address string) string {
	if isASCII(address) {
		return "rfc822;" + address
	}
	return "utf-8;" + address
}

// Envelope is everything about an arriving message that is not its bytes. In JSON its fields have the names of the columns of
// parley_mail._p_message; what is empty is left to the database. [Columns] gives those of the recipients.
type Envelope struct {
	NetworkMessageID string      `json:"network_message_id,omitempty"` // a UUID: a store that sees it twice has the message already
	HeaderMessageID  string      `json:"header_message_id,omitempty"`
	Subject          string      `json:"subject,omitempty"`
	Sender           string      `json:"sender"` // nothing for the null sender
	Recipients       []Recipient `json:"-"`
	Return           string      `json:"ret,omitempty"`                // RET: FULL, HDRS or nothing
	EnvelopeID       string      `json:"envid,omitempty"`              // ENVID
	HasVERP          bool        `json:"has_verp,omitempty"`           // each recipient has a return path of its own
	IsUTF8           bool        `json:"has_utf8_addresses,omitempty"` // SMTPUTF8
	BodyType         BodyType    `json:"is_eight_bit,omitempty"`
	Priority         Priority    `json:"priority,omitempty"` // of the header
	ReceivedAt       time.Time   `json:"received_at,omitzero"`
	Source           string      `json:"source"`
	Connector        string      `json:"connector,omitempty"`
	Peer             netip.Addr  `json:"source_ip,omitzero"`
	Local            netip.Addr  `json:"server_ip,omitzero"`  // the address of ours at which it came
	Took             Took        `json:"receive_ms,omitzero"` // how long it took to arrive
	// Identity is a UUID that another copy of the message has too, which came because nobody answered to the first.
	Identity        string `json:"identity,omitempty"`
	Helo            string `json:"helo,omitempty"`
	AuthenticatedAs string `json:"authenticated_as,omitempty"`
	Directionality  string `json:"directionality,omitempty"`
	// Verdicts are those of SPF, DKIM and DMARC, and what filters did; nil where nothing was verified.
	Verdicts        json.RawMessage `json:"verdicts,omitempty"`
	ParentMessageID int64           `json:"parent_message_id,omitempty"` // of a report the number of the message that it is about
	Quarantine      string          `json:"quarantine,omitempty"`        // the reason why the message is to be held, or nothing
	// Refusal is the reason why nobody gets the message, where it is stored for a report to its sender alone.
	Refusal        Refusal `json:"refusal,omitzero"`
	IdempotencyKey string  `json:"idempotency_key,omitempty"`
	// ContentHash is with the key: in hexadecimal, that of what the submitter gave, whose bytes differ from those stored.
	ContentHash string `json:"content_hash,omitempty"`
}

// BodyType is 7BIT or 8BITMIME, or nothing where nobody said which.
type BodyType string

// MarshalJSON writes whether the body has bytes above 127.
func (t BodyType) MarshalJSON() ([]byte, error) {
	return strconv.AppendBool(nil, t != "" && t != "7BIT"), nil
}

// Took is a duration that is kept in milliseconds.
type Took time.Duration

// MarshalJSON writes milliseconds.
func (t Took) MarshalJSON() ([]byte, error) {
	return strconv.AppendInt(nil, time.Duration(t).Milliseconds(), 10), nil
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
type Refusal struct {
	Status string `json:"status"`
	Text   string `json:"reason"`
}

// ReadField reads a field of a file that has its envelope before the header, as _p_envelope_text writes it: a sender or a recipient with
// parameters as those of MAIL and RCPT, or where the message came from. It reports whether the field is one of these.
func (e *Envelope) ReadField(name, value string) (isOne bool, err error) {
	switch strings.ToLower(name) {
	case "x-sender":
		err = e.setSender(value)
	case "x-receiver":
		err = e.addRecipient(value)
	case "x-helodomain":
		e.Helo = value
	case "x-sourceipaddress":
		e.Peer, err = netip.ParseAddr(value)
	default:
		return false, nil
	}
	return true, err
}

// setSender reads a sender with its parameters.
func (e *Envelope) setSender(value string) error {
	address, parameters, err := ParsePath(value)
	if err != nil {
		return err
	}
	if address, err = address.Canonical(); err != nil {
		return err
	}
	e.Sender, e.IsUTF8 = address.String(), e.IsUTF8 || !address.IsASCII()
	for parameter := range strings.FieldsSeq(parameters) {
		key, value, _ := strings.Cut(parameter, "=")
		switch strings.ToUpper(key) {
		case "BODY":
			e.BodyType = BodyType(strings.ToUpper(value))
		case "RET":
			if e.Return = strings.ToUpper(value); e.Return != "FULL" && e.Return != "HDRS" {
				return errors.New("RET is FULL or HDRS")
			}
		case "ENVID":
			if e.EnvelopeID, err = ParseXText(value); err != nil {
				return fmt.Errorf("the parameter ENVID: %w", err)
			}
		case "XVERP":
			if err := e.AskReturnPaths(address); err != nil {
				return err
			}
		case "SMTPUTF8":
			e.IsUTF8 = true
		case "AUTH", "SIZE":
		default:
			return fmt.Errorf("the parameter %s is unknown", key)
		}
	}
	return nil
}

// addRecipient reads a recipient with its parameters.
func (e *Envelope) addRecipient(value string) error {
	address, parameters, err := ParsePath(value)
	if err != nil || address.IsNull() {
		return ErrAddress
	}
	if address, err = address.Canonical(); err != nil {
		return err
	}
	recipient := Recipient{Address: address.String()}
	e.IsUTF8 = e.IsUTF8 || !address.IsASCII()
	for parameter := range strings.FieldsSeq(parameters) {
		key, value, _ := strings.Cut(parameter, "=")
		switch strings.ToUpper(key) {
		case "NOTIFY":
			for word := range strings.SplitSeq(strings.ToUpper(value), ",") {
				if word != "NEVER" && word != "SUCCESS" && word != "FAILURE" && word != "DELAY" {
					return errors.New("NOTIFY is NEVER, or some of SUCCESS, FAILURE and DELAY")
				}
			}
			recipient.Notify = strings.ToUpper(value)
		case "ORCPT":
			if recipient.Original, err = ParseOriginalRecipient(value); err != nil {
				return fmt.Errorf("the parameter ORCPT: %w", err)
			}
		default:
			return fmt.Errorf("the parameter %s is unknown", key)
		}
	}
	e.Recipients = append(e.Recipients, recipient)
	return nil
}
