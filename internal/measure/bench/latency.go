package bench

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/record"
)

// LatencyConfig reports how messages are offered whose latency is measured.
type LatencyConfig struct {
	Frame

	// Systems are the systems to measure; none: all of them.
	Systems []string
	// Peers are measured beside Parley.
	Peers []Peer
	// Rate is how many messages a second are offered, whether or not they are worked on in time.
	Rate int
	// Duration of a run, and before it WarmUp, whose messages do not count.
	Duration, WarmUp time.Duration
	// Senders are the sessions that send, Readers those that work, Conversations what the messages are spread over.
	Senders, Readers, Conversations int
	// Size is how many bytes a body has.
	Size int
	// Repeat is how often each system is run, in turns.
	Repeat int
}

// leastBody holds the number of a message.
const leastBody = 8

// Check reports what is wrong with a configuration, before there is a DSN.
func (c LatencyConfig) Check() error {
	for _, number := range []struct {
		name  string
		value int
		least int
	}{
		{"rate", c.Rate, 1},
		{"duration", int(c.Duration), 1},
		{"warm-up", int(c.WarmUp), 0},
		{"senders", c.Senders, 1},
		{"readers", c.Readers, 1},
		{"conversations", c.Conversations, 1},
		{"size", c.Size, leastBody},
		{"repeat", c.Repeat, 1},
	} {
		if number.value < number.least {
			return fmt.Errorf("%s must be at least %d", number.name, number.least)
		}
	}
	known := []string{}
	for _, system := range latencySystems(nil) {
		known = append(known, system.name)
	}
	if err := checkPeers(c.Peers, known...); err != nil {
		return err
	}
	for _, p := range c.Peers {
		known = append(known, p.Name)
	}
	for _, name := range c.Systems {
		if !slices.Contains(known, name) {
			return fmt.Errorf("system %q is unknown: there are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// A latencySystem is one way from a sender's commit to work that has begun.
type latencySystem struct {
	name, short string
	// isOnBroker is whether its database has the broker before it is prepared.
	isOnBroker bool
	// prepare furnishes a new database, on a connection to it.
	prepare func(ctx context.Context, conn *pgx.Conn, c LatencyConfig) error
	// work starts the readers; each message's work begins with the statement of begunStatement. The function
	// that comes back stops them, and returns the cause.
	work func(ctx context.Context, d database, c LatencyConfig) (stop func() error, err error)
	// sender gives the function that sends one message on a connection, in the transaction that is open there.
	sender func(ctx context.Context, conn *pgx.Conn, c LatencyConfig, session int) (send, error)
}

// send sends the message with a number.
type send func(ctx context.Context, tx pgx.Tx, number int64) error

// begunStatement is the first statement of the work on a message: it records its number and the time.
const begunStatement = "insert into bench.begun (number, begun_at) values ($1, clock_timestamp())"

// LatencySystems lists what can be measured, with a line on each.
func LatencySystems(peers []Peer) []Variant {
	var list []Variant
	for _, system := range latencySystems(peers) {
		list = append(list, Variant{system.name, system.short})
	}
	return list
}

func latencySystems(peers []Peer) []latencySystem {
	systems := []latencySystem{activationSystem(), consumerSystem(), groupsSystem(), simpleSystem()}
	for _, p := range peers {
		systems = append(systems, peerSystem(p))
	}
	return systems
}

// MeasureLatency measures how long it takes from a sender's commit to the first statement of the work on its message. It
// makes databases of its own on the server and drops them before it returns, also when ctx ends.
func MeasureLatency(ctx context.Context, config LatencyConfig) (report LatencyReport, err error) {
	if err := config.Check(); err != nil {
		return LatencyReport{}, err
	}
	systems := slices.DeleteFunc(latencySystems(config.Peers), func(s latencySystem) bool {
		return len(config.Systems) > 0 && !slices.Contains(config.Systems, s.name)
	})
	asked := map[string]any{
		"rate": config.Rate, "duration_seconds": config.Duration.Seconds(), "warm_up_seconds": config.WarmUp.Seconds(), "size": config.Size,
		"senders": config.Senders, "readers": config.Readers, "conversations": config.Conversations, "repeat": config.Repeat,
	}
	expected := time.Duration(config.Repeat*len(systems)) * config.Duration
	report.Head, err = config.onServer(ctx, "latency", asked, expected, func(ctx context.Context, c *cluster, head *record.Head) error {
		there, missing, err := available(ctx, c.admin, config.Peers)
		if err != nil {
			return err
		}
		describePeers(head.Settings, there, missing)
		systems = slices.DeleteFunc(systems, func(s latencySystem) bool { return missing[s.name] != "" })
		rounds := make([][]LatencyRound, len(systems))
		name := func(s latencySystem) string { return s.name }
		err = inTurns(ctx, &config.Frame, systems, config.Repeat, name, func(i int, system latencySystem) error {
			round, err := measureOnce(ctx, c, system, config)
			rounds[i] = append(rounds[i], round)
			return err
		})
		if err != nil {
			return fmt.Errorf("measure %w", err)
		}
		for i, system := range systems {
			report.Results = append(report.Results, summarize(system.name, rounds[i]))
		}
		report.Ratios = latencyRatios(report.Results, config.Peers)
		head.Figures = latencyFigures(report.Results)
		return nil
	})
	return report, err
}
