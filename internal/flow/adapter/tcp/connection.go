package tcp

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// connection is one of a client. Its requests are read while others wait to be stored, up to as many as a
// setting says.
type connection struct {
	settings receiveSettings
	budget   *budget
	conn     net.Conn
	client   string // the subject of its certificate; empty where it has shown none
	in       *bufio.Reader
	slots    chan struct{} // one for each request that is not answered
	broken   chan struct{} // closed when nothing can be answered any more
	once     sync.Once

	mu      sync.Mutex
	out     []byte // answers that are not written
	answers int    // how many they are
	wake    chan struct{}
}

// serve reads requests into a lane until the client is done, or ctx ends, and closes when all are answered.
func (r *receiver) serve(ctx, storing context.Context, in adapter.Intake, conn net.Conn, lane chan<- delivery) {
	defer func() { _ = conn.Close() }()
	plain := conn
	client := ""
	if r.settings.TLS {
		secured, err := r.secure(ctx, conn)
		if err != nil {
			r.endpoint.Logger.Warn("a connection could not be secured", slog.String("peer", conn.RemoteAddr().String()), slog.Any("error", err))
			return
		}
		conn = secured
		if shown := secured.ConnectionState().PeerCertificates; len(shown) > 0 {
			client = string(shown[0].RawSubject)
		}
	}
	c := &connection{
		settings: r.settings, budget: r.budget, conn: conn, client: client, in: bufio.NewReaderSize(conn, 64<<10),
		slots: make(chan struct{}, r.settings.InFlight), broken: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	// A read that waits ends with the location.
	defer context.AfterFunc(ctx, func() { _ = plain.SetReadDeadline(past) })()
	defer context.AfterFunc(storing, func() { _ = plain.Close() })()
	done := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() { c.write(done) })
	if err := c.read(ctx, in, lane); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
		r.endpoint.Logger.Info("a connection ends before its client has closed it", slog.String("peer", conn.RemoteAddr().String()),
			slog.Any("error", err))
	}
	for range r.settings.InFlight { // all are answered when all slots are free
		c.slots <- struct{}{}
	}
	close(done)
	writer.Wait()
	if conn != plain {
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
		_ = conn.Close() // says good-bye
	}
}

func (r *receiver) secure(ctx context.Context, conn net.Conn) (*tls.Conn, error) {
	config, err := r.config(ctx)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, time.Duration(r.settings.FrameTimeout))
	defer stop()
	secured := tls.Server(conn, config)
	return secured, secured.HandshakeContext(ctx)
}

// ledgerKey is the key of a request in the ledger: the same key of another client is another one.
func (c *connection) ledgerKey(key string) string {
	if c.client == "" || key == "" {
		return key
	}
	sum := sha256.Sum256([]byte(strconv.Itoa(len(c.client)) + ":" + c.client + key))
	return "client:" + hex.EncodeToString(sum[:])
}

// errMalformed is a frame behind which no other can be found.
var errMalformed = errors.New("the client does not speak the protocol")

