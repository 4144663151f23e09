package parley

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/pgdb"
)

// DefaultMessageType is the message type, and the contract, that every database has and that asks for nothing.
const DefaultMessageType = "DEFAULT"

// Send sends a message on a conversation. A nil or empty body arrives as none.
// It never waits for the far side, and reports only what keeps it from sending: whether and why a message could not be
// delivered is shown by [GetTransmissionStatus], or by an Error message.
//
// Errors: an [Error] with number [ConversationNotFound], [SendNotAllowed] when either side has ended, 8428 and 8431
// when the message type is unknown or not in the contract, [MessageTooLarge].
func Send(ctx context.Context, db DB, handle UUID, messageType string, body []byte) error {
	if tracer := sendTracer.Load(); tracer != nil {
		return sendUnder(ctx, *tracer, handle, messageType,
			func(ctx context.Context) error { return sendPlain(ctx, db, handle, messageType, body) },
			func(ctx context.Context, traceContext string) error {
				return SendTraced(ctx, db, handle, messageType, body, traceContext)
			})
	}
	return sendPlain(ctx, db, handle, messageType, body)
}

func sendPlain(ctx context.Context, db DB, handle UUID, messageType string, body []byte) error {
	_, err := db.Exec(ctx, "select parley.send(conversation_handle => $1::uuid, message_type => $2::text, body => $3::bytea)",
		handle, messageType, body)
	if err != nil {
		return pgdb.StatementError(err, "send on conversation "+handle.String())
	}
	return nil
}

// BeginAndSend begins a dialog and sends its first message in one call, which costs less than the two, and returns the handle of the
// conversation. Of the options [RelatedTo] and [InGroup] have no meaning. A tracer of sends is not informed of it.
//
// Errors: as [BeginDialog] and [Send].
func BeginAndSend(
	ctx context.Context, db DB, fromService, toService, messageType string, body []byte, options ...DialogOption,
) (UUID, error) {
	d := dialogOf(options)
	return sendOnNew(ctx, db, `
		select parley.begin_and_send(
			from_service => $1, to_service => $2, message_type => $3, body => $4::bytea, contract => coalesce($5, 'DEFAULT'),
			broker_instance => $6, encryption => $7, lifetime => coalesce($8, 2147483647), deliver_at => $9, deduplication_key => $10,
			allow_unknown_target => $11
		)`, fromService, toService, messageType, body, d.contract, d.brokerInstance, d.encryption, d.lifetime, d.deliverAt, d.key,
		d.allowsUnknown)
}

// SendAndEnd sends one message that needs no answer: it begins a dialog, sends and ends it in one call, so that no open side is left. The
// handle that it returns is for [TraceConversation] only. A message that comes back, an answer or an Error, is thrown away. Of the options
// [OnContract], [ToBrokerInstance], [WithoutEncryption], [BegunOnce], [FirstMessageAt] and [ToUnknownTarget] have a meaning. A tracer of
// sends is not informed of it.
//
// Errors: as [BeginDialog] and [Send].
func SendAndEnd(
	ctx context.Context, db DB, fromService, toService, messageType string, body []byte, options ...DialogOption,
) (UUID, error) {
	d := dialogOf(options)
	return sendOnNew(ctx, db, `
		select parley.send_and_end(
			from_service => $1, to_service => $2, message_type => $3, body => $4::bytea, contract => coalesce($5, 'DEFAULT'),
			broker_instance => $6, encryption => $7, deliver_at => $8, deduplication_key => $9, allow_unknown_target => $10
		)`, fromService, toService, messageType, body, d.contract, d.brokerInstance, d.encryption, d.deliverAt, d.key,
		d.allowsUnknown)
}

func sendOnNew(ctx context.Context, db DB, statement, fromService, toService string, arguments ...any) (handle UUID, err error) {
	err = db.QueryRow(ctx, statement, append([]any{fromService, toService}, arguments...)...).Scan(&handle)
	if err != nil {
		return UUID{}, pgdb.StatementError(err, "send from "+fromService+" to "+toService)
	}
	return handle, nil
}

// SendToAll sends one message on many conversations: on all of them, or on none when any of them cannot send.
//
// Errors: as [Send], and an [Error] with number 8451 when a handle is repeated.
func SendToAll(ctx context.Context, db DB, handles []UUID, messageType string, body []byte) error {
	_, err := db.Exec(ctx,
		"select parley.send_to_all(conversation_handles => $1::text::uuid[], message_type => $2::text, body => $3::bytea)",
		arrayLiteral(handles), messageType, body)
	if err != nil {
		return pgdb.StatementError(err, "send on several conversations")
	}
	return nil
}

// SendBatch sends many messages of one type on one conversation, in order. It costs far less than sending them one by one.
//
// Errors: as [Send].
func SendBatch(ctx context.Context, db DB, handle UUID, messageType string, bodies [][]byte) error {
	if tracer := sendTracer.Load(); tracer != nil {
		return sendUnder(ctx, *tracer, handle, messageType,
			func(ctx context.Context) error { return sendBatchPlain(ctx, db, handle, messageType, bodies) },
			func(ctx context.Context, traceContext string) error {
				return SendBatchTraced(ctx, db, handle, messageType, bodies, traceContext)
			})
	}
	return sendBatchPlain(ctx, db, handle, messageType, bodies)
}

func sendBatchPlain(ctx context.Context, db DB, handle UUID, messageType string, bodies [][]byte) error {
	_, err := db.Exec(ctx,
		"select parley.send_batch_binary(conversation_handle => $1::uuid, message_type => $2::text, bodies => $3::bytea[])",
		handle, messageType, bodies)
	if err != nil {
		return pgdb.StatementError(err, "send a batch on conversation "+handle.String())
	}
	return nil
}

// arrayLiteral writes handles as PostgreSQL reads an array, because not every query mode of pgx can send one.
func arrayLiteral(handles []UUID) string {
	var literal strings.Builder
	literal.WriteByte('{')
	for i, handle := range handles {
		if i > 0 {
			literal.WriteByte(',')
		}
		if handle.IsZero() {
			literal.WriteString("NULL")
		} else {
			literal.WriteString(handle.String())
		}
	}
	literal.WriteByte('}')
	return literal.String()
}
