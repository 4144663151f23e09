package transmitter

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/broker/transport"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// fragmentBytes is how much of a large body travels at once.
const fragmentBytes = 1 << 20

// deliver sends a batch and waits for its answer.
func (w *worker) deliver(ctx context.Context, pieces []piece) answer {
	runs := make([]transportstore.Run, len(pieces))
	for i, p := range pieces {
		runs[i] = p.run
	}
	results, err := w.send(ctx, runs, nil)
	return answer{pieces: pieces, results: results, err: err}
}

// deliverLarge sends the fragments of a large message, and then the run that stands for it.
func (w *worker) deliverLarge(ctx context.Context, large piece) answer {
	results, err := w.send(ctx, []transportstore.Run{large.run}, w.sendFragments)
	return answer{pieces: []piece{large}, isLarge: true, results: results, err: err}
}

// send seals runs, lets something be done first with each that may leave, and delivers them.
func (w *worker) send(
	ctx context.Context, runs []transportstore.Run, before func(ctx context.Context, run, sealed transportstore.Run) error,
) ([]transportstore.Result, error) {
	sealed, results, err := w.seal(ctx, runs)
	if err != nil || len(sealed) == 0 {
		return results, err
	}
	if before != nil {
		if err := before(ctx, runs[0], sealed[0]); err != nil {
			return nil, err
		}
	}
	within, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	delivered, err := w.way.Deliverer.Deliver(within, transport.Batch{
		Passage: transport.Outset(), Speaker: w.speaker, Runs: sealed,
	})
	switch {
	case err != nil:
		return nil, err
	case len(delivered) != len(sealed):
		return nil, fmt.Errorf("%d results came for %d runs", len(delivered), len(sealed))
	}
	w.Observer.Sent(sealed)
	if w.way.Guard != nil {
		var forged int
		if delivered, forged = w.way.Guard.Verify(w.speaker, sealed, delivered); forged > 0 {
			transport.CorruptedMessage.In(w.Logger).Warn("results were forged on the way; nothing is acknowledged by them",
				"address", w.destination.Address, "results", forged)
		}
	}
	next := 0
	for i := range results {
		if results[i].Outcome == "" {
			results[i] = delivered[next]
			next++
		}
	}
	return results, nil
}

// seal prepares runs to leave. Those that must not leave have their results already; the results of the others are empty.
func (w *worker) seal(
	ctx context.Context, runs []transportstore.Run,
) (sealed []transportstore.Run, results []transportstore.Result, err error) {
	results = make([]transportstore.Result, len(runs))
	if w.way.Guard == nil {
		return runs, results, nil
	}
	sealing, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	sealed, held, err := w.way.Guard.Seal(sealing, w.pool.DB(), w.speaker, runs)
	if err != nil {
		return nil, nil, databaseError{fmt.Errorf("seal messages: %w", err)}
	}
	type place struct{ endpoint, sequence int64 }
	kept := make(map[place]transportstore.Result, len(held))
	for _, one := range held {
		kept[place{one.EndpointID, one.FirstSequence}] = one.Result
	}
	left := 0
	for i, run := range runs {
		result, isHeld := kept[place{run.EndpointID, run.FirstSequence}]
		if isHeld {
			results[i] = result
			continue
		}
		left++
	}
	if left != len(sealed) {
		return nil, nil, databaseError{fmt.Errorf("%d of %d runs were sealed, %d held", len(sealed), len(runs), len(held))}
	}
	return sealed, results, nil
}

// sendFragments sends a large body in parts, beginning behind what is there, which the first answer reports.
func (w *worker) sendFragments(ctx context.Context, run, sealed transportstore.Run) error {
	for offset := int64(0); offset < run.Size; {
		fragment := transportstore.Fragment{
			Speaker: w.speaker, ConversationID: run.ConversationID, FromInitiator: run.FromInitiator, Sequence: run.FirstSequence,
			Offset: offset, Size: run.Size, ToService: run.ToService, ToBroker: run.ToBroker, Owner: run.Owner, Security: sealed.Security,
		}
		err := w.do(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
			fragment.Data, err = transportstore.ReadBodyPart(ctx, conn, run.EndpointID, run.FirstSequence, offset, fragmentBytes)
			return err
		})
		switch {
		case err != nil:
			return err
		case len(fragment.Data) == 0:
			return nil // it is no longer in transit
		}
		if w.way.Guard != nil {
			if fragment, err = w.way.Guard.SealFragment(sealed, fragment); err != nil {
				return databaseError{fmt.Errorf("seal a fragment: %w", err)}
			}
		}
		stored, err := w.deliverFragment(ctx, fragment)
		if err != nil {
			return err
		}
		w.Observer.FragmentSent(len(fragment.Data))
		if stored <= offset {
			return nil // it is not taken: the answer to the run says why
		}
		offset = stored
	}
	return nil
}

func (w *worker) deliverFragment(ctx context.Context, fragment transportstore.Fragment) (stored int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, deliverTimeout)
	defer cancel()
	return w.way.Deliverer.DeliverFragment(ctx, fragment, transport.Outset())
}
