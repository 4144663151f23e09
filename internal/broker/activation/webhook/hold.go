package webhook

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

const (
	// defaultLease is how long a claim lasts that is not renewed: so late comes a message again whose daemon has died.
	defaultLease = 30 * time.Second
	// renewals is how often a claim is renewed within its lease.
	renewals = 6
)

var (
	errOvertaken = errors.New("a message has come in front of those that were delivered")
	errLost      = errors.New("the claim was lost, or the conversation has ended, while the request was under way")
)

// hold renews a claim of so many groups or messages, which was asked for at a time, until end is called. The context that it gives ends
// when any of them is lost; end reports that as errLost.
func (r *reader) hold(
	work context.Context, claim parley.DeliveryClaim, claimed int, asked time.Time,
) (held context.Context, end func() error) {
	held, cancel := context.WithCancelCause(work)
	over := make(chan struct{})
	go func() {
		defer close(over)
		r.renew(held, claim, claimed, asked.Add(claim.Lease), func() { cancel(errLost) })
	}()
	return held, func() error {
		cancel(nil)
		<-over
		if errors.Is(context.Cause(held), errLost) {
			return errLost
		}
		return nil
	}
}

// renew renews a claim again and again until ctx ends. It calls lose when any of it is lost, or when its lease is over and the database
// could not be asked: by our own clock, which began before that of the database.
func (r *reader) renew(ctx context.Context, claim parley.DeliveryClaim, claimed int, until time.Time, lose func()) {
	ticker := time.NewTicker(claim.Lease / renewals)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asked := time.Now()
		limited, cancel := context.WithDeadline(ctx, until)
		held, err := parley.RenewDelivery(limited, r.pool, claim)
		cancel()
		_, isRefused := parley.ErrorNumber(err)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && held >= claimed:
			until = asked.Add(claim.Lease)
		case err == nil, isRefused, !time.Now().Before(until):
			lose()
			return
		}
	}
}

// record does in one transaction what an outcome asks for, when the claim still has the conversation: errLost otherwise.
func (r *reader) record(
	ctx context.Context, claim parley.DeliveryClaim, handle parley.UUID, what func(tx pgx.Tx) error,
) error {
	return pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		return recordIn(ctx, tx, claim, handle, what)
	})
}

func recordIn(
	ctx context.Context, tx pgx.Tx, claim parley.DeliveryClaim, handle parley.UUID, what func(tx pgx.Tx) error,
) error {
	isOurs, err := parley.RecordDelivery(ctx, tx, claim, handle)
	if err != nil {
		return err
	}
	if !isOurs {
		return errLost
	}
	return what(tx)
}

// release gives up what a claim has left, so that it need not run out.
func (r *reader) release(ctx context.Context, claim parley.DeliveryClaim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	if err := parley.ReleaseDelivery(ctx, r.pool, claim); err != nil {
		r.logger.Warn("webhook could not release its claim; it runs out", "error", err, "lease", claim.Lease)
	}
}

// giveBack releases a claim whose delivery ended by an error, and reports whether to go on at once.
func (r *reader) giveBack(ctx context.Context, claim parley.DeliveryClaim, cause error, about ...any) (bool, error) {
	r.release(ctx, claim)
	switch {
	case errors.Is(cause, errOvertaken):
		// Another sender's message has come in front of what was delivered: again, in the right order.
		return true, nil
	case errors.Is(cause, errLost):
		r.logger.With(about...).Warn("webhook records nothing of a request", "error", cause)
		return true, nil
	}
	return false, cause
}
