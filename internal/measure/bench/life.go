package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/driver"
)

// lifeSessions live lives side by side.
const lifeSessions = 8

// lifeQueue is the queue of the targets; lives are begun by initiator(lifeQueue).
const lifeQueue = "life"

// lifeVariant is a part of a conversation's life, or all of it. Each step is one statement and one transaction.
type lifeVariant struct {
	Variant
	sessions int
	steps    []lifeStep
}

// lifeStep is one transaction of a life.
type lifeStep struct {
	statement string
	// isReceiving reports that it has to be repeated until it has received: its message is there, but others may have it locked.
	isReceiving bool
}

// The body is the parameter of every statement.
var (
	beginThenSend = lifeStep{
		statement: `
			select parley.send(
				conversation_handle => parley.begin_dialog('life_initiator', 'life', contract => 'bench'), message_type => 'bench',
				body => $1::bytea
			)`,
	}
	beginAndSend = beginningIn(lifeQueue)
	forget       = lifeStep{statement: `
		select parley.send_and_end(
			from_service => 'life_initiator', to_service => 'life', message_type => 'bench', body => $1::bytea, contract => 'bench'
		)`}
	reply = lifeStep{
		statement: `select parley.send(conversation_handle => r.conversation_handle, message_type => 'bench', body => $1::bytea),
			parley.end_conversation(r.conversation_handle)
			from parley.receive('life', 1) as r`,
		isReceiving: true,
	}
	endWithTarget  = receivingAndEnding("life", "r.message_type_id = 2 and octet_length($1::bytea) > 0")
	endAtInitiator = receivingAndEnding("life_initiator", "r.message_type_id = 2 and octet_length($1::bytea) > 0")
)

// beginningIn begins a conversation to a queue and sends on it.
func beginningIn(queue string) lifeStep {
	return lifeStep{statement: "select parley.begin_and_send(from_service => '" + initiator(queue) + "', to_service => '" + queue +
		"', message_type => 'bench', body => $1::bytea, contract => 'bench')"}
}

// lifeIn is the life that most programs write: begin, send; receive, end; receive, end.
func lifeIn(queue string) []lifeStep {
	return []lifeStep{
		beginningIn(queue), receivingAndEnding(queue, "octet_length($1::bytea) > 0"),
		receivingAndEnding(initiator(queue), "r.message_type_id = 2 and octet_length($1::bytea) > 0"),
	}
}

// receivingAndEnding receives all of a group and ends its conversation once, at the row for which the condition holds.
func receivingAndEnding(queue, condition string) lifeStep {
	return lifeStep{
		statement:   "select parley.end_conversation(r.conversation_handle) from parley.receive('" + queue + "') as r where " + condition,
		isReceiving: true,
	}
}

func (c Config) lifeVariants() []lifeVariant {
	kinds := []lifeVariant{
		{Variant: Variant{"begin_and_send", "begin and first send in one call"}, steps: []lifeStep{beginAndSend}},
		{Variant: Variant{"begin_then_send", "begin_dialog and send"}, steps: []lifeStep{beginThenSend}},
		{Variant: Variant{"life", "begin, send; receive, end; receive, end"}, steps: lifeIn(lifeQueue)},
		{Variant: Variant{"fire_and_forget", "begin, send, end; receive, end"}, steps: []lifeStep{forget, endWithTarget}},
		{
			Variant: Variant{"request_reply", "begin, send; receive, send, end; receive, end"},
			steps:   []lifeStep{beginAndSend, reply, endAtInitiator},
		},
	}
	var variants []lifeVariant
	for _, kind := range kinds {
		many, one := kind, kind
		many.sessions = or(c.Sessions, lifeSessions)
		many.Short += fmt.Sprintf(": %d sessions, a statement and transaction each", lifeSessions)
		one.sessions, one.Name, one.Short = 1, kind.Name+"_one_session", "the same by one session"
		variants = append(variants, many, one)
	}
	return variants
}

