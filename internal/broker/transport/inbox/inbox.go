// Package inbox delivers messages to a database that this daemon serves.
//
// The database decides what becomes of each run; see [transportstore.AcceptArrival]. An inbox bounds how much it is asked at once, names
// the sender of each run, as far as that is known, and lets no answer leave before its content is safe (package durable). When a
// statement fails for what is in a batch, the runs are tried one by one, so that one of them cannot keep the others.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/broker/dialogsecurity"
	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/durable"
	"github.com/parley-broker/parley/internal/pgdb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

const (
	defaultConnections = 8
	// acceptTimeout bounds how long a batch may take altogether.
	acceptTimeout = 30 * time.Second
	// triesMax is how often a batch is tried whose transaction has to yield to others.
	triesMax = 4
	// undelivered is the number under which Service Broker reports that a message could not be put into its queue.
	undelivered = 28021
)

// Config reports which database to deliver to. Only Settings is needed.
type Config struct {
	// Settings describe the connections to the database. The inbox has connections of its own, ConnectionsMax at most, 0 means 8.
	Settings       *pgxpool.Config
	ConnectionsMax int32
	// Guard opens what comes from other servers; nil when there are none.
	Guard dialogsecurity.Guard
	// Observer is informed of what arrives; it may be nil.
	Observer Observer
	// Logger receives the same; nil means [slog.Default].
	Logger *slog.Logger
}

// An Observer is informed of what arrives, for metrics. Its methods must return at once; several goroutines call them.
type Observer interface {
	// Arrived: runs have come, and were answered so.
	Arrived(runs []transportstore.Run, results []transportstore.Result)
	// FragmentArrived: a part of a large message has come, of so many bytes.
	FragmentArrived(bytes int)
}

type unobserved struct{}

func (unobserved) Arrived([]transportstore.Run, []transportstore.Result) {}
func (unobserved) FragmentArrived(int)                                   {}

// Inbox delivers to one database. It is safe for concurrent use.
type Inbox struct {
	Config

	pool *durable.Pool
}

// New prepares an inbox. Nothing is connected before something comes. Close it.
func New(ctx context.Context, config Config) (*Inbox, error) {
	if config.Settings == nil {
		return nil, errors.New("inbox: Settings is missing")
	}
	if config.Observer == nil {
		config.Observer = unobserved{}
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	pool, err := durable.Open(ctx, config.Settings, "parley inbox", cmp.Or(config.ConnectionsMax, defaultConnections))
	if err != nil {
		return nil, err
	}
	return &Inbox{Config: config, pool: pool}, nil
}

// Close closes the connections of an inbox that nobody uses any more.
func (b *Inbox) Close() { b.pool.Close() }

// DB runs single statements on the database.
func (b *Inbox) DB() parley.DB { return b.pool.DB() }

var _ transport.Deliverer = (*Inbox)(nil)

// Deliver takes in what has come from another server.
func (b *Inbox) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	identities := make([]string, len(batch.Runs))
	for i := range identities {
		identities[i] = peer(batch.Passage)
	}
	arrival := transportstore.Arrival{Speaker: batch.Speaker, Runs: batch.Runs, Identities: identities}
	return b.take(ctx, arrival, b.Guard)
}

// DeliverFragment takes in a part of a large message from another server.
func (b *Inbox) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	fragment.Identity = peer(passage)
	return b.takeFragment(ctx, fragment, b.Guard)
}

// peer reports who is at the other end of a link.
func peer(passage transport.Passage) string {
	if passage.Identity == "" {
		return ""
	}
	if passage.Name != "" {
		return "peer:" + passage.Identity + " named " + passage.Name
	}
	return "peer:" + passage.Identity
}

// Neighbour gives the way into the inbox for a database of the same daemon. When that is on the same server too, the roles that own its
// services are the same as here, and their names prove the sender, as far as its keepers could act as these roles. On another server, where
// there are no keepers, they prove nothing.
func (b *Inbox) Neighbour(keepers string) transport.Deliverer {
	return neighbour{b, keepers}
}

type neighbour struct {
	inbox   *Inbox
	keepers string
}

func (n neighbour) identity(owner string) string {
	if n.keepers == "" {
		return ""
	}
	return "role:" + n.keepers + " " + owner
}

