package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/measure/driver"
)

// The variants of queues.
const (
	variantRate    = "rate"
	variantLatency = "latency"
)

const (
	// systemSimple is a simple queue of ours.
	systemSimple = "parley_simple"
	// systemCopy is COPY of the same bodies in batches.
	systemCopy = "copy"

	queuesQueue         = "queues"
	queuesSessions      = 8
	queuesConversations = 100
	queuesReaders       = 4
	queuesCopyBatch     = 100
	// queuesRate is low enough for every peer to keep it on two cores.
	queuesRate = 100
)

// queuesScenario measures the same work through Parley and through what others would use, all in one run: a message goes in, in a
// transaction of its sender, and is worked on.
func queuesScenario() Scenario {
	return Scenario{
		Name:  "queues",
		Short: "the same work through Parley, a bare INSERT and COPY, and the peers: messages a second, and how soon work begins",
		Variants: []Variant{
			{variantRate, "8 sessions, begin, send one, commit, while readers work on what comes; COPY in batches of 100"},
			{variantLatency, "from a sender's commit to the first statement of the work, at --rate"},
		},
		Takes: TakesRate, HasPeers: true,
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			q := &queues{bench: b, failed: map[string]string{}}
			b.Dialog.Rate = or(b.Dialog.Rate, queuesRate)
			b.settled["rate"] = b.Dialog.Rate
			var trials []trial
			if b.wants(variantRate) {
				trials = append(trials, q.rateTrials()...)
			}
			if b.wants(variantLatency) {
				trials = append(trials, q.latencyTrials()...)
			}
			results, err := b.measure(ctx, trials)
			return q.withoutFailed(results), err
		},
	}
}

// queues is a run of the scenario.
type queues struct {
	*bench

	// failed are the peers that could not be measured to the end, each with its error: the others go on.
	failed map[string]string
}

// forgiving lets a run of a peer fail: its figures are left out.
func (q *queues) forgiving(t trial) trial {
	run, system := t.run, t.result.System
	t.run = func(ctx context.Context) (float64, error) {
		if q.failed[system] != "" {
			return 0, nil
		}
		rate, err := run(ctx)
		if err != nil && ctx.Err() == nil {
			q.failed[system], err = err.Error(), nil
		}
		return rate, err
	}
	return t
}

// withoutFailed leaves out the peers that failed on the way; the report says why.
func (q *queues) withoutFailed(results []Result) []Result {
	if len(q.failed) > 0 {
		q.settled["failed"] = q.failed
	}
	return slices.DeleteFunc(results, func(r Result) bool { return q.failed[r.System] != "" })
}

func (q *queues) rateTrials() []trial {
	sessions := or(q.Sessions, queuesSessions)
	trials := []trial{
		q.jobTrial(conversationsPeer(), variantRate, sessions),
		q.jobTrial(simplePeer(queuesQueue, queuesReaders, jobWorkers), variantRate, sessions),
		q.insertTrial(variantRate, sessions, 1, q.inserting(1, explicit)),
		q.copyTrial(sessions, or(q.Batch, queuesCopyBatch)),
	}
	for _, p := range q.Peers {
		trials = append(trials, q.forgiving(q.jobTrial(p, variantRate, sessions)))
	}
	return trials
}

// copyTrial measures COPY, the most that PostgreSQL stores.
func (q *queues) copyTrial(sessions, batch int) trial {
	bodies := randomBodies(batch, q.Size)
	rows := make([][]any, batch)
	for i := range rows {
		rows[i] = []any{bodies[i]}
	}
	t := q.insertTrial(variantRate, sessions, batch, driver.Operation(func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		copied, err := conn.CopyFrom(ctx, pgx.Identifier{"bench", "bare"}, []string{"body"}, pgx.CopyFromRows(rows))
		return int(copied), err
	}))
	t.result.System = systemCopy
	return t
}

func (q *queues) latencyTrials() []trial {
	config := LatencyConfig{
		Rate: q.Dialog.Rate, Duration: q.Duration, WarmUp: q.WarmUp, Senders: queuesReaders, Readers: queuesReaders,
		Conversations: or(q.Conversations, queuesConversations), Size: max(q.Size, leastBody),
	}
	systems := []latencySystem{activationSystem(), consumerSystem(), simpleSystem()}
	ours := len(systems)
	for _, p := range q.Peers {
		systems = append(systems, peerSystem(p))
	}
	var trials []trial
	for i, system := range systems {
		shape := traffic{sessions: config.Senders, size: config.Size}
		t := latencyTrial(variantLatency, "", shape, func(ctx context.Context) (LatencyRound, error) {
			return measureOnce(ctx, q.cluster, system, config)
		})
		t.result.System, t.result.Base = system.name, ""
		if i < ours {
			t.result.Conversations = config.Conversations
			trials = append(trials, t)
			continue
		}
		trials = append(trials, q.forgiving(t))
	}
	return trials
}

