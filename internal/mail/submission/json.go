package submission

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/textproto"
	"slices"
	"strings"

	"github.com/parley-broker/parley/internal/mail/message"
)

// request is a message as JSON.
type request struct {
	From        string            `json:"from"`
	To          []string          `json:"to"`
	Cc          []string          `json:"cc"`
	Bcc         []string          `json:"bcc"`
	ReplyTo     string            `json:"reply_to"`
	Subject     string            `json:"subject"`
	Text        string            `json:"text"`
	HTML        string            `json:"html"`
	Headers     map[string]string `json:"headers"`
	Attachments []attachment      `json:"attachments"`
	VERP        bool              `json:"verp"` // each recipient has a return path of its own
}

type attachment struct {
	Name        string `json:"name"`
	ContentType string `json:"content_type"`
	Content     []byte `json:"content"` // base64
}

// ownFields are fields that a request sets by its own members, or not at all.
var ownFields = []string{
	"from", "to", "cc", "bcc", "sender", "reply-to", "subject", "mime-version", "content-type", "content-transfer-encoding",
	"received", "return-path", "dkim-signature",
}

// readJSON makes a message of a request, and says whether each recipient has a return path of its own.
func readJSON(r io.Reader) (header message.Header, body, content []byte, hasVERP bool, err error) {
	content, err = io.ReadAll(r)
	if err != nil {
		return nil, nil, nil, false, fmt.Errorf("read the request: %w", err)
	}
	var asked request
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&asked); err != nil {
		return nil, nil, nil, false, fmt.Errorf("the request is not the JSON of a message: %w", err)
	}
	if decoder.More() {
		return nil, nil, nil, false, errors.New("the request is more than one JSON object")
	}
	if strings.ContainsRune(asked.Text, 0) || strings.ContainsRune(asked.HTML, 0) {
		return nil, nil, nil, false, errNUL
	}
	header, err = asked.header()
	if err != nil {
		return nil, nil, nil, false, err
	}
	fields, text, err := asked.body()
	if err != nil {
		return nil, nil, nil, false, err
	}
	header = append(header, message.NewField("MIME-Version", "1.0"))
	for _, name := range []string{"Content-Type", "Content-Transfer-Encoding"} {
		if value := fields.Get(name); value != "" {
			header = append(header, message.NewField(name, value))
		}
	}
	return header, text, content, asked.VERP, nil
}

func (q *request) header() (header message.Header, err error) {
	for _, field := range []struct {
		name   string
		values []string
	}{{"From", []string{q.From}}, {"To", q.To}, {"Cc", q.Cc}, {"Bcc", q.Bcc}, {"Reply-To", []string{q.ReplyTo}}} {
		var addresses []string
		for _, value := range field.values {
			if value == "" {
				continue
			}
			parsed, err := message.ParseMailbox(value)
			if err != nil {
				return nil, fmt.Errorf("%q of %s is %w", value, strings.ToLower(field.name), err)
			}
			addresses = append(addresses, parsed.String())
		}
		if len(addresses) > 0 {
			header = append(header, message.NewField(field.name, strings.Join(addresses, ",\r\n ")))
		}
	}
	if hasControl(q.Subject) {
		return nil, errors.New("a subject is one line")
	}
	header = append(header, message.NewField("Subject", folded("Subject", q.Subject)))
	names := make([]string, 0, len(q.Headers))
	for name := range q.Headers {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !isFieldName(name) || slices.Contains(ownFields, strings.ToLower(name)) || hasControl(q.Headers[name]) {
			return nil, fmt.Errorf("the header %q cannot be set, or its value is not one line", name)
		}
		header = append(header, message.NewField(name, folded(name, q.Headers[name])))
	}
	return header, nil
}

// folded writes a value on as many lines as it takes, in encoded words where it is not ASCII.
func folded(name, value string) string {
	if encoded := mime.QEncoding.Encode("utf-8", value); encoded != value {
		return strings.ReplaceAll(encoded, "?= =?", "?=\r\n =?")
	}
	return message.Folded(name, value)
}

