package parley

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Handler works on the messages of one RECEIVE: all of one conversation group, which nobody else can receive from meanwhile, in the order
// of their conversations. Its work in tx happens together with taking the messages, or not at all. It must neither commit nor roll back tx.
//
// A consumer with Groups calls it for one group after the other in one transaction, which they share. When one call fails, the work of
// those before it is undone. All groups but that one stay locked, and are received and handled again in the same transaction, each behind a
// savepoint, so that only what fails is given back, and only that is reported. Calls that came before the first failure are made once more.
// Where the transaction itself is lost, all of it comes again, each message in a transaction of its own: when a handler ends the
// transaction or the connection, as a context does that ends during a statement, or when the commit fails.
//
// An error or a panic rolls back, and the messages come again, one in each call until as many as came together have been handled: so
// those in front of a bad one are handled, and it fails alone. After five rollbacks the broker sets the conversation aside
// with the last error ([ReadPoisonConversations]), or disables the queue if that is its setting.
type Handler func(ctx context.Context, tx pgx.Tx, messages []Message) error

// Consumer receives from one queue for as long as it runs: each of its readers begins a transaction, receives, calls
// the handler and commits. Any number of consumers may work on one queue, in any number of processes. A commit travels to the server
// together with the RECEIVE of the next transaction, and what has failed of the two is distinguished.
//
// Readers wait for messages without polling: a notification wakes them within milliseconds. Where none can come, because
// the pool leads through a pooler such as PgBouncer, they scan once each PollInterval. While messages keep coming, some hundreds a second,
// one reader scans every few milliseconds instead, because notifications cost senders.
type Consumer struct {
	// Pool gives each reader a connection while it receives and handles, and takes it back while the reader waits, each second, and each 10
	// milliseconds while all its connections are in use.
	Pool *pgxpool.Pool
	// Queue is the name of the queue.
	Queue string
	// Handler works on the messages.
	Handler Handler

	// Top bounds the messages of one call of the handler; 0 means 100. After a failure it is 1 for a while.
	Top int
	// Groups is from how many conversation groups one transaction receives; 0 means 1. With many short conversations it saves most of the
	// transactions. Top bounds the messages of all of them together.
	Groups int
	// Readers is how many groups are worked on at once; 0 means 1.
	Readers int
	// HandlerTimeout bounds one call of the handler by its context; 0 means no bound.
	HandlerTimeout time.Duration
	// GraceTime is how long running handlers may go on after Run was asked to stop; then their context ends and their
	// transactions roll back. 0 means 30 seconds.
	GraceTime time.Duration
	// PollInterval is how often a waiting consumer scans the queue without being notified; 0 means 1 second.
	// A disabled queue is scanned after five intervals.
	PollInterval time.Duration
	// HandleSystemMessages gives EndDialog and Error messages to the handler. Otherwise the consumer ends this side of
	// their conversations itself, after the handler has seen the other messages of the same RECEIVE.
	HandleSystemMessages bool
	// ListenConfig is how to reach the database for notifications, without a pooler in between. When nil, the
	// settings of Pool are used, and notifications are done without when they lead through a pooler.
	ListenConfig *pgx.ConnConfig
	// Logger receives failures; nil means [slog.Default].
	Logger *slog.Logger
	// Observer is called after each call of the handler, for metrics, by whichever reader made it; nil means nobody.
	Observer func(Turn)
}

const (
	defaultTop          = 100
	defaultGraceTime    = 30 * time.Second
	defaultPollInterval = time.Second
)

// Run receives until ctx ends. Then it lets running handlers finish, for GraceTime at most, and returns nil when they
// did. Failures while it runs are logged and tried again, never returned.
//
// Errors: a Consumer that lacks a field it needs, or handlers that did not finish in time; [ErrBrokerElsewhere] on a
// copy of a database; [ErrUpgradeNeeded] and [ErrReleaseTooOld].
func (c *Consumer) Run(ctx context.Context) error {
	execution, err := c.prepare()
	if err != nil {
		return err
	}
	return execution.run(ctx)
}