// read reads requests into a lane.
func (c *connection) read(ctx context.Context, in adapter.Intake, lane chan<- delivery) error {
	for {
		if c.in.Buffered() == 0 && in.Throttled() {
			if err := in.Await(ctx); err != nil {
				return err
			}
		}
		select {
		case c.slots <- struct{}{}:
		case <-c.broken:
			return net.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
		d, refusal, err := c.next(ctx)
		switch {
		case refusal != nil:
			c.answer(*refusal, false)
		case err != nil:
			<-c.slots
		default:
			lane <- d
		}
		if err != nil {
			return err
		}
	}
}

// next reads a request, or what is answered to one that is refused.
func (c *connection) next(ctx context.Context) (d delivery, refusal *answer, err error) {
	d.from = c
	if c.settings.Framing == framingLine {
		d.body, err = c.nextLine(ctx)
		d.size = int64(len(d.body))
		return d, nil, err
	}
	length, err := c.nextLength(ctx)
	if err != nil {
		return d, nil, err
	}
	most := uint64(c.settings.MaxSize)
	if c.settings.Framing == framingLength {
		most += requestHeader + 2 + longestKey
	}
	if length > most {
		return c.tooLarge(ctx, d, length)
	}
	d.size = int64(length)
	if err := c.budget.take(ctx, d.size); err != nil {
		return d, nil, err
	}
	frame, err := c.nextBytes(ctx, int(length))
	if err == nil && c.settings.Framing == framingPlain {
		d.body = frame
		return d, nil, nil
	}
	if err == nil {
		if d.request, err = parseRequest(frame); err == nil && int64(len(d.body)) <= c.settings.MaxSize {
			return d, nil, nil
		}
		if err == nil {
			err = errTooLarge
		}
		refusal = &answer{status: refused, id: d.id, why: err.Error()}
		if len(frame) >= requestHeader { // the next frame can be found
			err = nil
		}
	}
	c.budget.giveBack(d.size)
	return d, refusal, err
}

// nextLength waits for a frame. A client that waits for answers is not idle.
func (c *connection) nextLength(ctx context.Context) (uint64, error) {
	for {
		if c.in.Buffered() < c.settings.PrefixBytes {
			c.readWithin(ctx, time.Duration(c.settings.IdleTimeout))
		}
		length, err := readLength(c.in, c.settings.PrefixBytes)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() && ctx.Err() == nil && len(c.slots) > 1 && c.in.Buffered() == 0 {
			continue
		}
		return length, err
	}
}

// slowest is how many bytes a client sends at least in a second.
const slowest = 100_000

func (c *connection) nextBytes(ctx context.Context, length int) ([]byte, error) {
	if c.in.Buffered() < length {
		c.readWithin(ctx, time.Duration(c.settings.FrameTimeout)+time.Duration(length)*time.Second/slowest)
	}
	return readBytes(c.in, length)
}

// readWithin bounds a read by a time, and by the end of ctx, which may have come before.
func (c *connection) readWithin(ctx context.Context, within time.Duration) {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
	if ctx.Err() != nil {
		_ = c.conn.SetReadDeadline(past)
	}
}

// past is a time that is over.
var past = time.Unix(1, 0)

func (c *connection) nextLine(ctx context.Context) ([]byte, error) {
	for {
		if c.in.Buffered() == 0 {
			c.readWithin(ctx, time.Duration(c.settings.IdleTimeout))
		}
		line, err := readLine(c.in, int(c.settings.MaxSize))
		if err != nil || len(line) == 0 && ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		if len(line) > 0 {
			return line, c.budget.take(ctx, int64(len(line)))
		}
	}
}

// skipped is up to which length a frame that is too long is read and thrown away; behind a longer one the connection is closed.
const skipped = 2 * largest

// tooLarge refuses a request that is too large, and skips it.
func (c *connection) tooLarge(ctx context.Context, d delivery, length uint64) (delivery, *answer, error) {
	if c.settings.Framing != framingLength {
		return d, nil, errTooLarge
	}
	header, err := c.nextBytes(ctx, requestHeader)
	if err != nil {
		return d, nil, err
	}
	if d.request, err = parseRequest(header); err != nil && header[0] != kindKeyedMessage {
		return d, nil, errMalformed
	}
	refusal := &answer{status: refused, id: d.id, why: errTooLarge.Error()}
	if length > skipped {
		return d, refusal, errTooLarge
	}
	for rest := int(length) - requestHeader; rest > 0; {
		part, err := c.nextBytes(ctx, min(rest, atOnce))
		if err != nil {
			return d, refusal, err
		}
		rest -= len(part)
	}
	return d, refusal, nil
}

// answer puts an answer to those that are written, and frees the slot of its request. isMore: another one follows at once.
func (c *connection) answer(a answer, isMore bool) {
	if c.settings.Framing != framingLength {
		<-c.slots
		return
	}
	c.mu.Lock()
	c.out = appendAnswer(c.out, c.settings.PrefixBytes, a)
	c.answers++
	c.mu.Unlock()
	if isMore {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes answers until all are written and done is closed.
func (c *connection) write(done <-chan struct{}) {
	var spare []byte
	for {
		select {
		case <-c.wake:
		case <-done:
			return
		}
		c.mu.Lock()
		bytes, answers := c.out, c.answers
		c.out, c.answers = spare[:0], 0
		c.mu.Unlock()
		if spare = bytes; cap(spare) > atOnce {
			spare = nil
		}
		select {
		case <-c.broken:
		default:
			_ = c.conn.SetWriteDeadline(time.Now().Add(time.Duration(c.settings.FrameTimeout)))
			if _, err := c.conn.Write(bytes); err != nil {
				c.once.Do(func() { close(c.broken) })
				_ = c.conn.Close()
			}
		}
		for range answers {
			<-c.slots
		}
	}
}