// jobBody is the body of a message of ours: the number of the job, and its padding.
func jobBody(number int64, padding string) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, leastBody+len(padding)), uint64(number)), padding...)
}

func jobNumber(body []byte) int64 { return int64(binary.BigEndian.Uint64(body)) }

// conversationsPeer is Parley as the peers are called: messages on conversations that are in use, to a Consumer.
func conversationsPeer() Peer {
	var handles []parley.UUID
	return Peer{
		Name: systemParley, Connections: queuesReaders + 1,
		Prepare: func(context.Context, *pgx.Conn) error { return nil },
		Count:   countQueue(queuesQueue),
		Inserter: func() (InsertJob, error) {
			return func(ctx context.Context, tx pgx.Tx, number int64, padding string) error {
				return parley.Send(ctx, tx, handles[number%int64(len(handles))], messageType, jobBody(number, padding))
			}, nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, _ int, work WorkJob) (func(context.Context) error, error) {
			// A copy that becomes a broker of its own has no conversations.
			if err := nameBroker(ctx, pool); err != nil {
				return nil, err
			}
			err := pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
				s := stage{dialogs: map[string][]parley.UUID{}}
				err := s.addQueue(ctx, conn.Conn(), queuesQueue, queuesConversations)
				handles = s.dialogs[queuesQueue]
				return err
			})
			if err != nil {
				return nil, err
			}
			return running(ctx, (&parley.Consumer{
				Pool: pool, Queue: queuesQueue, Readers: queuesReaders, Groups: consumerGroups, Logger: slog.New(slog.DiscardHandler),
				Handler: func(ctx context.Context, _ pgx.Tx, messages []parley.Message) error {
					for _, m := range messages {
						if err := work(ctx, jobNumber(m.MessageBody)); err != nil {
							return err
						}
					}
					return nil
				},
			}).Run), nil
		},
	}
}

// simplePeer is a simple queue of ours as the peers are called, with so many readers that take so many messages at once.
func simplePeer(queue string, readers, count int) Peer {
	return Peer{
		Name: systemSimple, Connections: readers + 1,
		Prepare: func(ctx context.Context, conn *pgx.Conn) error { return createSimple(ctx, conn, queue) },
		Count:   countQueue(queue),
		Inserter: func() (InsertJob, error) {
			return func(ctx context.Context, tx pgx.Tx, number int64, padding string) error {
				_, err := parley.Put(ctx, tx, queue, jobBody(number, padding))
				return err
			}, nil
		},
		Work: func(ctx context.Context, pool *pgxpool.Pool, _ int, work WorkJob) (func(context.Context) error, error) {
			if err := nameBroker(ctx, pool); err != nil {
				return nil, err
			}
			return running(ctx, (&parley.SimpleConsumer{
				Pool: pool, Queue: queue, Readers: readers, Count: count, Logger: slog.New(slog.DiscardHandler),
				Handler: func(ctx context.Context, _ pgx.Tx, messages []parley.TakenMessage) error {
					for _, m := range messages {
						if err := work(ctx, jobNumber(m.Body)); err != nil {
							return err
						}
					}
					return nil
				},
			}).Run), nil
		},
	}
}

// countQueue counts the messages of a queue of ours that are left. The queue keeps no count of those that came in.
func countQueue(queue string) func(ctx context.Context, conn *pgx.Conn) (PeerCount, error) {
	return func(ctx context.Context, conn *pgx.Conn) (PeerCount, error) {
		c := PeerCount{In: -1}
		if err := conn.QueryRow(ctx, countWaiting, queue).Scan(&c.Left); err != nil {
			return c, fmt.Errorf("count the messages that wait: %w", err)
		}
		return c, nil
	}
}

func createSimple(ctx context.Context, conn *pgx.Conn, queue string) error {
	if _, err := conn.Exec(ctx, "select parley.create_queue($1, kind => 'SIMPLE')", queue); err != nil {
		return fmt.Errorf("create a simple queue: %w", err)
	}
	return nil
}

// nameBroker makes a copy of a database a broker of its own, as a Consumer demands.
func nameBroker(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "select parley.new_broker()"); err != nil {
		return fmt.Errorf("name the broker of a copy: %w", err)
	}
	return nil
}

// running runs a consumer until the function that comes back stops it, and gives its error.
func running(ctx context.Context, run func(context.Context) error) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	return func(context.Context) error {
		cancel()
		return <-done
	}
}

// peerVersions asks the peers that are there for their versions.
func peerVersions(ctx context.Context, conn *pgx.Conn, there []Peer) map[string]string {
	versions := map[string]string{}
	for _, p := range there {
		if p.Version != nil {
			versions[p.Name] = p.Version(ctx, conn)
		}
	}
	maps.DeleteFunc(versions, func(_, version string) bool { return version == "" })
	return versions
}
