package link

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/parley-broker/parley/internal/broker/transport"
	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
	transportstore "github.com/parley-broker/parley/internal/store/transport"
)

// Link is the way to one address. It connects when something is to be delivered, and again when that is needed; it never tries
// again by itself. It is a transport.Deliverer, safe for concurrent use. The order in which concurrent calls are sent is not defined.
type Link struct {
	hosts  []string
	config Config
	stop   context.CancelFunc
	begin  func(f func(context.Context)) // in a goroutine that Close waits for

	mu        sync.Mutex
	current   *session
	attempt   *attempt
	live      []*session
	preferred int // index of the host that is tried first
	isClosed  bool
	past      Totals // of connections that are over
	running   sync.WaitGroup
}

// attempt is a dialling that some wait for.
type attempt struct {
	done    chan struct{}
	session *session
	err     error
}

// errClosed is the error of a Link after Close.
var errClosed = errors.New("the link is closed")

// New makes the link to an address: tcp://host:port, with the mirror's behind a comma. It does not connect yet.
func New(address string, config Config) (*Link, error) {
	hosts, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	config, err = config.completed()
	if err != nil {
		return nil, err
	}
	l := &Link{hosts: hosts, config: config}
	ctx, stop := context.WithCancel(context.Background())
	l.stop = stop
	l.begin = func(f func(context.Context)) {
		l.running.Go(func() { f(ctx) })
	}
	return l, nil
}

// Close ends the connection. Calls under way return an error.
func (l *Link) Close() {
	l.mu.Lock()
	l.isClosed = true
	for _, s := range l.live {
		s.fail(errClosed)
	}
	l.mu.Unlock()
	l.stop()
	l.running.Wait()
}

// Connections lists the connections there are: one, or more while one ends.
func (l *Link) Connections() []ConnectionState {
	l.mu.Lock()
	live := slices.Clone(l.live)
	isConnecting := l.attempt != nil
	l.mu.Unlock()
	states := make([]ConnectionState, 0, len(live)+1)
	for _, s := range live {
		states = append(states, s.state())
	}
	if isConnecting {
		states = append(states, ConnectionState{Address: l.hosts[0], State: Connecting})
	}
	return states
}

// Totals count what all connections have carried so far.
func (l *Link) Totals() Totals {
	l.mu.Lock()
	defer l.mu.Unlock()
	totals := l.past
	for _, s := range l.live {
		totals.add(s.traffic.totals(s.socket))
	}
	return totals
}

// Disconnect ends the connections that match: those of a peer whose key was revoked, say.
func (l *Link) Disconnect(matches func(ConnectionState) bool) {
	l.mu.Lock()
	live := slices.Clone(l.live)
	l.mu.Unlock()
	for _, s := range live {
		if matches(s.state()) {
			s.fail(transport.Fail(transport.FailureToAuthenticate, "disconnected from %s", s.host))
		}
	}
}

// Deliver implements transport.Deliverer. A batch that is too long for one frame goes in several.
func (l *Link) Deliver(ctx context.Context, batch transport.Batch) ([]transportstore.Result, error) {
	if len(batch.Runs) == 0 {
		return nil, nil
	}
	s, err := l.use(ctx)
	if err != nil {
		return nil, err
	}
	defer s.end()
	parts, err := split(batch.Runs, s.largest)
	if err != nil {
		return nil, err
	}
	questions := make([]*question, len(parts))
	for i, runs := range parts {
		part := batch
		part.Runs = runs
		payload, err := wire.EncodeBatch(part)
		if err != nil {
			return nil, transport.Fail(transport.FailureToTransmit, "%w", err)
		}
		questions[i] = newQuestion(forBatches, pb.Kind_KIND_BATCH, payload, messages(runs), s.compress)
		if err := s.post(ctx, questions[i]); err != nil {
			return nil, err
		}
	}
	results := make([]transportstore.Result, 0, len(batch.Runs))
	for i, q := range questions {
		frame, err := s.answer(ctx, q)
		if err != nil {
			return nil, err
		}
		payload, err := s.unpack(frame, pb.Kind_KIND_RESULTS)
		if err != nil {
			return nil, err
		}
		some, err := wire.DecodeResults(payload, len(parts[i]))
		if err != nil {
			return nil, transport.Fail(transport.FailureOfProtocol, "%s: %w", s.host, err)
		}
		reportAcks(ctx, l.config.Log, transport.AckReceived, s.host, parts[i], some)
		results = append(results, some...)
	}
	l.consider(s, results)
	return results, nil
}

// DeliverFragment implements transport.Deliverer.
func (l *Link) DeliverFragment(ctx context.Context, fragment transportstore.Fragment, passage transport.Passage) (int64, error) {
	s, err := l.use(ctx)
	if err != nil {
		return 0, err
	}
	defer s.end()
	payload, err := wire.EncodeFragment(fragment, passage)
	if err != nil {
		return 0, transport.Fail(transport.FailureToTransmit, "%w", err)
	}
	q := newQuestion(forFragments, pb.Kind_KIND_FRAGMENT, payload, 1, s.compress)
	if err := s.post(ctx, q); err != nil {
		return 0, err
	}
	frame, err := s.answer(ctx, q)
	if err != nil {
		return 0, err
	}
	if payload, err = s.unpack(frame, pb.Kind_KIND_STORED); err != nil {
		return 0, err
	}
	stored, err := wire.DecodeStored(payload, fragment.Size)
	if err != nil {
		return 0, transport.Fail(transport.FailureOfProtocol, "%s: %w", s.host, err)
	}
	return stored, nil
}

// unpack returns the payload of the answer that is wanted; another is an error.
func (s *session) unpack(frame *pb.Frame, wanted pb.Kind) ([]byte, error) {
	payload, err := wire.Unpack(frame, wire.LargestAnswer)
	switch {
	case err != nil:
		return nil, transport.Fail(transport.FailureOfProtocol, "%s: %w", s.host, err)
	case frame.GetKind() == wanted:
		return payload, nil
	case frame.GetKind() != pb.Kind_KIND_FAILURE:
		return nil, transport.Fail(transport.FailureOfProtocol, "%s answers %s in place of %s", s.host, frame.GetKind(), wanted)
	}
	notice, err := wire.DecodeFailure(payload)
	if err != nil {
		return nil, transport.Fail(transport.FailureOfProtocol, "%s: %w", s.host, err)
	}
	return nil, transport.Fail(notice.Number, "%s: %s", s.host, notice.Text)
}

// split parts runs into what fits a frame, in their order.
func split(runs []transportstore.Run, largest int64) ([][]transportstore.Run, error) {
	var parts [][]transportstore.Run
	begin, length, count := 0, int64(0), 0
	for i := range runs {
		n := wire.RunLength(&runs[i])
		if n > largest {
			return nil, transport.Fail(transport.FailureToTransmit, "a run of %d bytes does not fit the %d of a frame", n, largest)
		}
		if i > begin && (length+n > largest || i-begin == wire.MaxRuns || count+len(runs[i].Bodies) > wire.MaxMessages) {
			parts = append(parts, runs[begin:i])
			begin, length, count = i, 0, 0
		}
		length += n
		count += len(runs[i].Bodies)
	}
	return append(parts, runs[begin:]), nil
}

func messages(runs []transportstore.Run) (n int) {
	for i := range runs {
		n += max(len(runs[i].Bodies), 1)
	}
	return n
}
