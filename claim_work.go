package parley

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Work is messages in the hands of a [WorkHandler], which a heartbeat keeps.
type Work struct {
	// Messages are those that were claimed together, in their order.
	Messages []TakenMessage

	pool       *pgxpool.Pool
	claimed    *Claimed
	lose       context.CancelCauseFunc
	isComplete atomic.Bool
	// isEnding says that a transaction is about to take the messages: that the claim has gone is then its own doing.
	isEnding atomic.Bool

	mu       sync.Mutex
	progress []byte // not shown yet
}

// Progress shows those who wait how far the work is, with the next heartbeat: as JSON, in the view parley.delivery_claims.
//
// Errors: those of [json.Marshal].
func (w *Work) Progress(value any) error {
	progress, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("show the progress: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.progress = progress
	return nil
}

// Transaction calls write in a transaction, at whose end the messages are taken: its work is done once, or not at all. result, a document
// of JSON or nil, is kept where the queue keeps what is finished. The transaction rolls back with the error of write, or with
// [ErrClaimLost] when others have the messages by now.
//
// Errors: that of write; [ErrClaimLost]; those of [Complete].
func (w *Work) Transaction(ctx context.Context, result []byte, write func(tx pgx.Tx) error) error {
	err := pgx.BeginTxFunc(ctx, w.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if err := write(tx); err != nil {
			return err
		}
		w.isEnding.Store(true)
		return Complete(ctx, tx, w.claimed, result)
	})
	w.isComplete.Store(err == nil)
	w.isEnding.Store(err == nil)
	return err
}

// beat renews the claim and shows the progress. The context of the handler ends when the claim is lost.
func (w *Work) beat(ctx context.Context) error {
	w.mu.Lock()
	progress := w.progress
	w.progress = nil
	w.mu.Unlock()
	isHeld, err := Renew(ctx, w.pool, w.claimed, progress)
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.progress == nil {
			w.progress = progress
		}
		return err
	}
	if !isHeld && !w.isEnding.Load() {
		w.lose(ErrClaimLost)
	}
	return nil
}
