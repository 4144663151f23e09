package report

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Action is the fate of a recipient (RFC 3464 section 2.3.3).
type Action string

// The actions. Each report is of one.
const (
	Failed    Action = "failed"
	Delayed   Action = "delayed"
	Delivered Action = "delivered"
	Relayed   Action = "relayed"
	Expanded  Action = "expanded"
)

// Report is a report about one message.
type Report struct {
	Action Action
	// ReportingMTA is the host that reports, and Postmaster the address from which the report comes.
	ReportingMTA, Postmaster string
	// To is the envelope sender of the message.
	To string
	// EnvelopeID is the sender's name for the message, and ReceivedFrom the host that gave it to us; "" when there is none.
	EnvelopeID, ReceivedFrom string
	// Arrived is when the message was accepted; Date and MessageID are those of the report.
	Arrived, Date time.Time
	MessageID     string
	Recipients    []Recipient
	// Original is the message; only its header is returned when HeadersOnly.
	Original    io.Reader
	HeadersOnly bool
}

// Recipient is the fate of one recipient.
type Recipient struct {
	// Final is the address as we have it, and Original as the sender gave it, with its type; "" when it gave none.
	Final, Original string
	// Status is the code of RFC 3463; Code and Text are the reply of Remote as it was received, or Text is what went wrong here. Remote is a
	// name or an address.
	Status, Text, Remote string
	Code                 int
	LastAttempt          time.Time
	// RetryUntil is how long it is tried, for a delay.
	RetryUntil time.Time
	// LogID is under what the tracking log knows the message.
	LogID string
}