// Deliver takes in what has come from a database of the same daemon.
func (n neighbour) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	identities := make([]string, len(batch.Runs))
	for i, run := range batch.Runs {
		identities[i] = n.identity(run.Owner)
	}
	return n.inbox.take(ctx, transportstore.Arrival{Speaker: batch.Speaker, Runs: batch.Runs, Identities: identities}, nil)
}

// DeliverFragment takes in a part of a large message from a database of the same daemon.
func (n neighbour) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, _ transport.Passage) (int64, error) {
	fragment.Identity = n.identity(fragment.Owner)
	return n.inbox.takeFragment(ctx, fragment, nil)
}

func (b *Inbox) take(ctx context.Context, arrival transportstore.Arrival, guard dialogsecurity.Guard) ([]transportstore.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	results, err := b.accept(ctx, arrival, guard)
	if err != nil {
		return nil, err
	}
	b.Observer.Arrived(arrival.Runs, results)
	return results, nil
}

// accept gives an arrival to the database, and its halves when it cannot be taken in as it is.
func (b *Inbox) accept(ctx context.Context, arrival transportstore.Arrival, guard dialogsecurity.Guard) ([]transportstore.Result, error) {
	results, err := b.try(ctx, arrival, guard)
	var raised *pgconn.PgError
	if err == nil || !errors.As(err, &raised) || !isOfContent(raised.Code) {
		return results, err
	}
	if len(arrival.Runs) == 1 {
		run := arrival.Runs[0]
		b.Logger.Error("a message cannot be taken in", "event", "Broker:Message Undeliverable", "conversation", run.ConversationID,
			"message_type", run.MessageType, "sequence", run.FirstSequence, "error", err)
		return []transportstore.Result{{
			Outcome: transportstore.Held, ErrorNumber: undelivered,
			Description: fmt.Sprintf("The message could not be delivered to the target service: %s", raised.Message),
		}}, nil
	}
	half := len(arrival.Runs) / 2
	first, second := arrival, arrival
	first.Runs, first.Identities = arrival.Runs[:half], arrival.Identities[:half]
	second.Runs, second.Identities = arrival.Runs[half:], arrival.Identities[half:]
	if results, err = b.accept(ctx, first, guard); err != nil {
		return nil, err
	}
	rest, err := b.accept(ctx, second, guard)
	if err != nil {
		return nil, err
	}
	return append(results, rest...), nil
}

// try gives an arrival to the database, again when it had to yield.
func (b *Inbox) try(
	ctx context.Context, arrival transportstore.Arrival, guard dialogsecurity.Guard,
) (results []transportstore.Result, err error) {
	for tries := 1; ; tries++ {
		err = b.pool.Do(ctx, func(conn *pgx.Conn) (err error) {
			if guard != nil {
				results, err = guard.Accept(ctx, conn, arrival)
			} else {
				results, err = transportstore.AcceptArrival(ctx, conn, arrival)
			}
			return err
		})
		if !hasYielded(pgdb.SQLState(err)) || tries == triesMax {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(backoff.Serialization.Pause(tries)):
		}
	}
	if err != nil {
		return nil, err
	}
	return results, nil
}

// hasYielded reports whether a SQLSTATE allows the same statement to succeed next time: serialization failures, deadlocks, lock time-outs.
func hasYielded(state string) bool {
	return strings.HasPrefix(state, "40") || state == "55P03"
}

// isOfContent reports whether a SQLSTATE blames the content of the statement: the server, the connection to it and
// the schema are as expected.
func isOfContent(state string) bool {
	switch state[:2] {
	case "08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58":
		return false
	}
	return true
}

func (b *Inbox) takeFragment(ctx context.Context, fragment transportstore.Fragment, guard dialogsecurity.Guard) (stored int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTimeout)
	defer cancel()
	err = b.pool.Do(ctx, func(conn *pgx.Conn) (err error) {
		if guard != nil {
			stored, err = guard.AcceptFragment(ctx, conn, fragment)
		} else {
			stored, err = transportstore.AcceptFragment(ctx, conn, fragment)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	b.Observer.FragmentArrived(len(fragment.Data))
	// Of a refused run no fragment is there; its result gives the reason.
	return max(stored, 0), nil
}
