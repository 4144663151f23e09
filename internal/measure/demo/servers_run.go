package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
)

// serversPatience is how long nothing may move before the rest is given up: a link that was cut is tried again after up to 64
// seconds.
const serversPatience = 90 * time.Second

// serversExecution is an execution on several servers under way.
type serversExecution struct {
	stage
	*network
	config ServersConfig
	watch  *flowWatch
	cut    Cut
	phase  flowPhase
}

// RunServers plays the workload on servers of its own, made for it, and checks it. A run that found something wrong is a result
// that has not Passed, and no error.
func RunServers(ctx context.Context, config ServersConfig) (result ServersResult, err error) {
	if err := config.Validate(); err != nil {
		return ServersResult{}, err
	}
	r := &serversExecution{config: config}
	r.patience = serversPatience
	if config.FlowObserver != nil {
		r.observer = config.FlowObserver
	}
	startedAt := time.Now()
	r.network, err = buildNetwork(ctx, config, r.notice)
	defer func() { err = errors.Join(err, r.stop(ctx)) }()
	if err != nil {
		return ServersResult{}, err
	}
	r.control, r.sent = r.target.control, r.sentByAll
	if err := r.prepare(ctx); err != nil {
		return ServersResult{}, err
	}
	return r.play(ctx, startedAt)
}

// prepare begins the conversations and opens the sessions of the senders.
func (r *serversExecution) prepare(ctx context.Context) error {
	first := 0
	for number, i := range r.initiators {
		i.first, i.conversations = first, share(r.config.Conversations, number, len(r.initiators))
		first += i.conversations
		for range share(r.config.Senders, number, len(r.initiators)) {
			conn, err := i.connect(ctx)
			if err != nil {
				return err
			}
			name := len(i.senders)*len(r.initiators) + number
			i.senders = append(i.senders, &sender{number: name, conn: conn, bodies: newBodyWriter(name), sent: &i.sent})
		}
	}
	err := each(ctx, r.initiators, func(ctx context.Context, i *initiator) error { return i.openDialogs(ctx) })
	if err != nil {
		return err
	}
	r.watch = &flowWatch{target: r.target.watching, initiators: r.initiators}
	if r.start, err = r.now(ctx); err != nil {
		return err
	}
	r.watch.start = r.start
	r.notice(fmt.Sprintf("%d senders and %d conversations are ready. Messages start their readers at the target, %d at most.",
		r.config.Senders, r.config.Conversations, r.config.Readers))
	return nil
}

// play runs the workload beside those that watch it.
func (r *serversExecution) play(ctx context.Context, startedAt time.Time) (ServersResult, error) {
	background, ctx := newCrew(ctx)
	defer background.fail(nil)
	r.guard(ctx, background.fail)
	var phases []Phase
	err := watched(ctx, background, func(stop <-chan struct{}) error { return r.watch.run(ctx, stop, r.show) }, func() (err error) {
		phases, err = r.workload(ctx)
		return err
	})
	if err != nil {
		return ServersResult{}, err
	}
	return r.conclude(ctx, startedAt, phases)
}

// workload sends on every conversation once, then plays each phase, and ends all conversations.
func (r *serversExecution) workload(ctx context.Context) ([]Phase, error) {
	if err := r.warmUp(ctx, r.senders()); err != nil {
		return nil, err
	}
	var phases []Phase
	for _, p := range r.config.plan() {
		if p.spread {
			for _, i := range r.initiators {
				deal(i.spread, r.config.Conversations+i.first, i.senders)
			}
			if err := r.warmUp(ctx, r.senders()); err != nil {
				return nil, err
			}
		}
		phase, err := r.playPhase(ctx, p)
		if err != nil {
			return nil, err
		}
		phases = append(phases, phase)
	}
	return phases, r.endDialogs(ctx)
}

func (r *serversExecution) senders() (all []*sender) {
	for _, i := range r.initiators {
		all = append(all, i.senders...)
	}
	return all
}

