package milter

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/emersion/go-milter"

	"github.com/parley-broker/parley/internal/mail/message"
	"github.com/parley-broker/parley/internal/mail/receive"
)

// change applies changes to envelope, header and body.
func (s *session) change(e *receive.Exchange, changes []milter.ModifyAction) (verdict receive.Verdict, err error) {
	var body []byte
	isBodyChanged := false
	changed := make(map[string]bool)
	defer func() { verdict.Changes = slices.Sorted(maps.Keys(changed)) }()
	for _, c := range changes {
		switch c.Code {
		case milter.ActAddRcpt, milter.ActDelRcpt, milter.ActChangeFrom:
			changed["envelope"] = true
			if err := changeEnvelope(e.Envelope, c); err != nil {
				return verdict, err
			}
		case milter.ActReplBody:
			body, isBodyChanged = append(body, c.Body...), true
			changed["body"] = true
		case milter.ActQuarantine:
			verdict = receive.Verdict{Action: receive.Quarantine, Reason: c.Reason}
		case milter.ActAddHeader, milter.ActInsertHeader, milter.ActChangeHeader:
			e.Header = changeHeader(e.Header, c)
			changed["header"] = true
		}
	}
	if isBodyChanged {
		var whole bytes.Buffer
		ends := message.LineEnds{Write: func(p []byte) { whole.Write(p) }} // a CR by itself would be a line end to somebody else
		ends.Add(body)
		if err := e.Body.Truncate(); err != nil {
			return verdict, err
		}
		if _, err := e.Body.Write(whole.Bytes()); err != nil {
			return verdict, err
		}
	}
	return verdict, nil
}

func changeEnvelope(envelope *message.Envelope, c milter.ModifyAction) error {
	text := c.Rcpt
	if c.Code == milter.ActChangeFrom {
		text = c.From
	}
	if !strings.HasPrefix(text, "<") {
		text = "<" + text + ">"
	}
	address, _, err := message.ParsePath(text)
	if err != nil || address.IsNull() && c.Code != milter.ActChangeFrom {
		return fmt.Errorf("a milter gave the address %q: %w", text, message.ErrAddress)
	}
	switch c.Code {
	case milter.ActChangeFrom:
		envelope.Sender = address.String()
	case milter.ActAddRcpt:
		envelope.Recipients = append(envelope.Recipients, message.Recipient{Address: address.String()})
	default:
		kept := envelope.Recipients[:0:0]
		for _, recipient := range envelope.Recipients {
			if !strings.EqualFold(recipient.Address, address.String()) {
				kept = append(kept, recipient)
			}
		}
		envelope.Recipients = kept
	}
	return nil
}

// changeHeader adds, replaces or takes out a field. Indexes count from one: among all fields to insert, among those of the name to change.
func changeHeader(header message.Header, c milter.ModifyAction) message.Header {
	field := message.NewField(fieldName(c.HeaderName), strings.ReplaceAll(strings.ReplaceAll(c.HeaderValue, "\r\n", "\n"), "\n", "\r\n"))
	at := len(header)
	changed := append(message.Header{}, header...)
	if c.Code == milter.ActInsertHeader {
		at = min(at, max(0, int(c.HeaderIndex)-1))
	}
	if c.Code == milter.ActChangeHeader {
		seen := uint32(0)
		for i, existing := range header {
			if !existing.Is(c.HeaderName) {
				continue
			}
			seen++
			if seen != max(1, c.HeaderIndex) {
				continue
			}
			if c.HeaderValue == "" {
				return append(changed[:i], changed[i+1:]...)
			}
			changed[i] = field
			return changed
		}
		if c.HeaderValue == "" {
			return header
		}
	}
	return append(changed[:at:at], append(message.Header{field}, changed[at:]...)...)
}

// fieldName takes out of a name what no name has.
func fieldName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r <= ' ' || r >= 0x7f || r == ':' {
			return -1
		}
		return r
	}, name)
	if name == "" {
		return "X-Milter"
	}
	return name
}
