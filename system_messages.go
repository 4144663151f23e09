package parley

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// Message types of the messages that the broker itself sends.
const (
	// EndDialogMessageType reports that the far side has ended the conversation. End this side too.
	EndDialogMessageType = "http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog"
	// ErrorMessageType reports that the far side, or the broker, has ended the conversation with an error; see
	// [ParseError]. End this side too.
	ErrorMessageType = "http://schemas.microsoft.com/SQL/ServiceBroker/Error"
	// DialogTimerMessageType reports that the timer of [BeginConversationTimer] is due.
	DialogTimerMessageType = "http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer"
)

// IsEndDialog reports whether the far side has ended the conversation.
func (m Message) IsEndDialog() bool { return m.MessageTypeName == EndDialogMessageType }

// IsError reports whether the conversation has ended with an error.
func (m Message) IsError() bool { return m.MessageTypeName == ErrorMessageType }

// IsDialogTimer reports whether the conversation's timer is due.
func (m Message) IsDialogTimer() bool { return m.MessageTypeName == DialogTimerMessageType }

// ConversationError is the content of an Error message.
type ConversationError struct {
	// Code is the code that the far side gave to END CONVERSATION WITH ERROR, above zero, or the negative of the number of an error of the
	// broker, such as -8489 when the lifetime of the conversation is over.
	Code        int
	Description string
}

func (e *ConversationError) Error() string {
	return fmt.Sprintf("conversation ended with error %d: %s", e.Code, e.Description)
}

// ParseError reads the body of an Error message: XML in UTF-16 with a byte-order mark, or in UTF-8.
func ParseError(body []byte) (*ConversationError, error) {
	decoder := xml.NewDecoder(strings.NewReader(decodeUTF16(body)))
	// The text is UTF-8 by now, whatever its declaration says.
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	var parsed struct {
		XMLName     xml.Name `xml:"http://schemas.microsoft.com/SQL/ServiceBroker/Error Error"`
		Code        int      `xml:"http://schemas.microsoft.com/SQL/ServiceBroker/Error Code"`
		Description string   `xml:"http://schemas.microsoft.com/SQL/ServiceBroker/Error Description"`
	}
	if err := decoder.Decode(&parsed); err != nil {
		return nil, fmt.Errorf("read the body of an Error message: %w", err)
	}
	return &ConversationError{Code: parsed.Code, Description: parsed.Description}, nil
}

// decodeUTF16 turns text that begins with a byte-order mark of UTF-16 into UTF-8, and drops that of UTF-8.
func decodeUTF16(body []byte) string {
	littleEndian := bytes.HasPrefix(body, []byte{0xff, 0xfe})
	if !littleEndian && !bytes.HasPrefix(body, []byte{0xfe, 0xff}) {
		return string(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	}
	units := make([]uint16, 0, len(body)/2)
	for i := 2; i+1 < len(body); i += 2 {
		low, high := body[i], body[i+1]
		if !littleEndian {
			low, high = high, low
		}
		units = append(units, uint16(high)<<8|uint16(low))
	}
	return string(utf16.Decode(units))
}
