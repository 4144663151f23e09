package service

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

// Translate makes inputs of a message of a service, in the transaction that has received it. An error gives the message back.
type Translate func(ctx context.Context, tx pgx.Tx, m parley.Message) ([]adapter.Input, error)

// Limits are the settings of a receiver that stands on a service.
type Limits struct {
	BatchSize, Groups, Readers int
	PollInterval               adapter.Duration
}

// NewReceiver makes a receiver of another adapter, of which the messages come to a service.
func NewReceiver(e adapter.Endpoint, serviceName string, limits Limits, translate Translate) (adapter.Receiver, error) {
	e.Address, e.Settings = serviceName, json.RawMessage("{}")
	at, settings, problems := readReceive(e.Address, e.Settings)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	settings.BatchSize, settings.Groups, settings.Readers = limits.BatchSize, limits.Groups, limits.Readers
	settings.PollInterval = limits.PollInterval
	return &receiver{Endpoint: e, at: at, settings: settings, translate: translate}, nil
}

// translated makes inputs of what has come, by the adapter that stands on the service.
func (r *receiver) translated(ctx context.Context, tx pgx.Tx, messages []parley.Message) ([]adapter.Input, error) {
	if r.translate == nil {
		return r.receivedInputs(messages), nil
	}
	var all []adapter.Input
	for _, m := range messages {
		if m.IsDialogTimer() || m.IsEndDialog() || m.IsError() {
			continue
		}
		inputs, err := r.translate(ctx, tx, m)
		if err != nil {
			return nil, err
		}
		all = append(all, inputs...)
	}
	return all, nil
}

// Judge says what follows an error of a function of the database of the host.
func Judge(err error) error { return judge(err) }

// Broken says whether an error ends the transaction for everything, so that no savepoint helps.
func Broken(ctx context.Context, err error) bool { return broken(ctx, err) }