func (r *serversExecution) sentByAll() (sum int64) {
	for _, i := range r.initiators {
		sum += i.sent.Load()
	}
	return sum
}

// conclude checks and puts the result together.
func (r *serversExecution) conclude(ctx context.Context, startedAt time.Time, phases []Phase) (ServersResult, error) {
	r.notice("Checking every message.")
	result := ServersResult{
		Phases: phases, Cut: r.cut, StartedAt: startedAt, samples: r.watch.since(0),
		Settings: ServersSettings{Servers: r.config.Servers, Settings: Settings{
			Senders: r.config.Senders, Readers: r.config.Readers, Conversations: r.config.Conversations,
			DurationSeconds: r.config.Duration.Seconds(),
		}},
	}
	for _, i := range r.initiators {
		result.Links = append(result.Links, Link{Initiator: i.name, MessagesSent: i.sent.Load(), CarriedBytes: i.link.carriedBytes()})
	}
	if err := r.gatherLedgers(ctx); err != nil {
		return ServersResult{}, err
	}
	end, err := r.stage.conclude(ctx)
	if err != nil {
		return ServersResult{}, err
	}
	result.Findings, result.Seconds, result.Machine, result.Server = end.Findings, end.seconds, end.machine, end.server
	if result.LeftBehind, err = r.findLeftovers(ctx); err != nil {
		return ServersResult{}, err
	}
	result.MessagesPerSecond = perSecond(result.MessagesReceived, result.Seconds)
	result.Passed = result.Clean() && result.LeftBehind.None() && result.Cut.ConnectionsBroken > 0
	return result, nil
}

// gatherLedgers brings the ledgers of the initiators to the target, where what arrived is held against them.
func (r *serversExecution) gatherLedgers(ctx context.Context) error {
	to := r.target.control
	if _, err := to.Exec(ctx, ledgerTable, pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("make room for the ledgers: %w", err)
	}
	for _, i := range r.initiators {
		reader, writer := io.Pipe()
		copying := make(chan error, 1)
		go func() {
			_, err := i.control.PgConn().CopyTo(ctx, writer, "copy sent_ledger (conversation, sender, sequence, body_bytes) to stdout")
			copying <- errors.Join(err, writer.CloseWithError(err))
		}()
		_, err := to.PgConn().CopyFrom(ctx, reader, "copy sent_ledger (conversation, sender, sequence, body_bytes) from stdin")
		_ = reader.CloseWithError(err)
		if err := errors.Join(err, <-copying); err != nil {
			return fmt.Errorf("bring the ledger of %s to the target: %w", i.name, err)
		}
	}
	return nil
}

func (r *serversExecution) findLeftovers(ctx context.Context) (Leftovers, error) {
	left, err := findLeftovers(ctx, r.target.control, targetQueue)
	for _, i := range r.initiators {
		if err == nil {
			var more Leftovers
			more, err = findLeftovers(ctx, i.control, initiatorQueue)
			left = left.add(more)
		}
	}
	return left, err
}

// show reports the state of the demo after these latest samples to the observer.
func (r *serversExecution) show(latest []FlowSample) {
	r.observing.Lock()
	defer r.observing.Unlock()
	if r.config.FlowObserver == nil {
		return
	}
	first, last := latest[0], latest[len(latest)-1]
	seconds := last.Seconds - first.Seconds
	f := Flow{
		Phase: r.phase.label(), Elapsed: time.Duration(last.Seconds * float64(time.Second)), Duration: r.config.Duration,
		Sent: last.sent(), Received: last.Received, ReceivedPerSecond: perSecond(last.Received-first.Received, seconds),
	}
	for number, i := range r.initiators {
		f.Initiators = append(f.Initiators, InitiatorFlow{
			Name: i.name, SentPerSecond: perSecond(last.Sent[number]-first.Sent[number], seconds),
			Waiting: last.Waiting[number], Link: i.link.state(),
		})
	}
	r.config.FlowObserver.Progress(f)
}
