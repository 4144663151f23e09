package activation

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// ProgramActivation reports which program the daemon starts while messages wait in a queue. When an activation is altered,
// what is nil stays as it is; when it is created, the broker's defaults hold for it.
type ProgramActivation struct {
	Program          []string          // full path, then arguments
	Environment      map[string]string // as far as the operator of the daemon allows it
	WorkingDirectory *string
	MinInstances     *int32
	MaxInstances     *int32
	StopTimeout      *time.Duration // from SIGTERM to SIGKILL
	Activation       *bool          // whether it is on
}

// WebhookActivation reports which web address the daemon delivers the messages of a queue to; nil as in [ProgramActivation].
type WebhookActivation struct {
	URL            *string
	Secret         *string // nil for a new one
	SecretName     *string
	Timeout        *time.Duration // for one request
	MaxInstances   *int32         // requests at once
	BatchSize      *int32         // messages in one request
	Groups         *int32         // groups of which one request has messages
	BodyFormat     *string        // envelope or raw
	SystemMessages *bool          // whether EndDialog and Error are delivered too
	MaxAttempts    *int32         // 0: without end
	FirstRetry     *time.Duration
	LongestRetry   *time.Duration
	Activation     *bool
}

// CreateProgramActivation lets the daemon start a program for a queue.
//
// Errors: a [pgdb.Error] with number parley.QueueNotFound, parley.PermissionDenied, 2714 when the queue has an external activation,
// 8402 for what cannot be, 9717 and 9718 when it is activated in another way.
func CreateProgramActivation(ctx context.Context, db pgdb.DB, queue string, p ProgramActivation) error {
	return p.define(ctx, db, "create", queue)
}

// AlterProgramActivation changes what is given of the program of a queue.
//
// Errors: as [CreateProgramActivation], and 15151 when the queue has none.
func AlterProgramActivation(ctx context.Context, db pgdb.DB, queue string, p ProgramActivation) error {
	return p.define(ctx, db, "alter", queue)
}

func (p ProgramActivation) define(ctx context.Context, db pgdb.DB, verb, queue string) error {
	c := pgdb.Call{Function: verb + "_program_activation"}
	c.Give("queue", "text", queue)
	if p.Program != nil {
		c.Give("program", "text[]", p.Program)
	}
	if p.Environment != nil {
		environment, err := json.Marshal(p.Environment)
		if err != nil {
			return fmt.Errorf("write the environment: %w", err)
		}
		c.Give("environment", "jsonb", string(environment))
	}
	pgdb.Give(&c, "working_directory", "text", p.WorkingDirectory)
	pgdb.Give(&c, "min_instances", "integer", p.MinInstances)
	pgdb.Give(&c, "max_instances", "integer", p.MaxInstances)
	pgdb.GiveMilliseconds(&c, "stop_timeout_ms", p.StopTimeout)
	pgdb.Give(&c, "activation", "boolean", p.Activation)
	return c.Exec(ctx, db, verb+" the program of queue "+queue)
}

// CreateWebhookActivation lets the daemon deliver the messages of a queue to a web address. It returns the secret that
// signs the requests; nothing shows it again.
//
// Errors: as [CreateProgramActivation].
func CreateWebhookActivation(ctx context.Context, db pgdb.DB, queue string, w WebhookActivation) (secret string, err error) {
	c := w.call("create", queue)
	if err := c.QueryRow(ctx, db).Scan(&secret); err != nil {
		return "", pgdb.StatementError(err, "create the webhook of queue "+queue)
	}
	return secret, nil
}

// AlterWebhookActivation changes what is given of the webhook of a queue.
//
// Errors: as [CreateProgramActivation], and 15151 when the queue has none.
func AlterWebhookActivation(ctx context.Context, db pgdb.DB, queue string, w WebhookActivation) error {
	c := w.call("alter", queue)
	return c.Exec(ctx, db, "alter the webhook of queue "+queue)
}

