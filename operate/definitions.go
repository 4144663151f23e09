package operate

import (
	"context"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// QueueSettings are those of a queue. Settings that are nil stay as they are; when a queue is created, the broker's defaults hold for it.
type QueueSettings struct {
	Kind                  *string // DIALOG or SIMPLE; only when the queue is created
	Status                *bool   // off: nothing is received, and what arrives waits with its senders
	Retention             *bool   // keep copies of messages until their conversation ends
	PoisonMessageHandling *bool
	PoisonAction          *string // SET_ASIDE or DISABLE_QUEUE
	PoisonRollbacks       *int32  // 1 to 15
	ActivationProcedure   *string // qualified with its schema
	MaxQueueReaders       *int32
	ExecuteAs             *string // SELF, OWNER or a role
	Activation            *bool   // whether the procedure is started
	DeduplicationSeconds  *int32  // for how long a key of [PutOnce] counts, in a simple queue
	// Retry is for how long messages wait after a failure: the arguments of parley.set_retry_policy as an object of JSON, false for no
	// policy.
	Retry         *string
	Authorization *string // owner; only when the queue is created
	IfNotExists   *bool   // leave a queue of that name as it is; only when the queue is created
}

func (s QueueSettings) call(function, queue string) pgdb.Call {
	c := pgdb.Call{Function: function}
	c.Give("queue", "text", queue)
	pgdb.Give(&c, "kind", "text", s.Kind)
	pgdb.Give(&c, "status", "boolean", s.Status)
	pgdb.Give(&c, "retention", "boolean", s.Retention)
	pgdb.Give(&c, "poison_message_handling", "boolean", s.PoisonMessageHandling)
	pgdb.Give(&c, "poison_action", "text", s.PoisonAction)
	pgdb.Give(&c, "poison_rollbacks", "integer", s.PoisonRollbacks)
	pgdb.Give(&c, "activation_procedure", "text", s.ActivationProcedure)
	pgdb.Give(&c, "max_queue_readers", "integer", s.MaxQueueReaders)
	pgdb.Give(&c, "execute_as", "text", s.ExecuteAs)
	pgdb.Give(&c, "activation", "boolean", s.Activation)
	pgdb.Give(&c, "deduplication_seconds", "integer", s.DeduplicationSeconds)
	pgdb.Give(&c, "retry", "jsonb", s.Retry)
	pgdb.Give(&c, `"authorization"`, "text", s.Authorization)
	pgdb.Give(&c, "if_not_exists", "boolean", s.IfNotExists)
	return c
}

// CreateQueue creates a queue.
//
// Errors: a [parley.Error] with number [parley.PermissionDenied], 2714 when it exists, 9609 for a bad name, 8402 and 9613 to 9653 for
// settings that
// cannot be, 15517 when the caller may not act as the role that the procedure would run as.
func CreateQueue(ctx context.Context, db parley.DB, queue string, settings QueueSettings) error {
	c := settings.call("create_queue", queue)
	return c.Exec(ctx, db, "create queue "+queue)
}

// AlterQueue changes what is given of a queue.
//
// Errors: as [CreateQueue], and [parley.QueueNotFound].
func AlterQueue(ctx context.Context, db parley.DB, queue string, settings QueueSettings) error {
	c := settings.call("alter_queue", queue)
	return c.Exec(ctx, db, "alter queue "+queue)
}

// PauseReaders pauses the readers of a queue: the daemon starts none and delivers nothing to web addresses, and a [parley.Consumer]
// receives nothing. They finish the messages that they have received. Senders go on, and so does [parley.Receive].
//
// Errors: a [parley.Error] with number [parley.QueueNotFound] or [parley.PermissionDenied].
func PauseReaders(ctx context.Context, db parley.DB, queue string) error {
	c := pgdb.Call{Function: "pause_readers"}
	c.Give("queue", "text", queue)
	return c.Exec(ctx, db, "pause the readers of queue "+queue)
}

// ResumeReaders lets the readers of a queue go on.
//
// Errors: as [PauseReaders].
func ResumeReaders(ctx context.Context, db parley.DB, queue string) error {
	c := pgdb.Call{Function: "resume_readers"}
	c.Give("queue", "text", queue)
	return c.Exec(ctx, db, "resume the readers of queue "+queue)
}

// QueueQuota is how much a queue may hold before senders are refused with [parley.QueueFull]; nil is no limit.
type QueueQuota struct {
	Messages *int64
	Bytes    *int64 // of their bodies
}

// SetQueueQuota sets how much a queue may hold. Messages that it holds already stay.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound], [parley.PermissionDenied], or 8402 for a limit below 1.
func SetQueueQuota(ctx context.Context, db parley.DB, queue string, quota QueueQuota) error {
	c := pgdb.Call{Function: "set_queue_quota"}
	c.Give("queue", "text", queue)
	pgdb.Give(&c, "messages", "bigint", quota.Messages)
	pgdb.Give(&c, "bytes", "bigint", quota.Bytes)
	return c.Exec(ctx, db, "set the quota of queue "+queue)
}

// DropQueue drops a queue that no service uses. A simple queue that holds messages is dropped with them only where force
// says so. It returns how many messages were dropped.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound], [parley.PermissionDenied], or [parley.StillUsed] when a service uses it
// or it holds messages.
func DropQueue(ctx context.Context, db parley.DB, queue string, force bool) (messages int64, err error) {
	err = db.QueryRow(ctx, "select parley.drop_queue(queue => $1, force => $2)", queue, force).Scan(&messages)
	if err != nil {
		return 0, pgdb.StatementError(err, "drop queue "+queue)
	}
	return messages, nil
}

// CreateService creates a service on a queue, with the contracts that it accepts as target; without any it can only begin dialogs.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound], [parley.PermissionDenied], 2714 when it exists, 8404 when a contract is
// named twice, 9609
// for a bad name, 15151 for an unknown contract.
func CreateService(ctx context.Context, db parley.DB, service, queue string, contracts ...string) error {
	c := pgdb.Call{Function: "create_service"}
	c.Give("name", "text", service)
	c.Give("queue", "text", queue)
	if len(contracts) > 0 {
		c.Give("contracts", "text[]", contracts)
	}
	return c.Exec(ctx, db, "create service "+service)
}

// ServiceChange lists the changes to a service; nil stays as it is.
type ServiceChange struct {
	Queue         *string
	AddContracts  []string
	DropContracts []string // conversations on them end with an error
	// DeduplicationSeconds is for how long a deduplication key that is used as the service counts; 300 when it is new.
	DeduplicationSeconds *int32
}

// AlterService moves a service to another queue, or changes the contracts that it accepts.
//
// Errors: as [CreateService], and 15151 when there is no such service, 8493 when nothing is to change.
func AlterService(ctx context.Context, db parley.DB, service string, change ServiceChange) error {
	c := pgdb.Call{Function: "alter_service"}
	c.Give("name", "text", service)
	pgdb.Give(&c, "queue", "text", change.Queue)
	if len(change.AddContracts) > 0 {
		c.Give("add_contracts", "text[]", change.AddContracts)
	}
	if len(change.DropContracts) > 0 {
		c.Give("drop_contracts", "text[]", change.DropContracts)
	}
	pgdb.Give(&c, "deduplication_seconds", "integer", change.DeduplicationSeconds)
	return c.Exec(ctx, db, "alter service "+service)
}

// DropService drops a service with its conversations and what waits in them; their other sides get an Error.
//
// Errors: a [parley.Error] with number [parley.PermissionDenied], 3716 when a priority names it, 15151 when there is no such service.
func DropService(ctx context.Context, db parley.DB, service string) error {
	c := pgdb.Call{Function: "drop_service"}
	c.Give("name", "text", service)
	return c.Exec(ctx, db, "drop service "+service)
}
