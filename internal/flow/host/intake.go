package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/flow/pipeline"
	"github.com/parley-broker/parley/internal/pgdb"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

// takenAtOnce is how many entries of the ledger are read at once.
const takenAtOnce = 1000

// intake is a location as its receiver sees it.
type intake struct {
	host         *Host
	name         string
	pipeline     *pipeline.Receive
	maps         *portMaps         // nil: it has none
	response     *pipeline.Send    // of answers; nil where no client waits for one
	responseMaps *portMaps         // of answers; nil: it has none
	patience     time.Duration     // how long clients wait
	brings       string            // activations or correlations
	feeding      *feeding          // the send ports to which its messages go
	common       map[string]string // properties that the database gives all its messages
	committer    *committer
}

var _ adapter.Intake = (*intake)(nil)

func newIntake(h *Host, name string, l location, compiled *pipeline.Receive, maps *portMaps) *intake {
	in := &intake{host: h, name: name, pipeline: compiled, maps: maps, common: map[string]string{
		"ReceivePortName": l.ReceivePort, "ReceiveLocationName": name, "InboundTransportType": l.Adapter,
		"InboundTransportLocation": l.Address,
	}}
	in.brings, in.feeding, in.patience = l.Brings, newFeeding(), time.Duration(l.ResponseMS)*time.Millisecond
	in.committer = newCommitter(in)
	return in
}

// Await returns when messages are taken: the database is not away, and intake is not throttled, or was for as long as it is delayed.
func (in *intake) Await(ctx context.Context) error {
	began := time.Now()
	for {
		pause := in.host.gate.closedFor()
		if pause <= 0 {
			pause = in.delay() - time.Since(began)
		}
		if pause <= 0 {
			return context.Cause(ctx)
		}
		in.host.counts.throttledBatches.Add(1)
		if err := backoff.Wait(ctx, min(pause, time.Second)); err != nil {
			return err
		}
	}
}

// Throttled reports whether intake is throttled, or the database away.
func (in *intake) Throttled() bool {
	return in.host.gate.closedFor() > 0 || in.delay() > 0
}

// delay is how long each intake of the location is delayed now.
func (in *intake) delay() time.Duration {
	return max(in.host.throttle.publishingDelay(in.brings == bringsCorrelations), in.feeding.delay())
}

// Known gives those of keys that were taken.
func (in *intake) Known(ctx context.Context, keys []string) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	found, err := flowstore.Known(ctx, in.host.pool, in.host.name, in.name, keys)
	in.observe(err)
	known := make(map[string]bool, len(found))
	for _, key := range found {
		known[key] = true
	}
	return known, err
}

// Taken gives what was published and whose source is still there.
func (in *intake) Taken(ctx context.Context) ([]adapter.Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	found, err := flowstore.Taken(ctx, in.host.pool, in.host.name, in.name, takenAtOnce)
	in.observe(err)
	entries := make([]adapter.Entry, len(found))
	for i, entry := range found {
		entries[i] = adapter.Entry{Key: entry.Key, Entry: entry.Entry}
	}
	return entries, err
}

// Removed records that sources are gone. It is recorded also where ctx ends, because they are.
func (in *intake) Removed(ctx context.Context, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	err := flowstore.Removed(ctx, in.host.pool, in.host.name, in.name, keys)
	in.observe(err)
	return err
}

// observe closes the gate where the database is away, or refuses the node. A location that was disabled is ended soon.
func (in *intake) observe(err error) {
	if err == nil || !isOfData(err) && pgdb.SQLState(err) != "PF015" && !errors.Is(err, context.Canceled) {
		in.host.gate.observe(err)
	}
}

// errNotEverything says that the database said nothing of some messages.
var errNotEverything = errors.New("the database did not say what became of all messages")

// Take puts inputs through the pipeline and publishes what comes of them, in one transaction.
func (in *intake) Take(ctx context.Context, inputs []adapter.Input) (results []adapter.Result, err error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	t := newTake(in, nil, inputs)
	defer t.abandon()
	ctx, end := t.startReceive(ctx)
	defer func() { end(err) }()
	if err := t.process(ctx); err != nil {
		return nil, err
	}
	endPublish := t.startPublish(ctx)
	if t.tx != nil {
		// It is committed whatever happens to the receiver meanwhile: only its end says what became of it.
		err = t.commit(context.WithoutCancel(ctx))
	} else {
		err = in.committer.commit(t)
	}
	endPublish(err)
	if err != nil {
		return nil, err
	}
	in.host.counts.took(t)
	return t.results(), nil
}

// TakeIn does the same in a transaction of the receiver.
func (in *intake) TakeIn(ctx context.Context, tx adapter.Transaction, inputs []adapter.Input) (results []adapter.Result, err error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	t := newTake(in, tx, inputs)
	ctx, end := t.startReceive(ctx)
	defer func() { end(err) }()
	if err := t.process(ctx); err != nil {
		return nil, err
	}
	if err := t.storeRest(ctx); err != nil {
		return nil, err
	}
	in.host.counts.took(t)
	return t.results(), nil
}

// entryText gives an entry as the ledger keeps it.
func entryText(entry json.RawMessage) *string {
	if len(entry) == 0 {
		return nil
	}
	text := string(entry)
	return &text
}

// inInput says of which input an error is.
func inInput(number int, err error) error { return fmt.Errorf("input %d: %w", number+1, err) }