// Write writes the report as a message whose lines end with CRLF.
func (r Report) Write(w io.Writer) error {
	boundary := boundary()
	head := new(bytes.Buffer)
	field := func(name, value string) { fmt.Fprintf(head, "%s: %s\r\n", name, clean(value)) }
	field("From", "Mail Delivery System <"+r.Postmaster+">")
	field("To", "<"+r.To+">")
	field("Subject", mime.QEncoding.Encode("utf-8", r.subject()))
	field("Date", r.Date.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
	field("Message-ID", "<"+r.MessageID+">")
	field("Auto-Submitted", "auto-replied")
	field("MIME-Version", "1.0")
	// The returned message may have any bytes, and a whole has the encoding of its parts (RFC 2045 section 6.4).
	head.WriteString("Content-Transfer-Encoding: 8bit\r\n")
	fmt.Fprintf(head, "Content-Type: multipart/report; report-type=%s;\r\n\tboundary=\"%s\"\r\n\r\n", r.kind(), boundary)
	fmt.Fprintf(head, "--%s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n", boundary)
	text := quotedprintable.NewWriter(head)
	if _, err := io.WriteString(text, r.text()); err != nil {
		return fmt.Errorf("write the text of a report: %w", err)
	}
	if err := text.Close(); err != nil {
		return fmt.Errorf("write the text of a report: %w", err)
	}
	fmt.Fprintf(head, "\r\n--%s\r\nContent-Type: message/%s\r\n", boundary, r.kind())
	if r.international() {
		head.WriteString("Content-Transfer-Encoding: 8bit\r\n")
	}
	head.WriteString("\r\n")
	r.fields(head)
	fmt.Fprintf(head, "\r\n--%s\r\nContent-Type: %s\r\nContent-Transfer-Encoding: 8bit\r\n\r\n", boundary, r.returned())
	if _, err := w.Write(head.Bytes()); err != nil {
		return fmt.Errorf("write a report: %w", err)
	}
	original := r.Original
	if r.HeadersOnly {
		header, err := readHeader(r.Original)
		if err != nil {
			return err
		}
		original = bytes.NewReader(header)
	}
	if _, err := io.Copy(&lineCutter{w: w}, original); err != nil {
		return fmt.Errorf("return the message in a report: %w", err)
	}
	if _, err := fmt.Fprintf(w, "\r\n--%s--\r\n", boundary); err != nil {
		return fmt.Errorf("write a report: %w", err)
	}
	return nil
}

// kind is the type of the fields: addresses beyond ASCII have one of their own (RFC 6533).
func (r Report) kind() string {
	if r.international() {
		return "global-delivery-status"
	}
	return "delivery-status"
}

// returned is the type of the part that has the message or its header.
func (r Report) returned() string {
	switch {
	case r.HeadersOnly && r.international():
		return "message/global-headers"
	case r.HeadersOnly:
		return "text/rfc822-headers"
	case r.international():
		return "message/global"
	default:
		return "message/rfc822"
	}
}

func (r Report) international() bool {
	return slices.ContainsFunc(r.Recipients, func(recipient Recipient) bool {
		return !ascii(recipient.Final) || !ascii(recipient.Original)
	})
}

// fields writes what programs read: one group for the message, and one for each recipient.
func (r Report) fields(w *bytes.Buffer) {
	isASCII := !r.international()
	field := func(name, value string) {
		if isASCII { // what a host replied need not be
			value = strings.Map(asciiOnly, value)
		}
		if value != "" {
			writeFolded(w, name+": "+clean(value))
		}
	}
	date := func(name string, at time.Time) {
		if !at.IsZero() {
			field(name, at.Format("Mon, 02 Jan 2006 15:04:05 -0700"))
		}
	}
	prefixed := func(name, kind, value string) {
		if value != "" {
			field(name, kind+"; "+value)
		}
	}
	field("Original-Envelope-Id", r.EnvelopeID)
	prefixed("Reporting-MTA", "dns", r.ReportingMTA)
	prefixed("Received-From-MTA", "dns", hostName(r.ReceivedFrom))
	date("Arrival-Date", r.Arrived)
	for _, recipient := range r.Recipients {
		w.WriteString("\r\n")
		field("Original-Recipient", recipient.Original)
		kind := "rfc822"
		if !ascii(recipient.Final) {
			kind = "utf-8"
		}
		prefixed("Final-Recipient", kind, recipient.Final)
		field("Action", string(r.Action))
		field("Status", recipient.Status)
		prefixed("Remote-MTA", "dns", hostName(recipient.Remote))
		if recipient.Code != 0 {
			field("Diagnostic-Code", fmt.Sprintf("smtp; %d %s", recipient.Code, recipient.Text))
		} else {
			prefixed("Diagnostic-Code", "x-parley", recipient.Text)
		}
		date("Last-Attempt-Date", recipient.LastAttempt)
		field("Final-Log-ID", recipient.LogID)
		if r.Action == Delayed {
			date("Will-Retry-Until", recipient.RetryUntil)
		}
	}
}

// hostName is the name of a host as fields have it: an address stands in brackets (RFC 3464 section 2.1.2, RFC 5321 section 4.1.3).
func hostName(name string) string {
	switch address, err := netip.ParseAddr(name); {
	case err != nil:
		return name
	case address.Unmap().Is4():
		return "[" + address.Unmap().String() + "]"
	default:
		return "[IPv6:" + address.WithZone("").String() + "]"
	}
}

const (
	// lineLength is how long lines are where they can be folded at a blank, in bytes.
	lineLength = 78
	// wordLength is how long a word may be: with a name before it, it fits in the 998 bytes of a line.
	wordLength = 900
)

// writeFolded writes a field on as many lines as it takes. A word that fits in no line is cut.
func writeFolded(w *bytes.Buffer, field string) {
	line := -1 // no blank stands before the first word
	for i, word := range strings.Split(field, " ") {
		for len(word) > wordLength {
			cut := strings.ToValidUTF8(word[:wordLength], "")
			w.WriteString("\r\n " + cut)
			word, line = word[len(cut):], wordLength
		}
		switch {
		case i == 0:
			w.WriteString(word)
		case line+1+len(word) > lineLength && (i > 1 || line > lineLength) && word != "":
			w.WriteString("\r\n " + word)
			line = 0
		default:
			w.WriteString(" " + word)
		}
		line += 1 + len(word)
	}
	w.WriteString("\r\n")
}

// clean keeps a value in its line.
func clean(value string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, value)
}

func asciiOnly(r rune) rune {
	if r > 0x7e {
		return '?'
	}
	return r
}

func ascii(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7e })
}

// maximumHeader bounds the header that is returned, in bytes.
const maximumHeader = 256 << 10

// readHeader reads a message up to its first empty line.
func readHeader(message io.Reader) ([]byte, error) {
	header, err := io.ReadAll(io.LimitReader(message, maximumHeader))
	if err != nil {
		return nil, fmt.Errorf("read the header of the message: %w", err)
	}
	if end := bytes.Index(header, []byte("\r\n\r\n")); end >= 0 {
		header = header[:end+2]
	}
	return header, nil
}

// boundary separates the parts; nobody can guess it and put it into the message that is returned.
func boundary() string {
	var random [18]byte
	_, _ = rand.Read(random[:])
	return "=_" + hex.EncodeToString(random[:])
}
