package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/parley-broker/parley"
)

// envelope is the body of a request in format envelope: messages of one conversation, in their order.
type envelope struct {
	Queue               string    `json:"queue,omitempty"`
	ConversationHandle  string    `json:"conversation_handle"`
	ConversationGroupID string    `json:"conversation_group_id"`
	ServiceName         string    `json:"service_name"`
	ServiceContractName string    `json:"service_contract_name"`
	Messages            []content `json:"messages"`
}

// content is one message in an envelope.
type content struct {
	MessageID             string    `json:"message_id"` // the same at each attempt
	MessageSequenceNumber int64     `json:"message_sequence_number"`
	MessageTypeName       string    `json:"message_type_name"`
	MessageEnqueueTime    time.Time `json:"message_enqueue_time"`
	BodyEncoding          string    `json:"body_encoding"` // text, base64 or none
	Body                  *string   `json:"body"`
}

// delivery is the content of a request, whatever queue its messages are of.
type delivery struct {
	id           string // the same whenever the same messages are delivered
	firstBody    []byte
	envelope     any
	headers      map[string]string
	traceContext string // of the first message
}

func (r *reader) dialogDelivery(messages []parley.Message) delivery {
	first := messages[0]
	return delivery{
		id:        requestID(first.MessageID.String(), len(messages)),
		firstBody: first.MessageBody,
		envelope:  newEnvelope(r.queue, messages),
		headers: map[string]string{
			"Parley-Service":                 headerText(first.ServiceName),
			"Parley-Conversation-Handle":     first.ConversationHandle.String(),
			"Parley-Conversation-Group-Id":   first.ConversationGroupID.String(),
			"Parley-Message-Type":            headerText(first.MessageTypeName),
			"Parley-Message-Sequence-Number": strconv.FormatInt(first.MessageSequenceNumber, 10),
			"Parley-Message-Count":           strconv.Itoa(len(messages)),
		},
		traceContext: first.TraceContext,
	}
}

// newRequest makes the request that delivers messages.
func (r *reader) newRequest(ctx context.Context, d delivery) (*http.Request, error) {
	body, contentType := d.firstBody, "application/octet-stream"
	if r.BodyFormat == formatRaw {
		if _, isText := text(body); isText {
			contentType = "text/plain; charset=utf-8"
		}
	} else {
		var err error
		if body, err = json.Marshal(d.envelope); err != nil {
			return nil, fmt.Errorf("write the envelope: %w", err)
		}
		contentType = "application/json"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	now := time.Now()
	for name, value := range map[string]string{
		"Content-Type":      contentType,
		"User-Agent":        "Parley/" + parley.Release,
		"Webhook-Id":        d.id,
		"Webhook-Timestamp": strconv.FormatInt(now.Unix(), 10),
		"Webhook-Signature": sign(r.Secret, d.id, now, body),
		"Idempotency-Key":   d.id,
		"Parley-Queue":      headerText(r.queue),
	} {
		request.Header.Set(name, value)
	}
	for name, value := range d.headers {
		request.Header.Set(name, value)
	}
	// Headers of W3C Trace Context: the receiver's work belongs to the trace of the first message.
	if parent, state, _ := strings.Cut(d.traceContext, " "); parent != "" {
		request.Header.Set("Traceparent", parent)
		if state != "" {
			request.Header.Set("Tracestate", state)
		}
	}
	return request, nil
}

// requestID is the same whenever the same messages are delivered. A batch that has grown is another request.
func requestID(first string, messages int) string {
	if messages > 1 {
		return first + "-" + strconv.Itoa(messages)
	}
	return first
}

func newEnvelope(queue string, messages []parley.Message) envelope {
	e := envelope{
		Queue:               queue,
		ConversationHandle:  messages[0].ConversationHandle.String(),
		ConversationGroupID: messages[0].ConversationGroupID.String(),
		ServiceName:         messages[0].ServiceName,
		ServiceContractName: messages[0].ServiceContractName,
	}
	for _, message := range messages {
		c := content{
			MessageID:             message.MessageID.String(),
			MessageSequenceNumber: message.MessageSequenceNumber,
			MessageTypeName:       message.MessageTypeName,
			MessageEnqueueTime:    message.MessageEnqueueTime,
		}
		c.BodyEncoding, c.Body = encodeBody(message.MessageBody)
		e.Messages = append(e.Messages, c)
	}
	return e
}

// encodeBody gives a body as JSON holds it, and how.
func encodeBody(body []byte) (encoding string, encoded *string) {
	if readable, isText := text(body); isText {
		return "text", &readable
	}
	if body != nil {
		return "base64", new(base64.StdEncoding.EncodeToString(body))
	}
	return "none", nil
}

// text gives a body that is text; a NUL makes it something else.
func text(body []byte) (string, bool) {
	isUTF16 := bytes.HasPrefix(body, []byte{0xff, 0xfe}) || bytes.HasPrefix(body, []byte{0xfe, 0xff})
	if body == nil || !isUTF16 && bytes.IndexByte(body, 0) >= 0 {
		return "", false
	}
	return parley.BodyText(body)
}

// headerText makes any name fit a header: what is not printable ASCII, and %, is written as %XX.
func headerText(name string) string {
	var escaped strings.Builder
	for i := range len(name) {
		if b := name[i]; b > ' ' && b < 0x7f && b != '%' || b == ' ' && i > 0 && i < len(name)-1 {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}
