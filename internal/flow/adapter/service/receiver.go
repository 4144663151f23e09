package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
)

// throttlePoll is how often a location asks whether intake is throttled.
const throttlePoll = time.Second

// receiver takes in the messages of a service, or of a simple queue.
type receiver struct {
	adapter.Endpoint

	at        place
	settings  receiveSettings
	translate Translate // nil: each message is an input
}

func newReceiver(e adapter.Endpoint) (adapter.Receiver, error) {
	at, settings, problems := readReceive(e.Address, e.Settings)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	return &receiver{Endpoint: e, at: at, settings: settings}, nil
}

// Run takes in until ctx ends. While intake is throttled nothing is received: messages stay in their queue.
func (r *receiver) Run(ctx context.Context, in adapter.Intake) error {
	pool, closePool, err := r.pool(ctx)
	if err != nil {
		return ended(ctx, err)
	}
	defer closePool()
	queue := r.at.name
	if !r.at.isSimple {
		if queue, err = r.queue(ctx, pool); err != nil {
			return ended(ctx, err)
		}
	}
	if err := r.probe(ctx, pool, queue); err != nil {
		return ended(ctx, err)
	}
	for {
		if err := in.Await(ctx); err != nil {
			return ended(ctx, err)
		}
		consuming, stop := context.WithCancel(ctx)
		watched := make(chan struct{})
		go func() {
			defer close(watched)
			defer stop()
			for !in.Throttled() && backoff.Wait(consuming, throttlePoll) == nil {
			}
		}()
		err := r.consume(consuming, pool, queue, in)
		stop()
		<-watched
		if err != nil || ctx.Err() != nil {
			return ended(ctx, err)
		}
	}
}

// pool gives sessions of the role of the host: the rights of RECEIVE are those of the host, and not all of the login's.
func (r *receiver) pool(ctx context.Context) (pool *pgxpool.Pool, done func(), err error) {
	config := r.Pool.Config()
	if r.Role == "" || r.Role == config.ConnConfig.User {
		return r.Pool, func() {}, nil
	}
	config.ConnConfig.RuntimeParams["role"] = r.Role
	config.MinConns, config.MaxConns = 0, int32(r.settings.Readers+1)
	if pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, nil, fmt.Errorf("make sessions of role %q: %w", r.Role, err)
	}
	return pool, pool.Close, nil
}

// ended gives no error when ctx has ended: then the error says that.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// queue gives the queue of the service, which has to be its alone: RECEIVE takes the messages of all services of a queue.
func (r *receiver) queue(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	var queue string
	var services int
	err := pool.QueryRow(ctx, `
		select q.name, (select pg_catalog.count(*) from parley.services as o where o.service_queue_id = s.service_queue_id)
		from parley.services as s
		join parley.service_queues as q on q.object_id = s.service_queue_id
		where s.name = $1`, r.at.name).Scan(&queue, &services)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return "", fmt.Errorf("there is no service %q that the role of the host sees: create it, or grant the role VIEW DEFINITION on it, "+
			"and RECEIVE on its queue", r.at.name)
	case err != nil:
		return "", fmt.Errorf("find the queue of service %q: %w", r.at.name, err)
	case services > 1:
		return "", fmt.Errorf("the queue %s has %d services, whose messages would all be taken: give service %q a queue of its own",
			queue, services, r.at.name)
	}
	return queue, nil
}

// probe finds what a consumer would only log, again and again: a queue that is not there, of the other kind, or not the host's to receive
// from.
func (r *receiver) probe(ctx context.Context, pool *pgxpool.Pool, queue string) error {
	var err error
	if r.at.isSimple {
		_, err = parley.PeekMessages(ctx, pool, queue, 1)
	} else {
		_, err = parley.Peek(ctx, pool, queue, parley.Top(1))
	}
	return err
}

// consume receives until ctx ends.
func (r *receiver) consume(ctx context.Context, pool *pgxpool.Pool, queue string, in adapter.Intake) error {
	if r.at.isSimple {
		consumer := parley.SimpleConsumer{
			Pool: pool, Queue: queue, Count: r.settings.BatchSize, Readers: r.settings.Readers, Logger: r.Logger,
			PollInterval: time.Duration(r.settings.PollInterval),
			Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.TakenMessage) error {
				return publish(ctx, tx, in, r.takenInputs(messages))
			},
		}
		return consumer.Run(ctx)
	}
	consumer := parley.Consumer{
		Pool: pool, Queue: queue, Top: r.settings.BatchSize, Groups: r.settings.Groups, Readers: r.settings.Readers, Logger: r.Logger,
		PollInterval: time.Duration(r.settings.PollInterval), HandleSystemMessages: r.settings.SystemMessages == "publish",
		Handler: func(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
			inputs, err := r.translated(ctx, tx, messages)
			if err != nil {
				return err
			}
			if err := publish(ctx, tx, in, inputs); err != nil {
				return err
			}
			return endConversations(ctx, tx, messages)
		},
	}
	return consumer.Run(ctx)
}

// publish publishes inputs in the transaction that has received them. A bad input is suspended, and no error of the queue.
func publish(ctx context.Context, tx pgx.Tx, in adapter.Intake, inputs []adapter.Input) error {
	if len(inputs) == 0 {
		return nil
	}
	_, err := in.TakeIn(ctx, tx, inputs)
	return err
}

// endConversations ends this side of conversations that the far side has ended, of which the messages say so.
func endConversations(ctx context.Context, tx pgx.Tx, messages []parley.Message) error {
	isEnded := map[parley.UUID]bool{}
	for _, m := range messages {
		if !m.IsEndDialog() && !m.IsError() || isEnded[m.ConversationHandle] {
			continue
		}
		isEnded[m.ConversationHandle] = true
		if err := parley.EndConversation(ctx, tx, m.ConversationHandle); err != nil {
			return err
		}
	}
	return nil
}
