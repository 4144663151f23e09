package parts

import (
	"unicode/utf8"

	"github.com/parley-broker/parley/internal/mail/message"
)

// readHeader reads the header of the message.
func (m *Message) readHeader(fields message.Header) {
	m.Subject = m.decoded(m.field(fields, "Subject"))
	m.From, m.ReplyTo = m.addresses(fields, "From"), m.addresses(fields, "Reply-To")
	m.To, m.Cc = m.addresses(fields, "To"), m.addresses(fields, "Cc")
	m.InReplyTo, m.References = m.ids(fields, "In-Reply-To"), m.ids(fields, "References")
	if written := m.field(fields, "Date"); written != "" {
		if date, isDate := message.ParseDate(written); isDate {
			m.Date = &date
		} else {
			m.damaged("", "INVALID_DATE")
		}
	}
}

// field gives the value of a field that is decoded, as far as its limit.
func (m *Message) field(fields message.Header, name string) string {
	field, has := fields.Get(name)
	if !has {
		return ""
	}
	value := m.value(field)
	if len(value) > m.limits.FieldBytes {
		m.truncated("", "HEADER_TRUNCATED")
		return cut(value, m.limits.FieldBytes)
	}
	return value
}

// value gives the value of a field; what is no character is U+FFFD.
func (m *Message) value(field message.Field) string {
	if !utf8.Valid(field.Raw) {
		m.damaged("", "INVALID_CHARACTERS")
	}
	return field.Value()
}

// decoded gives a text with its encoded words decoded, but for those that nobody can read.
func (m *Message) decoded(text string) string {
	text, isKnown := message.DecodeWords(text)
	if !isKnown {
		m.damaged("", "UNKNOWN_CHARSET")
	}
	return clean(text)
}

// ids gives the Message-IDs of a field.
func (m *Message) ids(fields message.Header, name string) []string {
	written := m.field(fields, name)
	_ = m.decoded(written) // says what nobody can read
	ids := message.IDs(written)
	for i, id := range ids {
		ids[i] = clean(id)
	}
	return ids
}

// addresses gives the addresses of all fields of a name. Half a list would be another list: one that is too long gives none. An entry that
// cannot be read takes no other with it.
func (m *Message) addresses(fields message.Header, name string) (addresses []Address) {
	for _, field := range fields.All(name) {
		value := m.value(field)
		if len(value) > m.limits.FieldBytes {
			m.truncated("", "HEADER_TRUNCATED")
			continue
		}
		read := message.ParseMailboxes(value)
		if read.IsOdd {
			m.damaged("", "INVALID_ADDRESSES")
		}
		if read.HasUnknownCharset {
			m.damaged("", "UNKNOWN_CHARSET")
		}
		if len(addresses)+len(read.List) > m.limits.Addresses {
			m.truncated("", "HEADER_TRUNCATED")
			continue
		}
		for _, one := range read.List {
			addresses = append(addresses, Address{Name: clean(one.Name), Address: clean(one.Address.String())})
		}
	}
	return addresses
}
