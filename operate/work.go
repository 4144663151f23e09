package operate

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// Batch is messages of a simple queue after which another one is put when all of them are done ([parley.PutGroup]), as long as they are
// not. As JSON it is a stable format.
type Batch struct {
	BatchID   int64     `json:"batch_id"`
	Queue     string    `json:"queue"` // name as the statements take it
	ThenQueue string    `json:"then_queue"`
	Messages  int32     `json:"messages"`
	Left      int64     `json:"left_messages"` // those that are not done
	CreatedAt time.Time `json:"created_at"`
	Fault     *string   `json:"fault"` // why what comes after them could not be put
}

// FinishedMessage is work on a message of a simple queue that is done, as its worker said it ([parley.Done], [parley.Complete]). As JSON it
// is a stable format.
type FinishedMessage struct {
	Queue      string          `json:"queue"` // name as the statements take it
	MessageID  int64           `json:"message_id"`
	StartedAt  time.Time       `json:"started_at"`
	FinishedAt time.Time       `json:"finished_at"`
	Duration   float64         `json:"duration_seconds"`
	Result     json.RawMessage `json:"result"` // null where the worker gave none
}

// ClaimedWork is a message, or a conversation group, that somebody works on while no transaction is open: a worker that has claimed it, or
// a web address to which it is being delivered. As JSON it is a stable format.
type ClaimedWork struct {
	Queue               string          `json:"queue"` // name as the statements take it
	Claim               parley.UUID     `json:"claim"`
	MessageID           *int64          `json:"message_id"`            // of a simple queue
	ConversationGroupID *parley.UUID    `json:"conversation_group_id"` // of another queue
	ClaimedBy           string          `json:"claimed_by"`            // program, role and address
	ClaimedAt           time.Time       `json:"claimed_at"`
	LeasedUntil         time.Time       `json:"leased_until"`
	Progress            json.RawMessage `json:"progress"` // as the worker said it last
}

// ReadBatches reads the batches of the role, and of queues that it may take from, that are not done, the oldest first.
func ReadBatches(ctx context.Context, db parley.DB) ([]Batch, error) {
	return readAll[Batch](ctx, db, "read the batches", `
		select b.batch_id, b.queue_name, b.then_queue, b.messages, b.left_messages, b.created_at, b.fault
		from parley.batches as b
		order by b.batch_id`)
}

// ReadFinished reads what is kept of work that is done, of a simple queue or of all that the role may take from (""), the newest first, up
// to limit.
func ReadFinished(ctx context.Context, db parley.DB, queue string, limit int) ([]FinishedMessage, error) {
	return readAll[FinishedMessage](ctx, db, "read what is finished", `
		select f.queue_name, f.message_id, f.started_at, f.finished_at, extract(epoch from f.duration)::float8, f.result::text::bytea
		from parley.finished_messages as f
		where $1 in ('', f.queue_name)
		order by f.finished_at desc, f.message_id desc
		limit $2`, queue, limit)
}

// ReadClaimed reads what somebody works on without a transaction, of a queue or of all that the role may receive from (""), the oldest
// first.
func ReadClaimed(ctx context.Context, db parley.DB, queue string) ([]ClaimedWork, error) {
	return readAll[ClaimedWork](ctx, db, "read the claims", `
		select c.queue_name, c.claim, c.message_id, c.conversation_group_id, c.claimed_by, c.claimed_at, c.leased_until,
			c.progress::text::bytea
		from parley.delivery_claims as c
		where $1 in ('', c.queue_name)
		order by c.claimed_at, c.message_id`, queue)
}

func readAll[T any](ctx context.Context, db parley.DB, what, statement string, arguments ...any) ([]T, error) {
	rows, err := db.Query(ctx, statement, arguments...)
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, pgdb.StatementError(err, what)
	}
	return found, nil
}
