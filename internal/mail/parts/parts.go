package parts

import (
	"fmt"
	"io"
	"time"
)

// Limits bound what is read of a message.
type Limits struct {
	Depth       int // multiparts within each other
	Parts       int // of all kinds
	HeaderBytes int // the header of the message
	PartHeader  int // the header of a part, in bytes
	FieldBytes  int // a header field that is decoded
	Addresses   int // of a field
	Text        int // the text, and the HTML, in bytes of UTF-8
	Problems    int // that are listed
}

// Usual are the limits that the documentation names.
var Usual = Limits{
	Depth: 20, Parts: 200, HeaderBytes: 256 << 10, PartHeader: 16 << 10, FieldBytes: 16 << 10, Addresses: 1000, Text: 256 << 10, Problems: 50,
}

// Address is an address of a header field.
type Address struct {
	Name    string `json:"name,omitempty"`
	Address string `json:"address"`
}

// Part describes a part that is no multipart.
type Part struct {
	Number      string `json:"part"` // 1.2 is the second child of the first child of the message
	Type        string `json:"type"`
	Name        string `json:"name,omitempty"`
	Size        int64  `json:"size"` // decoded
	SHA256      string `json:"sha256"`
	Disposition string `json:"disposition,omitempty"`
	ContentID   string `json:"content_id,omitempty"`
	Charset     string `json:"charset,omitempty"`
	Encoding    string `json:"encoding,omitempty"`
	Offset      int64  `json:"offset"` // in the message
	Bytes       int64  `json:"bytes"`  // encoded
}

// States of what was read.
const (
	Complete  = "COMPLETE"
	Truncated = "TRUNCATED"
	Damaged   = "DAMAGED"
	None      = "NONE"
)

// Problem is something that a limit has cut off, or that is not as the standards say.
type Problem struct {
	Part    string `json:"part,omitempty"`
	Problem string `json:"problem"`
}

// Parsed says how the reading went.
type Parsed struct {
	State    string    `json:"state"`
	Text     *Part     `json:"text,omitempty"`
	HTML     *Part     `json:"html,omitempty"`
	Problems []Problem `json:"problems,omitempty"`
}

// Message is the content of a message. Its texts are valid UTF-8 without NUL.
type Message struct {
	Subject     string     `json:"subject,omitempty"`
	From        []Address  `json:"from,omitempty"`
	To          []Address  `json:"to,omitempty"`
	Cc          []Address  `json:"cc,omitempty"`
	ReplyTo     []Address  `json:"reply_to,omitempty"`
	Date        *time.Time `json:"date,omitempty"`
	InReplyTo   []string   `json:"in_reply_to,omitempty"`
	References  []string   `json:"references,omitempty"`
	Text        *string    `json:"text,omitempty"`
	HTML        *string    `json:"html,omitempty"`
	Attachments []Part     `json:"attachments"`
	Parsed      Parsed     `json:"parsed"`

	limits Limits
}

// Read reads a message. An error is that of the reader.
func Read(r io.Reader, limits Limits) (*Message, error) {
	m := &Message{Attachments: []Part{}, Parsed: Parsed{State: Complete}, limits: limits}
	scanner := newScanner(r, m)
	if err := scanner.scan(); err != nil {
		return nil, fmt.Errorf("read a message: %w", err)
	}
	return m, nil
}

// truncated records that a limit was reached. It is the first to be said: what is damaged is there.
func (m *Message) truncated(part, problem string) {
	m.Parsed.State = Truncated
	m.problem(part, problem)
}

// damaged records what is not as it should be.
func (m *Message) damaged(part, problem string) {
	if m.Parsed.State == Complete {
		m.Parsed.State = Damaged
	}
	m.problem(part, problem)
}

func (m *Message) problem(part, problem string) {
	if len(m.Parsed.Problems) < m.limits.Problems {
		m.Parsed.Problems = append(m.Parsed.Problems, Problem{Part: part, Problem: problem})
	}
}
