package link

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// socket is a connection that counts its bytes, and that fails when nothing comes or nothing can be sent for too long. Pings see
// to it that something comes from a peer that lives.
type socket struct {
	net.Conn

	deadAfter     time.Duration
	opened        time.Time
	read, written atomic.Int64
	lastActivity  atomic.Int64 // nanoseconds since 1970
	// readUntil and writeUntil are the deadlines that others have set, in nanoseconds since 1970; 0 for none.
	readUntil, writeUntil atomic.Int64
	sentHello             atomic.Bool
	isDispatched          atomic.Bool // to an owner with timeouts of its own
	onClose               func(*socket)
	isClosed              atomic.Bool
	// onArrival is called once, when it is known who is there, or the socket is closed before.
	onArrival func()
	arrival   sync.Once
}

func newSocket(conn net.Conn, deadAfter time.Duration) *socket {
	s := &socket{Conn: conn, deadAfter: deadAfter, opened: time.Now()}
	s.lastActivity.Store(s.opened.UnixNano())
	return s
}

func (s *socket) Read(b []byte) (int, error) {
	if err := s.Conn.SetReadDeadline(s.deadline(&s.readUntil)); err != nil {
		return 0, err
	}
	n, err := s.Conn.Read(b)
	s.read.Add(int64(n))
	if n > 0 {
		s.lastActivity.Store(time.Now().UnixNano())
	}
	return n, err
}

func (s *socket) Write(b []byte) (int, error) {
	if err := s.Conn.SetWriteDeadline(s.deadline(&s.writeUntil)); err != nil {
		return 0, err
	}
	n, err := s.Conn.Write(b)
	s.written.Add(int64(n))
	return n, err
}

// deadline is when a read or write that begins now has failed.
func (s *socket) deadline(until *atomic.Int64) time.Time {
	var set time.Time
	if n := until.Load(); n != 0 {
		set = time.Unix(0, n)
	}
	if s.isDispatched.Load() {
		return set
	}
	dead := time.Now().Add(s.deadAfter)
	if set.IsZero() || dead.Before(set) {
		return dead
	}
	return set
}

// dispatch lets the socket be silent from now on, also for a read that has begun.
func (s *socket) dispatch() {
	s.isDispatched.Store(true)
	s.arrive()
	// An error shows with the next read.
	_ = s.Conn.SetReadDeadline(s.deadline(&s.readUntil))
	_ = s.Conn.SetWriteDeadline(s.deadline(&s.writeUntil))
}

func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

func (s *socket) SetReadDeadline(t time.Time) error {
	s.readUntil.Store(nanoseconds(t))
	return s.Conn.SetReadDeadline(s.deadline(&s.readUntil))
}

func (s *socket) SetWriteDeadline(t time.Time) error {
	s.writeUntil.Store(nanoseconds(t))
	return s.Conn.SetWriteDeadline(s.deadline(&s.writeUntil))
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// arrive ends the handshake: from now on the socket counts as a connection alone.
func (s *socket) arrive() {
	s.arrival.Do(func() {
		if s.onArrival != nil {
			s.onArrival()
		}
	})
}

func (s *socket) Close() error {
	s.arrive()
	if s.isClosed.CompareAndSwap(false, true) && s.onClose != nil {
		s.onClose(s)
	}
	return s.Conn.Close()
}
