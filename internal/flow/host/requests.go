package host

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/backoff"
	flowstore "github.com/parley-broker/parley/internal/store/flow"
)

const (
	// earlyFor is how long an answer is kept that came before the request was known here.
	earlyFor = 10 * time.Second
	// answerInterval is how often answers are asked for while nothing notifies of them.
	answerInterval = 50 * time.Millisecond
	// endedAtOnce is how many requests one statement ends.
	endedAtOnce = 1000
)

// requests are those of a host for which clients wait on this node. A request costs nothing while it waits: its answer is notified.
type requests struct {
	host *Host
	wake *signal // sent when there may be answers to read
	over *signal // sent when requests are over

	mu       sync.Mutex
	waiting  map[int64][]chan *flowstore.Answer
	notified map[int64]bool // requests whose answers are to be read
	early    map[int64]earlyAnswer
	ended    []ending
	ending   int // how many are being recorded
	isDeaf   bool
}

// earlyAnswer is one that came before its request was known here.
type earlyAnswer struct {
	answer *flowstore.Answer
	at     time.Time
}

// ending is the outcome of a request.
type ending struct {
	request       int64
	outcome, text string
}

func newRequests(h *Host) *requests {
	return &requests{
		host: h, wake: newSignal(), over: newSignal(), waiting: map[int64][]chan *flowstore.Answer{}, notified: map[int64]bool{},
		early: map[int64]earlyAnswer{},
	}
}

// await has a client wait for the answer to a request.
func (rs *requests) await(request int64, isThere bool) <-chan *flowstore.Answer {
	answered := make(chan *flowstore.Answer, 1)
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if early, isEarly := rs.early[request]; isEarly {
		delete(rs.early, request)
		answered <- early.answer
		return answered
	}
	rs.waiting[request] = append(rs.waiting[request], answered)
	if isThere {
		rs.notified[request] = true
		rs.wake.send()
	} else if rs.isDeaf {
		rs.wake.send()
	}
	return answered
}

// leave ends the wait of a client that got no answer.
func (rs *requests) leave(request int64, answered <-chan *flowstore.Answer) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rest := slices.DeleteFunc(rs.waiting[request], func(c chan *flowstore.Answer) bool { return c == answered })
	if len(rest) > 0 {
		rs.waiting[request] = rest
		return
	}
	delete(rs.waiting, request)
	rs.endLocked(request, flowstore.RequestExpired, "")
}

// end records the outcome of a request behind the back of its client.
func (rs *requests) end(request int64, outcome, text string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.endLocked(request, outcome, text)
}

func (rs *requests) endLocked(request int64, outcome, text string) {
	rs.ended = append(rs.ended, ending{request, outcome, text})
	rs.over.send()
}

// notify takes that a request of one of the hosts of the node is answered.
func (rs *requests) notify(request int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.waiting[request] == nil && !rs.host.responds() {
		return
	}
	rs.notified[request] = true
	rs.wake.send()
}

// hear says whether answers are notified. Those that came while they were not are read now, and at intervals while they are not.
func (rs *requests) hear(isHeard bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.isDeaf = !isHeard
	for request := range rs.waiting {
		rs.notified[request] = true
	}
	rs.wake.send()
}

// responds reports whether a location of the host answers its clients.
func (h *Host) responds() bool {
	c := h.settings.Load()
	if c == nil {
		return false
	}
	for _, l := range c.Locations {
		if l.Responds {
			return true
		}
	}
	return false
}

// run reads answers, and records what is over, until ctx ends.
func (rs *requests) run(ctx context.Context) {
	var recording sync.WaitGroup
	defer recording.Wait()
	recording.Go(func() { rs.record(ctx) })
	failures := backoff.NewFailures(rs.host.logger, "answers cannot be read")
	for ctx.Err() == nil {
		due := rs.due()
		if len(due) > 0 {
			if err := rs.read(ctx, due); err != nil && ctx.Err() == nil {
				rs.again(due)
				_ = backoff.Wait(ctx, failures.Failed(err))
				continue
			}
			failures.Succeeded()
		}
		rs.wake.wait(ctx, rs.pause())
	}
}

// due gives the requests whose answers are to be read now.
func (rs *requests) due() []int64 {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.isDeaf {
		for request := range rs.waiting {
			rs.notified[request] = true
		}
	}
	due := slices.Sorted(maps.Keys(rs.notified))
	clear(rs.notified)
	for request, early := range rs.early {
		if time.Since(early.at) > earlyFor {
			delete(rs.early, request)
			rs.endLocked(request, flowstore.RequestExpired, "")
		}
	}
	return due
}

// again has answers read again that could not be read.
func (rs *requests) again(due []int64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for _, request := range due {
		rs.notified[request] = true
	}
}

// pause is how long nothing is to be done unless a notification comes.
func (rs *requests) pause() time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case rs.isDeaf && len(rs.waiting) > 0:
		return answerInterval
	case len(rs.early) > 0:
		return time.Second
	}
	return time.Minute
}

// read reads the answers of requests, and gives them to those that wait.
func (rs *requests) read(ctx context.Context, due []int64) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	answers, err := flowstore.Answers(ctx, rs.host.pool, rs.host.name, rs.host.server.config.Node, due)
	if err != nil {
		return err
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i := range answers {
		a := &answers[i]
		clients := rs.waiting[a.Request]
		if len(clients) == 0 {
			rs.early[a.Request] = earlyAnswer{a, time.Now()}
			continue
		}
		delete(rs.waiting, a.Request)
		for _, client := range clients {
			client <- a
		}
	}
	return nil
}

// record records what became of requests, many at a time, until ctx ends.
func (rs *requests) record(ctx context.Context) {
	failures := backoff.NewFailures(rs.host.logger, "the end of requests cannot be recorded")
	for ctx.Err() == nil {
		batch := rs.next()
		if len(batch) == 0 {
			rs.over.wait(ctx, time.Minute)
			continue
		}
		for ctx.Err() == nil {
			if err := rs.recordOnce(ctx, batch); err == nil || ctx.Err() != nil {
				failures.Succeeded()
				break
			} else if backoff.Wait(ctx, failures.Failed(err)) != nil {
				return
			}
		}
	}
}

func (rs *requests) recordOnce(ctx context.Context, batch []ending) error {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	numbers, outcomes, texts := make([]int64, len(batch)), make([]string, len(batch)), make([]string, len(batch))
	for i, one := range batch {
		numbers[i], outcomes[i], texts[i] = one.request, one.outcome, one.text
	}
	return flowstore.EndRequests(ctx, rs.host.pool, rs.host.name, rs.host.server.config.Node, numbers, outcomes, texts)
}

func (rs *requests) next() []ending {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	n := min(len(rs.ended), endedAtOnce)
	batch := rs.ended[:n:n]
	rs.ended, rs.ending = rs.ended[n:], n
	return batch
}

// flush returns when all is recorded that is over, or the time is.
func (rs *requests) flush(most time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	for rs.count() > 0 && backoff.Wait(ctx, 10*time.Millisecond) == nil {
	}
}

func (rs *requests) count() int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return len(rs.ended) + rs.ending
}