// consumerExecution is one execution of a consumer: its settings with the defaults filled in, and what its readers share.
type consumerExecution struct {
	Consumer
	// workOnce is one turn of a reader: one transaction, or several on one connection.
	workOnce func(ctx, work context.Context) (turn, error)
	wakeUps  *wakeUps
	cutOff   atomic.Int32 // handlers whose context ended with the time of grace
	disabled atomic.Bool  // the queue was found disabled
	singles  atomic.Int64 // so many messages are received alone, after a failure
	outage   outage
}

func (c *Consumer) prepare() (*consumerExecution, error) {
	if c.Handler == nil {
		return nil, errors.New("consumer: Handler is missing")
	}
	execution, err := newConsumerExecution(*c)
	if err == nil {
		execution.workOnce = func(ctx, work context.Context) (turn, error) {
			return execution.takeTurn(ctx, work, &reception{execution: execution})
		}
	}
	return execution, err
}

// newConsumerExecution checks the settings that consumers of dialogs and of simple queues have in common.
func newConsumerExecution(c Consumer) (*consumerExecution, error) {
	execution := &consumerExecution{Consumer: c}
	switch {
	case execution.Pool == nil:
		return nil, errors.New("consumer: Pool is missing")
	case execution.Queue == "":
		return nil, errors.New("consumer: Queue is missing")
	case min(execution.Top, execution.Groups, execution.Readers) < 0,
		min(execution.HandlerTimeout, execution.GraceTime, execution.PollInterval) < 0:
		return nil, errors.New("consumer: Top, Groups, Readers and times must not be negative")
	}
	execution.Top = orDefault(execution.Top, defaultTop)
	execution.Groups = orDefault(execution.Groups, 1)
	execution.Readers = orDefault(execution.Readers, 1)
	execution.GraceTime = orDefault(execution.GraceTime, defaultGraceTime)
	execution.PollInterval = orDefault(execution.PollInterval, defaultPollInterval)
	if execution.Logger == nil {
		execution.Logger = slog.Default()
	}
	execution.Logger = execution.Logger.With("queue", execution.Queue)
	execution.wakeUps = newWakeUps(execution)
	return execution, nil
}

// run is [Consumer.Run], whatever its readers do.
func (execution *consumerExecution) run(ctx context.Context) error {
	if err := execution.attach(ctx); err != nil {
		return err
	}
	// Handlers outlive ctx by the time of grace.
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()

	var listening, reading sync.WaitGroup
	listen, stopListening := context.WithCancel(ctx)
	listening.Go(func() { execution.wakeUps.listen(listen) })
	for number := range execution.Readers {
		reading.Go(func() { execution.read(ctx, work, number) })
	}
	finished := make(chan struct{})
	go func() {
		reading.Wait()
		close(finished)
	}()

	<-ctx.Done()
	grace := time.NewTimer(execution.GraceTime)
	defer grace.Stop()
	select {
	case <-finished:
	case <-grace.C:
		cancel()
		<-finished
	}
	stopListening()
	listening.Wait()
	if cut := execution.cutOff.Load(); cut > 0 {
		return fmt.Errorf("consumer of queue %s: %d handlers did not finish within %s and were rolled back",
			execution.Queue, cut, execution.GraceTime)
	}
	return nil
}

// attach refuses to work on a copy of a database before somebody has said that it may, and with a schema that does not
// fit. That the database cannot be reached just now is no reason: readers try again by themselves.
func (execution *consumerExecution) attach(ctx context.Context) error {
	broker, err := Attach(ctx, execution.Pool)
	switch {
	case errors.Is(err, ErrUpgradeNeeded) || errors.Is(err, ErrReleaseTooOld):
		return fmt.Errorf("consumer of queue %s: %w", execution.Queue, err)
	case err == nil && broker.State == BrokerElsewhere:
		return fmt.Errorf("consumer of queue %s: %w: %s", execution.Queue, ErrBrokerElsewhere, broker.Advice)
	}
	return nil
}

func orDefault[T int | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}
