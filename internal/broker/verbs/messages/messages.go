package messages

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/verb"
)

// Ways to show a body. A body that is no text is shown in hex to people and in base64 to programs.
const (
	bodyText = "text"
	bodyHex  = "hex"
	bodyJSON = "json"
)

// shownMessage is a message as peek and receive print it; as JSON it is a stable format.
type shownMessage struct {
	Status                int16        `json:"status"`
	Priority              int16        `json:"priority"`
	QueuingOrder          int64        `json:"queuing_order"`
	ConversationGroupID   parley.UUID  `json:"conversation_group_id"`
	ConversationHandle    parley.UUID  `json:"conversation_handle"`
	MessageSequenceNumber int64        `json:"message_sequence_number"`
	ServiceName           string       `json:"service_name"`
	ServiceContractName   string       `json:"service_contract_name"`
	MessageTypeName       string       `json:"message_type_name"`
	Validation            string       `json:"validation"`
	MessageEnqueueTime    time.Time    `json:"message_enqueue_time"`
	MessageID             *parley.UUID `json:"message_id"` // nil from receive
	TraceContext          *string      `json:"trace_context"`
	BodyBytes             int          `json:"body_bytes"`
	// BodyEncoding reports how to read Body: text, base64, hex, json, or none.
	BodyEncoding string `json:"body_encoding"`
	Body         any    `json:"body"`
}

// checkBody refuses a value of --body that is none.
func checkBody(way string) error {
	switch way {
	case bodyText, bodyHex, bodyJSON:
		return nil
	}
	return verb.Usagef("--body %s: use text, hex or json", way)
}

func show(m parley.Message, way string) shownMessage {
	shown := shownMessage{
		Status: m.Status, Priority: m.Priority, QueuingOrder: m.QueuingOrder, ConversationGroupID: m.ConversationGroupID,
		ConversationHandle: m.ConversationHandle, MessageSequenceNumber: m.MessageSequenceNumber, ServiceName: m.ServiceName,
		ServiceContractName: m.ServiceContractName, MessageTypeName: m.MessageTypeName, Validation: m.Validation,
		MessageEnqueueTime: m.MessageEnqueueTime, BodyBytes: len(m.MessageBody),
	}
	if !m.MessageID.IsZero() {
		shown.MessageID = &m.MessageID
	}
	if m.TraceContext != "" {
		shown.TraceContext = &m.TraceContext
	}
	shown.BodyEncoding, shown.Body = encodeBody(m.MessageBody, way)
	return shown
}

// encodeBody gives a body to JSON in the way that was asked for, or in the next way that loses nothing.
func encodeBody(body []byte, way string) (encoding string, value any) {
	if body == nil {
		return "none", nil
	}
	text, isText := parley.BodyText(body)
	switch {
	case way == bodyHex:
		return "hex", hex.EncodeToString(body)
	case way == bodyJSON && isText && json.Valid([]byte(text)):
		return "json", json.RawMessage(text)
	case isText:
		return "text", text
	}
	return "base64", base64.StdEncoding.EncodeToString(body)
}

// bodyCell shows a body to a person.
func bodyCell(body []byte, way string, width int) string {
	if body == nil {
		return "-"
	}
	text, isText := parley.BodyText(body)
	if way == bodyHex || !isText {
		if width > 0 {
			body = body[:min(len(body), width)]
		}
		return verb.OneLine(`\x`+hex.EncodeToString(body), width)
	}
	return verb.OneLine(text, width)
}

func writeMessages(out io.Writer, messages []parley.Message, way string, full bool) error {
	width := verb.BodyWidth
	if full {
		width = 0
	}
	table := verb.NewTable(out)
	fmt.Fprintln(table, "CONVERSATION HANDLE\tNUMBER\tMESSAGE TYPE\tENQUEUED\tBYTES\tBODY")
	for _, m := range messages {
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%d\t%s\n",
			m.ConversationHandle, m.MessageSequenceNumber, verb.OneLine(m.MessageTypeName, 0), verb.Moment(&m.MessageEnqueueTime),
			len(m.MessageBody), bodyCell(m.MessageBody, way, width))
	}
	return table.Flush()
}

func printMessages(a *verb.App, out io.Writer, messages []parley.Message, way string, full bool) error {
	if !a.JSON {
		return writeMessages(out, messages, way, full)
	}
	shown := []shownMessage{}
	for _, m := range messages {
		shown = append(shown, show(m, way))
	}
	return verb.EncodeJSON(out, shown)
}
