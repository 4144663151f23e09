package service

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// bodyBytesMax bounds the body of a message to a service, which is in memory.
const bodyBytesMax = 64 << 20

// sender sends messages to a service, or puts them into a simple queue.
type sender struct {
	adapter.Endpoint

	at       place
	settings sendSettings
	kept     conversations // between transactions
}

var _ adapter.TransactionSender = (*sender)(nil)

func newSender(e adapter.Endpoint) (adapter.Sender, error) {
	at, settings, problems := readSend(e.Address, e.Settings)
	if err := firstProblem(problems); err != nil {
		return nil, err
	}
	return &sender{Endpoint: e, at: at, settings: settings}, nil
}

// InTransaction is always true: services are in the database of the host, and carry messages elsewhere from there.
func (s *sender) InTransaction() bool { return true }

// Close has nothing to give back.
func (s *sender) Close() error { return nil }

// Send sends messages in a transaction of its own.
func (s *sender) Send(ctx context.Context, messages []*adapter.Message) []adapter.Delivery {
	tx, err := s.Pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	var deliveries []adapter.Delivery
	if err == nil {
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		if deliveries, err = s.SendIn(ctx, tx, messages); err == nil {
			err = tx.Commit(ctx)
		}
	}
	if err == nil {
		return deliveries
	}
	deliveries = make([]adapter.Delivery, len(messages))
	for i := range deliveries {
		deliveries[i].Err = judge(err)
	}
	return deliveries
}

// ready is a message whose body is read.
type ready struct {
	*adapter.Message

	index int // among the messages
	body  []byte
}

// SendIn sends messages in a transaction: all behind one savepoint, and one by one where one of them is refused.
func (s *sender) SendIn(ctx context.Context, tx adapter.Transaction, messages []*adapter.Message) ([]adapter.Delivery, error) {
	deliveries := make([]adapter.Delivery, len(messages))
	var all []ready
	for i, m := range messages {
		body, err := read(ctx, m)
		if err != nil {
			deliveries[i].Err = err
			continue
		}
		all = append(all, ready{m, i, body})
	}
	if len(all) == 0 {
		return deliveries, ctx.Err()
	}
	back, err := s.AsRole(ctx, tx)
	if err != nil {
		return nil, err
	}
	knew := s.kept.any()
	refused, err := s.attempt(ctx, tx, all)
	if err != nil {
		return nil, err
	}
	if refused != nil && knew {
		// A conversation that was known may have ended, or its begin may have been rolled back.
		if refused, err = s.attempt(ctx, tx, all); err != nil {
			return nil, err
		}
	}
	if refused == nil {
		return deliveries, back(ctx)
	}
	for _, one := range all {
		if len(all) > 1 {
			if refused, err = s.attempt(ctx, tx, []ready{one}); err != nil {
				return nil, err
			}
		}
		deliveries[one.index].Err = refused
	}
	return deliveries, back(ctx)
}

func read(ctx context.Context, m *adapter.Message) ([]byte, error) {
	opened, err := m.Open(ctx)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(opened, bodyBytesMax+1))
	if err := errors.Join(err, opened.Close()); err != nil {
		return nil, err
	}
	if len(body) > bodyBytesMax {
		return nil, &adapter.Failure{
			Code: "send.refused", Err: fmt.Errorf("the body has more than %d bytes, and does not go to a service", bodyBytesMax), Permanent: true,
		}
	}
	return body, nil
}

// attempt sends messages behind a savepoint, and goes back to it where one is refused: then that is given. An error says that the
// transaction is lost.
func (s *sender) attempt(ctx context.Context, tx pgx.Tx, messages []ready) (refused, err error) {
	savepoint, err := tx.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("set a savepoint: %w", err)
	}
	cause := s.sendAll(ctx, savepoint, messages)
	if cause == nil {
		return nil, savepoint.Commit(ctx)
	}
	if broken(ctx, cause) {
		return nil, cause
	}
	// The rollback undoes the begin of conversations too.
	s.kept.forget()
	if err := savepoint.Rollback(ctx); err != nil {
		return nil, fmt.Errorf("go back to the savepoint: %w", errors.Join(err, cause))
	}
	return judge(cause), nil
}
