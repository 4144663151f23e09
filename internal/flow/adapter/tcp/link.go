package tcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// link is a connection to a server. Several batches may be on it at once.
type link struct {
	settings sendSettings
	conn     net.Conn
	slots    chan struct{} // one for each request that is not answered
	broken   chan struct{} // closed when the connection is

	writing sync.Mutex
	out     *bufio.Writer
	header  []byte

	mu      sync.Mutex
	last    uint64 // number of the last request
	pending map[uint64]awaited
	err     error // why the connection is broken
}

// awaited is a request that is not answered.
type awaited struct {
	batch *batch
	n     int
}

// batch are the requests of one Send.
type batch struct {
	mu         sync.Mutex
	deliveries []adapter.Delivery
	left       int
	done       chan struct{} // closed when all are answered
	isOver     bool          // nobody waits any more
}

// errLost is a connection that ended before a message was acknowledged.
var errLost = errors.New("the connection was lost before the message was acknowledged; it may have been taken")

func newLink(conn net.Conn, settings sendSettings) *link {
	l := &link{
		settings: settings, conn: conn, slots: make(chan struct{}, settings.InFlight), broken: make(chan struct{}),
		out: bufio.NewWriterSize(conn, 64<<10), pending: map[uint64]awaited{},
	}
	go l.read()
	return l
}

func (l *link) isBroken() bool {
	select {
	case <-l.broken:
		return true
	default:
		return false
	}
}

// fail closes the connection. All that is not answered has failed.
func (l *link) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	l.err = err
	close(l.broken)
	_ = l.conn.Close()
	failure := &adapter.Failure{Code: "send.transport", Err: fmt.Errorf("%w: %w", errLost, err)}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		failure = &adapter.Failure{
			Code: "send.timeout", Err: fmt.Errorf("nothing was acknowledged within %s; the message may have been taken", l.settings.Timeout),
		}
	}
	for id, a := range l.pending {
		delete(l.pending, id)
		a.batch.deliver(a.n, adapter.Delivery{Err: failure})
	}
}

// read reads answers until the connection ends.
func (l *link) read() {
	in := bufio.NewReaderSize(l.conn, 64<<10)
	for {
		length, err := readLength(in, l.settings.PrefixBytes)
		if err == nil && (length > answerHeader+longestWhy || length < answerHeader || l.settings.Framing != framingLength) {
			err = errors.New("the server does not speak the protocol")
		}
		var bytes []byte
		if err == nil {
			bytes, err = readBytes(in, int(length))
		}
		var a answer
		if err == nil {
			a, err = parseAnswer(bytes)
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.take(a, in.Buffered() > 0)
	}
}

// take takes an answer. areMore: others are read already.
func (l *link) take(a answer, areMore bool) {
	l.mu.Lock()
	request, known := l.pending[a.id]
	delete(l.pending, a.id)
	if !areMore {
		l.expect()
	}
	l.mu.Unlock()
	if !known { // such as that there are too many connections, which is of no request
		if a.id == 0 && a.status >= notTaken {
			l.fail(fmt.Errorf("the server answers: %s", a.why))
		}
		return
	}
	<-l.slots
	request.batch.deliver(request.n, a.delivery())
}

// expect sets until when the next answer has to come. The caller holds the lock of what is pending.
func (l *link) expect() {
	until := time.Time{}
	if len(l.pending) > 0 {
		until = time.Now().Add(time.Duration(l.settings.Timeout))
	}
	_ = l.conn.SetReadDeadline(until)
}

// delivery gives what an answer means for a message.
func (a answer) delivery() adapter.Delivery {
	if a.status == notTaken {
		err := fmt.Errorf("the server could not take the message: %s", a.why)
		return adapter.Delivery{Err: &adapter.Failure{Code: "send.transport", Err: err}}
	}
	if a.status == refused {
		return adapter.Delivery{Err: refusal(fmt.Errorf("the server has refused the message: %s", a.why))}
	}
	names := map[status]string{published: "published", repeated: "repeated", suspended: "suspended"}
	detail, err := json.Marshal(map[string]any{"answer": names[a.status], "message": a.message})
	if err != nil { // texts and numbers can be encoded
		panic(err)
	}
	return adapter.Delivery{Detail: detail}
}

func (b *batch) deliver(n int, d adapter.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isOver {
		return
	}
	b.deliveries[n] = d
	b.left--
	if b.left == 0 {
		close(b.done)
	}
}

// send sends messages and waits for their answers, until ctx ends.
func (l *link) send(ctx context.Context, messages []outgoing, deliveries []adapter.Delivery) {
	b := &batch{deliveries: make([]adapter.Delivery, len(deliveries)), left: len(messages), done: make(chan struct{})}
	for n, o := range messages {
		if err := l.write(ctx, b, o); err != nil {
			for _, rest := range messages[n:] {
				b.deliver(rest.n, adapter.Delivery{Err: err})
			}
			break
		}
	}
	l.flush()
	select {
	case <-b.done:
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isOver = true
	for _, o := range messages {
		deliveries[o.n] = b.deliveries[o.n]
		if d := &deliveries[o.n]; d.Err == nil && d.Detail == nil {
			d.Err = fmt.Errorf("the message was not acknowledged, and may have been taken: %w", context.Cause(ctx))
		}
	}
}

// write writes a message, when it is one of the requests that may be open. One that was not written has an error.
func (l *link) write(ctx context.Context, b *batch, o outgoing) error {
	isAnswered := l.settings.Framing == framingLength
	if isAnswered {
		select {
		case l.slots <- struct{}{}:
		default:
			l.flush() // otherwise nothing would be answered
			select {
			case l.slots <- struct{}{}:
			case <-l.broken:
				return l.lost()
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.header = l.header[:0]
	switch l.settings.Framing {
	case framingLength:
		id, err := l.register(b, o.n)
		if err != nil {
			return err
		}
		l.header = appendRequest(l.header, l.settings.PrefixBytes, request{id: id, key: o.frame.key}, len(o.frame.body))
	case framingPlain:
		l.header = appendLength(l.header, l.settings.PrefixBytes, uint64(len(o.frame.body)))
	case framingLine:
		o.frame.body = append(o.frame.body, '\n')
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Duration(l.settings.Timeout)))
	_, err := l.out.Write(l.header)
	if err == nil {
		_, err = l.out.Write(o.frame.body)
	}
	if err == nil && !isAnswered {
		err = l.out.Flush()
	}
	if err != nil {
		l.fail(err)
	}
	if isAnswered {
		return nil // it fails with the connection
	}
	if err != nil {
		return l.lost()
	}
	b.deliver(o.n, adapter.Delivery{Detail: json.RawMessage(`{"answer": "none"}`)})
	return nil
}

// register gives a request its number.
func (l *link) register(b *batch, n int) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return 0, &adapter.Failure{Code: "send.transport", Err: fmt.Errorf("%w: %w", errLost, l.err)}
	}
	l.last++
	l.pending[l.last] = awaited{b, n}
	if len(l.pending) == 1 {
		l.expect()
	}
	return l.last, nil
}

func (l *link) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &adapter.Failure{Code: "send.transport", Err: fmt.Errorf("%w: %w", errLost, l.err)}
}

func (l *link) flush() {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.out.Buffered() == 0 {
		return
	}
	_ = l.conn.SetWriteDeadline(time.Now().Add(time.Duration(l.settings.Timeout)))
	if err := l.out.Flush(); err != nil {
		l.fail(err)
	}
}
