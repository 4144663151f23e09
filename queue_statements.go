package parley

import (
	"context"
)

// QueueSettings are those of a queue. What is nil stays as it is; when a queue is created, the broker's defaults hold for it.
type QueueSettings struct {
	Status                *bool // off: nothing is received, and what arrives waits with its senders
	Retention             *bool // keep copies of messages until their conversation ends
	PoisonMessageHandling *bool
	PoisonAction          *string // SET_ASIDE or DISABLE_QUEUE
	PoisonRollbacks       *int32  // 1 to 15
	ActivationProcedure   *string // qualified with its schema
	MaxQueueReaders       *int32
	ExecuteAs             *string // SELF, OWNER or a role
	Activation            *bool   // whether the procedure is started
	Authorization         *string // owner; only when the queue is created
}

func (s QueueSettings) call(function, queue string) call {
	c := call{function: function}
	c.give("queue", "text", queue)
	give(&c, "status", "boolean", s.Status)
	give(&c, "retention", "boolean", s.Retention)
	give(&c, "poison_message_handling", "boolean", s.PoisonMessageHandling)
	give(&c, "poison_action", "text", s.PoisonAction)
	give(&c, "poison_rollbacks", "integer", s.PoisonRollbacks)
	give(&c, "activation_procedure", "text", s.ActivationProcedure)
	give(&c, "max_queue_readers", "integer", s.MaxQueueReaders)
	give(&c, "execute_as", "text", s.ExecuteAs)
	give(&c, "activation", "boolean", s.Activation)
	give(&c, `"authorization"`, "text", s.Authorization)
	return c
}

// CreateQueue creates a queue.
//
// Errors: an [Error] with number [PermissionDenied], 2714 when it exists, 9609 for a bad name, 8402 and 9613 to 9653 for settings that
// cannot be, 15517 when the caller may not act as the role that the procedure would run as.
func CreateQueue(ctx context.Context, db DB, queue string, settings QueueSettings) error {
	c := settings.call("create_queue", queue)
	return c.exec(ctx, db, "create queue "+queue)
}

// AlterQueue changes what is given of a queue.
//
// Errors: as [CreateQueue], and [QueueNotFound].
func AlterQueue(ctx context.Context, db DB, queue string, settings QueueSettings) error {
	c := settings.call("alter_queue", queue)
	return c.exec(ctx, db, "alter queue "+queue)
}

// DropQueue drops a queue that no service uses.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], or 3716 when a service uses it.
func DropQueue(ctx context.Context, db DB, queue string) error {
	c := call{function: "drop_queue"}
	c.give("queue", "text", queue)
	return c.exec(ctx, db, "drop queue "+queue)
}

// CreateService creates a service on a queue, with the contracts that it accepts as target; without any it can only begin dialogs.
//
// Errors: an [Error] with number [QueueNotFound], [PermissionDenied], 2714 when it exists, 8404 when a contract is named twice, 9609
// for a bad name, 15151 for an unknown contract.
func CreateService(ctx context.Context, db DB, service, queue string, contracts ...string) error {
	c := call{function: "create_service"}
	c.give("name", "text", service)
	c.give("queue", "text", queue)
	if len(contracts) > 0 {
		c.give("contracts", "text[]", contracts)
	}
	return c.exec(ctx, db, "create service "+service)
}

// ServiceChange is what becomes different about a service; nil stays as it is.
type ServiceChange struct {
	Queue         *string
	AddContracts  []string
	DropContracts []string // conversations on them end with an error
}

// AlterService moves a service to another queue, or changes the contracts that it accepts.
//
// Errors: as [CreateService], and 15151 when there is no such service, 8493 when nothing is to change.
func AlterService(ctx context.Context, db DB, service string, change ServiceChange) error {
	c := call{function: "alter_service"}
	c.give("name", "text", service)
	give(&c, "queue", "text", change.Queue)
	if len(change.AddContracts) > 0 {
		c.give("add_contracts", "text[]", change.AddContracts)
	}
	if len(change.DropContracts) > 0 {
		c.give("drop_contracts", "text[]", change.DropContracts)
	}
	return c.exec(ctx, db, "alter service "+service)
}

// DropService drops a service with its conversations and what waits in them; their other sides get an Error.
//
// Errors: an [Error] with number [PermissionDenied], 3716 when a priority names it, 15151 when there is no such service.
func DropService(ctx context.Context, db DB, service string) error {
	c := call{function: "drop_service"}
	c.give("name", "text", service)
	return c.exec(ctx, db, "drop service "+service)
}

func (c *call) exec(ctx context.Context, db DB, what string) error {
	if _, err := db.Exec(ctx, c.statement(), c.arguments...); err != nil {
		return statementError(err, what)
	}
	return nil
}
