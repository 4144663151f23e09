package parley

import (
	"time"

	"github.com/jackc/pgx/v5"
)

// Message is a message as RECEIVE returns it, with Service Broker's names.
type Message struct {
	// Status is 0 for a received message.
	Status   int16
	Priority int16 // of the conversation, 1 to 10
	// QueuingOrder is the position in the queue: a message that arrived later has a larger one.
	QueuingOrder        int64
	ConversationGroupID UUID
	ConversationHandle  UUID
	// MessageSequenceNumber counts the messages of this direction of the conversation, from 0.
	MessageSequenceNumber int64
	ServiceName           string // service that received the message
	ServiceID             int32
	ServiceContractName   string
	ServiceContractID     int32
	MessageTypeName       string
	MessageTypeID         int32
	// Validation is the letter of what the message type asks of a body: E empty, N nothing, X XML, J JSON.
	Validation string
	// MessageBody is nil when the message has none.
	MessageBody        []byte
	MessageEnqueueTime time.Time
	// MessageID is the zero value in what [Receive] gives; [Peek] gives it.
	MessageID UUID
	// TraceContext is the W3C trace context that the sender gave the message, or empty; see [SendTraced].
	TraceContext string
}

// scanMessage reads pgdb.MessageColumns.
func scanMessage(row pgx.CollectableRow) (Message, error) {
	var m Message
	err := row.Scan(
		&m.Status, &m.Priority, &m.QueuingOrder, &m.ConversationGroupID, &m.ConversationHandle, &m.MessageSequenceNumber,
		&m.ServiceName, &m.ServiceID, &m.ServiceContractName, &m.ServiceContractID, &m.MessageTypeName, &m.MessageTypeID,
		&m.Validation, &m.MessageBody, &m.MessageEnqueueTime, &m.MessageID,
		&m.TraceContext,
	)
	return m, err
}