func hasControl(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

func isFieldName(name string) bool {
	return name != "" && len(name) <= 70 && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' })
}

// part is an entity of MIME.
type part struct {
	fields textproto.MIMEHeader
	text   []byte
}

// body gives text, HTML or both, with attachments around them.
func (q *request) body() (textproto.MIMEHeader, []byte, error) {
	var alternatives []part
	for _, one := range []struct{ kind, text string }{{"text/plain", q.Text}, {"text/html", q.HTML}} {
		if one.text != "" || one.kind == "text/plain" && q.HTML == "" {
			alternatives = append(alternatives, textPart(one.kind, one.text))
		}
	}
	whole, err := joined("alternative", alternatives)
	if err != nil || len(q.Attachments) == 0 {
		return whole.fields, whole.text, err
	}
	parts := []part{whole}
	for _, a := range q.Attachments {
		attached, err := a.part()
		if err != nil {
			return nil, nil, err
		}
		parts = append(parts, attached)
	}
	whole, err = joined("mixed", parts)
	return whole.fields, whole.text, err
}

func textPart(kind, text string) part {
	var encoded bytes.Buffer
	w := quotedprintable.NewWriter(&encoded)
	_, _ = io.WriteString(w, text) // into memory
	_ = w.Close()
	encoded.WriteString("\r\n")
	return part{fields: textproto.MIMEHeader{
		"Content-Type": {kind + "; charset=utf-8"}, "Content-Transfer-Encoding": {"quoted-printable"},
	}, text: encoded.Bytes()}
}

func (a attachment) part() (part, error) {
	kind := a.ContentType
	if kind == "" {
		kind = "application/octet-stream"
	}
	base, parameters, err := mime.ParseMediaType(kind)
	isMessage := base == "message/rfc822"
	if err != nil || strings.HasPrefix(base, "multipart/") || strings.HasPrefix(base, "message/") && !isMessage || hasControl(a.Name) {
		return part{}, fmt.Errorf("attachment %q has a type or a name that cannot be used", a.Name)
	}
	if isMessage {
		return a.message(mime.FormatMediaType(base, parameters)), nil
	}
	var encoded bytes.Buffer
	text := base64.StdEncoding.EncodeToString(a.Content)
	for len(text) > 76 {
		encoded.WriteString(text[:76] + "\r\n")
		text = text[76:]
	}
	encoded.WriteString(text + "\r\n")
	return part{fields: textproto.MIMEHeader{
		"Content-Type": {mime.FormatMediaType(base, parameters)}, "Content-Transfer-Encoding": {"base64"},
		"Content-Disposition": {a.disposition()},
	}, text: encoded.Bytes()}, nil
}

// message is an attachment that is a whole message. It has no encoding (RFC 2046 section 5.2.1); its lines end with CRLF.
func (a attachment) message(kind string) part {
	var text bytes.Buffer
	ends := message.LineEnds{Write: func(p []byte) { text.Write(p) }}
	ends.Add(a.Content)
	text.WriteString("\r\n")
	return part{fields: textproto.MIMEHeader{
		"Content-Type": {kind}, "Content-Transfer-Encoding": {encodingOf(text.Bytes())}, "Content-Disposition": {a.disposition()},
	}, text: text.Bytes()}
}

// disposition names the file, where it has a name.
func (a attachment) disposition() string {
	if a.Name == "" {
		return "attachment"
	}
	return mime.FormatMediaType("attachment", map[string]string{"filename": a.Name})
}

// encodingOf is the encoding that a text without one states.
func encodingOf(text []byte) string {
	if lines := message.LinesOf(text); lines.IsEightBit {
		return "8bit"
	}
	return "7bit"
}

// joined puts parts into a multipart. One part is its own.
func joined(kind string, parts []part) (part, error) {
	if len(parts) == 1 {
		return parts[0], nil
	}
	var text bytes.Buffer
	w := multipart.NewWriter(&text)
	for _, one := range parts {
		into, err := w.CreatePart(one.fields)
		if err != nil {
			return part{}, err
		}
		if _, err := into.Write(one.text); err != nil {
			return part{}, err
		}
	}
	if err := w.Close(); err != nil {
		return part{}, err
	}
	contentType := "multipart/" + kind + ";\r\n boundary=\"" + w.Boundary() + "\""
	fields := textproto.MIMEHeader{"Content-Type": {contentType}, "Content-Transfer-Encoding": {encodingOf(text.Bytes())}}
	return part{fields: fields, text: text.Bytes()}, nil
}
