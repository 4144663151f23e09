package demo

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// warehouse is the back end of the port Warehouse. It takes requests of the protocol of TCP, remembers each, and acknowledges it. It can go
// away: then its connections end at once, with whatever was under way on them.
type warehouse struct {
	mu       sync.Mutex
	arrivals []flowArrival
	err      error // of the first request that it could not read
	listener net.Listener
	open     map[net.Conn]bool
	serving  sync.WaitGroup
}

// The protocol of TCP: a length, a kind, a number, and with a key its length.
const (
	frameLengthBytes = 4
	frameMax         = 1 << 20
	requestBytes     = 1 + 8
	keyedRequest     = 2
	keyLengthBytes   = 2
	answerBytes      = 1 + 8 + 8
)

// serve lets it take connections at an address, and gives the address.
func (w *warehouse) serve(ctx context.Context, address string) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return "", fmt.Errorf("open the warehouse: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listener, w.open = listener, map[net.Conn]bool{}
	w.serving.Go(func() { w.accept(listener) })
	return listener.Addr().String(), nil
}

func (w *warehouse) accept(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		w.mu.Lock()
		isHere := w.listener == listener
		if isHere {
			w.open[conn] = true
		}
		w.mu.Unlock()
		if !isHere {
			_ = conn.Close()
			continue
		}
		w.serving.Go(func() {
			defer func() { _ = conn.Close() }()
			w.converse(conn)
		})
	}
}

// leave cuts all connections and takes no new ones.
func (w *warehouse) leave() {
	w.mu.Lock()
	if w.listener != nil {
		_ = w.listener.Close()
	}
	w.listener = nil
	for conn := range w.open {
		_ = conn.Close()
	}
	w.mu.Unlock()
	w.serving.Wait()
}

// converse answers the requests of a connection, one after the other.
func (w *warehouse) converse(conn net.Conn) {
	in := bufio.NewReader(conn)
	for {
		var length [frameLengthBytes]byte
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		size := binary.BigEndian.Uint32(length[:])
		if size < requestBytes || size > frameMax {
			w.fail(fmt.Errorf("a request of %d bytes came to the warehouse", size))
			return
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(in, frame); err != nil {
			return // cut off
		}
		if err := w.take(frame); err != nil {
			w.fail(err)
			return
		}
		answer := binary.BigEndian.AppendUint32(nil, answerBytes)
		answer = append(append(answer, 0), frame[1:requestBytes]...)
		if _, err := conn.Write(binary.BigEndian.AppendUint64(answer, 0)); err != nil {
			return
		}
	}
}

// take remembers a request.
func (w *warehouse) take(frame []byte) error {
	rest := frame[requestBytes:]
	if frame[0] != keyedRequest || len(rest) < keyLengthBytes {
		return fmt.Errorf("a request without a key came to the warehouse: kind %d", frame[0])
	}
	length := int(binary.BigEndian.Uint16(rest))
	if rest = rest[keyLengthBytes:]; len(rest) < length {
		return fmt.Errorf("a key of %d bytes ends behind its request", length)
	}
	text, err := readOrder(rest[length:])
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrivals = append(w.arrivals, flowArrival{orderText: text, key: string(rest[:length])})
	return nil
}

func (w *warehouse) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
}

// distinct counts the requests that were taken, each once however often it came.
func (w *warehouse) distinct() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := map[string]bool{}
	for _, a := range w.arrivals {
		keys[a.key] = true
	}
	return int64(len(keys))
}

// taken counts the requests that were taken.
func (w *warehouse) taken() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return int64(len(w.arrivals))
}