func lifeScenario() Scenario {
	s := Scenario{
		Name:     "life",
		Short:    "short lives of conversations against a bare INSERT, and a job of the peers",
		HasPeers: true,
		measure: func(ctx context.Context, b *bench) ([]Result, error) {
			var trials []trial
			for _, v := range b.lifeVariants() {
				if !b.wants(v.Name) {
					continue
				}
				trials = append(trials, b.lifeTrial(v), b.insertTrial(v.Name, v.sessions, 1, b.inserting(1, autocommit)))
				if len(v.steps) == 1 {
					continue // a life that is only begun is no job
				}
				for _, p := range b.Peers {
					trials = append(trials, b.jobTrial(p, v.Name, v.sessions))
				}
			}
			return b.measure(ctx, trials)
		},
	}
	for _, v := range (Config{}).lifeVariants() {
		s.Variants = append(s.Variants, v.Variant)
	}
	return s
}

func (b *bench) lifeTrial(v lifeVariant) trial {
	return trial{
		result: Result{System: systemParley, Variant: v.Name, Sessions: v.sessions, Size: b.Size, Batch: 1},
		run: func(ctx context.Context) (float64, error) {
			s, err := b.stage(ctx, "lives", func(ctx context.Context, conn *pgx.Conn, s *stage) error {
				return s.addQueue(ctx, conn, lifeQueue, 0)
			})
			if err != nil {
				return 0, err
			}
			return b.onCopy(ctx, s, func(d database) (float64, error) {
				var done atomic.Int64
				rate, err := b.drive(ctx, d, v.sessions, counted(b.living(v.steps), &done))
				if err != nil {
					return 0, err
				}
				return rate, d.withConnection(ctx, func(conn *pgx.Conn) error { return requireLives(ctx, conn, v.steps, int(done.Load())) })
			})
		},
	}
}

// living is the operation that lives one life. A session may go on with a conversation that another one has begun: each leaves
// as many as it takes.
func (b *bench) living(steps []lifeStep) driver.Operation {
	body := randomBodies(1, b.Size)[0]
	return func(ctx context.Context, conn *pgx.Conn, _ int) (int, error) {
		for _, step := range steps {
			for {
				tag, err := conn.Exec(ctx, step.statement, body)
				if err != nil {
					return 0, err
				}
				if !step.isReceiving || tag.RowsAffected() > 0 {
					break
				}
			}
		}
		return 1, nil
	}
}

// lifeRest is how long a side that another session held when it ended may take to go: its alarm rings after a second.
const lifeRest = 10 * time.Second

// requireLives prevents a figure for lives that are not over, or messages that were not sent.
func requireLives(ctx context.Context, conn *pgx.Conn, steps []lifeStep, done int) error {
	for begun := time.Now(); ; {
		var endpoints, groups, messages int
		err := conn.QueryRow(ctx, `select (select count(*) from parley.conversation_endpoints as e where e.state <> 'CD'),
			(select count(*) from parley.conversation_groups), (select count(*) from parley.queue_contents('life'))`,
		).Scan(&endpoints, &groups, &messages)
		switch {
		case err != nil:
			return fmt.Errorf("count what is left: %w", err)
		case len(steps) > 1 && endpoints+groups+messages == 0:
			return nil
		case len(steps) > 1 && time.Since(begun) > lifeRest:
			return fmt.Errorf("%d endpoints, %d groups and %d messages are left of lives that are over", endpoints, groups, messages)
		case len(steps) == 1 && (messages != done || endpoints != 2*messages || groups != endpoints):
			return fmt.Errorf("%d conversations were begun; the database has %d messages, %d endpoints and %d groups", done, messages, endpoints,
				groups)
		case len(steps) == 1:
			return nil
		}
		if _, err := conn.Exec(ctx, "select parley.fire_timers(100000), pg_sleep(0.1)"); err != nil {
			return fmt.Errorf("fire what is due: %w", err)
		}
	}
}
