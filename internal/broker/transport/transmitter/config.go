package transmitter

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/durable"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const defaultConnections = 4

// The pace of a transmitter. How often to scan beside that is for package notifier to say, how pauses grow for package backoff.
const (
	// statementTimeout bounds each statement: by then the term is over anyway when the database does not answer.
	statementTimeout = 10 * time.Second
	// deliverTimeout ends the wait for an answer that never comes; links notice sooner that nobody is there.
	deliverTimeout = time.Minute
	// lastAnswers is how long to wait for the other answers when one delivery has failed: what they acknowledge is not sent again.
	lastAnswers = 2 * time.Second
	// lateTime is how long a target may take to answer before others no longer have to share the window with what is for it.
	lateTime = time.Second

	// longestPollInterval bounds the pause between two scans, or two takes from a lane, however long these take: it is what a message may
	// wait for while senders do not notify.
	longestPollInterval = 20 * time.Millisecond
	// quietTime is how long nothing must have come before senders are asked to notify again: asking costs them more than a few scans do.
	quietTime = 200 * time.Millisecond
	// blindInterval is how often to scan when nothing comes and no notification can.
	blindInterval = 50 * time.Millisecond
	// answerPause is how long answers are gathered, so that one statement records them all.
	answerPause = 10 * time.Millisecond

	// stuckTime is how long a conversation is left alone that does not get further, and how long a worker may go on while conversations of
	// its destination have to be compared with their far sides.
	stuckTime = 4 * time.Second
	// unknownTime is how long an id counts as none of a destination: queues without activation are notified of too, and each such id
	// costs a scan.
	unknownTime = time.Minute
)

// Way is how to get to a destination.
type Way struct {
	Deliverer transport.Deliverer
	// Guard seals what leaves the server on this way; nil between databases of one daemon.
	Guard dialogsecurity.Guard
}

// Config reports what a transmitter works on. Settings and Resolve are needed.
type Config struct {
	// Settings say how to reach the database. The transmitter has connections of its own, ConnectionsMax at most, 0 means 4.
	Settings       *pgxpool.Config
	ConnectionsMax int32
	// Resolve finds the way to an address. Its error is what the transmission queue shows; it is asked again after a back-off.
	Resolve func(address string) (Way, error)
	// Locate finds, for conversations whose route is LOCAL, the other database of this daemon that has the service: its address,
	// or "" and the reason why there is none, for each of them. Nil when the daemon serves one database.
	Locate func(ctx context.Context, unresolved []transportstore.Unresolved) ([]Location, error)
	// Observer is notified of what happens; nil means nobody.
	Observer Observer
	// Logger is for failures; nil means [slog.Default].
	Logger *slog.Logger
}

// Location is where a conversation goes.
type Location struct{ Address, Status string }

// An Observer is notified of what happens, for metrics. Its methods must return at once; several goroutines call them.
type Observer interface {
	// Sent: runs were delivered to a destination that has answered.
	Sent(runs []transportstore.Run)
	// FragmentSent: a part of a large body was, of so many bytes.
	FragmentSent(bytes int)
	// Answered: so the far side answered.
	Answered(results []transportstore.Result)
	// AttemptFailed: a destination could not be reached, or did not answer.
	AttemptFailed(address string, err error)
	// Superseded reports whether another copy of the database speaks for it.
	Superseded(is bool)
}

type unobserved struct{}

func (unobserved) Sent([]transportstore.Run)        {}
func (unobserved) FragmentSent(int)                 {}
func (unobserved) Answered([]transportstore.Result) {}
func (unobserved) AttemptFailed(string, error)      {}
func (unobserved) Superseded(bool)                  {}

// New prepares a transmitter. Nothing runs, and nothing is connected, before [Transmitter.Run]. Close it.
func New(ctx context.Context, config Config) (*Transmitter, error) {
	if config.Settings == nil || config.Resolve == nil {
		return nil, errors.New("transmitter: Settings or Resolve is missing")
	}
	if config.Observer == nil {
		config.Observer = unobserved{}
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	pool, err := durable.Open(ctx, config.Settings, "parley transmitter", cmp.Or(config.ConnectionsMax, defaultConnections))
	if err != nil {
		return nil, err
	}
	return &Transmitter{Config: config, pool: pool}, nil
}

// Close closes the connections of a transmitter that does not run any more.
func (t *Transmitter) Close() { t.pool.Close() }
