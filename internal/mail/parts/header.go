package parts

import (
	"fmt"
	"io"
	"mime"
	"net/mail"

	"golang.org/x/net/html/charset"

	"github.com/parley-broker/parley/internal/mail/message"
)

// words decodes encoded words (RFC 2047).
var words = &mime.WordDecoder{CharsetReader: func(name string, input io.Reader) (io.Reader, error) {
	decoded := ofCharset(name, input)
	if decoded == nil {
		return nil, fmt.Errorf("unknown charset %q", name)
	}
	return decoded, nil
}}

// ofCharset reads text of a charset, by any of its names, as UTF-8; nil where the charset is not known.
func ofCharset(name string, input io.Reader) io.Reader {
	encoding, canonical := charset.Lookup(name)
	if encoding == nil || canonical == "replacement" { // the second is one that browsers refuse to read
		return nil
	}
	return encoding.NewDecoder().Reader(input)
}

// decodeWords gives a text with its encoded words decoded, or as it is.
func decodeWords(text string) string {
	decoded, err := words.DecodeHeader(text)
	if err != nil {
		return clean(text)
	}
	return clean(decoded)
}

// readHeader reads the header of the message.
func (m *Message) readHeader(fields message.Header) {
	m.Subject = decodeWords(m.field(fields, "Subject"))
	m.From, m.ReplyTo = m.addresses(fields, "From"), m.addresses(fields, "Reply-To")
	m.To, m.Cc = m.addresses(fields, "To"), m.addresses(fields, "Cc")
	m.InReplyTo, m.References = messageIDs(m.field(fields, "In-Reply-To")), messageIDs(m.field(fields, "References"))
	if written := m.field(fields, "Date"); written != "" {
		date, err := mail.ParseDate(written)
		if date = date.UTC(); err == nil && date.Year() >= 1 && date.Year() <= 9999 {
			m.Date = &date
		} else {
			m.damaged("", "INVALID_DATE")
		}
	}
}

// field gives the value of a field that is decoded, as far as its limit.
func (m *Message) field(fields message.Header, name string) string {
	value := fields.Value(name)
	if len(value) > m.limits.FieldBytes {
		m.truncated("", "HEADER_TRUNCATED")
		return cut(value, m.limits.FieldBytes)
	}
	return value
}

// addresses gives the addresses of all fields of a name. Half a list would be another list: one that is too long or damaged gives none.
func (m *Message) addresses(fields message.Header, name string) (addresses []Address) {
	parser := mail.AddressParser{WordDecoder: words}
	for _, field := range fields.All(name) {
		value := field.Value()
		if len(value) > m.limits.FieldBytes {
			m.truncated("", "HEADER_TRUNCATED")
			continue
		}
		parsed, err := parser.ParseList(value)
		if err != nil {
			m.damaged("", "INVALID_ADDRESSES")
			continue
		}
		if len(addresses)+len(parsed) > m.limits.Addresses {
			m.truncated("", "HEADER_TRUNCATED")
			continue
		}
		for _, one := range parsed {
			addresses = append(addresses, Address{Name: clean(one.Name), Address: clean(one.Address)})
		}
	}
	return addresses
}