func (w WebhookActivation) call(verb, queue string) pgdb.Call {
	c := pgdb.Call{Function: verb + "_webhook_activation"}
	c.Give("queue", "text", queue)
	pgdb.Give(&c, "url", "text", w.URL)
	pgdb.Give(&c, "secret", "text", w.Secret)
	pgdb.Give(&c, "secret_name", "text", w.SecretName)
	pgdb.GiveMilliseconds(&c, "timeout_ms", w.Timeout)
	pgdb.Give(&c, "max_instances", "integer", w.MaxInstances)
	pgdb.Give(&c, "batch_size", "integer", w.BatchSize)
	pgdb.Give(&c, "groups", "integer", w.Groups)
	pgdb.Give(&c, "body_format", "text", w.BodyFormat)
	pgdb.Give(&c, "system_messages", "boolean", w.SystemMessages)
	pgdb.Give(&c, "max_attempts", "integer", w.MaxAttempts)
	pgdb.GiveMilliseconds(&c, "first_retry_ms", w.FirstRetry)
	pgdb.GiveMilliseconds(&c, "longest_retry_ms", w.LongestRetry)
	pgdb.Give(&c, "activation", "boolean", w.Activation)
	return c
}

// DropExternalActivation removes the program or the webhook of a queue.
//
// Errors: a [pgdb.Error] with number parley.QueueNotFound, parley.PermissionDenied, or 15151 when there is none.
func DropExternalActivation(ctx context.Context, db pgdb.DB, queue string) error {
	if _, err := db.Exec(ctx, "select parley.drop_external_activation($1::text)", queue); err != nil {
		return pgdb.StatementError(err, "drop the external activation of queue "+queue)
	}
	return nil
}

// ExternalActivation is the program or address that the daemon starts outside of the database for a queue; as JSON it is a stable format.
// Fields that a kind does not have are nil.
type ExternalActivation struct {
	Queue        string `json:"queue"`
	Kind         string `json:"kind"` // program or webhook
	IsEnabled    bool   `json:"is_enabled"`
	MinInstances int32  `json:"min_instances"`
	MaxInstances int32  `json:"max_instances"`

	Program          []string `json:"program"`
	EnvironmentNames []string `json:"environment_names"`
	WorkingDirectory *string  `json:"working_directory"`
	StopTimeoutMS    *int32   `json:"stop_timeout_ms"`

	URL            *string `json:"url"` // without its query
	SecretName     *string `json:"secret_name"`
	TimeoutMS      *int32  `json:"timeout_ms"`
	BatchSize      *int32  `json:"batch_size"`
	Groups         *int32  `json:"groups"`
	BodyFormat     *string `json:"body_format"`
	SystemMessages *bool   `json:"system_messages"`
	MaxAttempts    *int32  `json:"max_attempts"`
	FirstRetryMS   *int32  `json:"first_retry_ms"`
	LongestRetryMS *int32  `json:"longest_retry_ms"`
	// Failing is how many conversations wait because their delivery failed, of those the role may see.
	Failing int64 `json:"failing_conversations"`
}

// ReadExternalActivations reads what the daemon starts outside of the database, sorted by queue.
func ReadExternalActivations(ctx context.Context, db pgdb.DB) ([]ExternalActivation, error) {
	rows, err := db.Query(ctx, `
		select a.queue_name, a.kind, a.is_enabled, a.min_instances, a.max_instances, a.program, a.environment_names, a.working_directory,
			a.stop_timeout_ms, a.url, a.secret_name, a.timeout_ms, a.batch_size, a.groups, a.body_format, a.system_messages, a.max_attempts,
			a.first_retry_ms, a.longest_retry_ms,
			(select count(*) from parley.delivery_failures as f where f.service_queue_id = a.service_queue_id)
		from parley.external_activations as a
		order by a.queue_name`)
	if err != nil {
		return nil, fmt.Errorf("read the external activations: %w", err)
	}
	activations, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ExternalActivation])
	if err != nil {
		return nil, fmt.Errorf("read the external activations: %w", err)
	}
	return activations, nil
}
