package transmitter

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/broker/transport/durable"
	"github.com/parley-broker/parley/internal/daemon"
	"github.com/parley-broker/parley/internal/notifier"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// idsMax is how many notified ids may wait for the coordinator.
const idsMax = 1024

// Transmitter transmits what one database has for others.
type Transmitter struct {
	Config

	pool *durable.Pool

	mu sync.Mutex
	// speaker is in whose name we speak, as a connection of that generation has said it.
	speaker    transportstore.Speaker
	generation int64
}

// Run transmits in a term of the daemon, until ctx ends. Failures are logged and tried again.
func (t *Transmitter) Run(ctx context.Context, term *daemon.Term) {
	notified := term.Notifier.Subscribe(idsMax)
	defer notified.Close()
	notified.On("transmission", notified.Missed)
	c := &coordinator{
		Transmitter: t, term: term, notified: notified, unresolved: notified.On("unresolved", notifier.NewWakeUp()),
		destinations: map[int32]*destination{}, unknown: map[int32]time.Time{}, ended: make(chan ended), stopped: make(chan struct{}),
		failures: backoff.NewFailures(t.Logger, "the transmission queue cannot be scanned"),
	}
	t.mu.Lock()
	t.generation = 0 // the term belongs to the name
	t.mu.Unlock()
	t.Observer.Superseded(false)
	c.run(ctx)
}

// speakerOn gives the name under which to speak, which it asks for on a connection when that, or any other, is new: another server
// may stand behind it, which has another history.
func (t *Transmitter) speakerOn(ctx context.Context, db parley.DB, term int64) (transportstore.Speaker, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	generation := t.pool.Generation()
	if t.generation == generation {
		return t.speaker, nil
	}
	speaker, leads, err := transportstore.ReadSpeaker(ctx, db, term)
	if err != nil || !leads {
		return transportstore.Speaker{}, cmp.Or(err, errTermOver)
	}
	t.speaker, t.generation = speaker, generation
	return speaker, nil
}

// askSpeaker asks anew in whose name to speak.
func (t *Transmitter) askSpeaker(ctx context.Context, term int64) (speaker transportstore.Speaker, err error) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	t.mu.Lock()
	t.generation = 0
	t.mu.Unlock()
	err = t.pool.Do(ctx, func(conn *pgx.Conn) (err error) {
		speaker, err = t.speakerOn(ctx, conn, term)
		return err
	})
	return speaker, err
}
