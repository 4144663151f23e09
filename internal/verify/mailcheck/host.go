package mailcheck

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"
)

// Step is where in a transaction a host may fail.
type Step string

// The steps of a transaction. With LMTP, AtEnd comes for each recipient.
const (
	AtGreeting  Step = "greeting"
	AtSender    Step = "sender"
	AtRecipient Step = "recipient"
	AtData      Step = "data"
	AtEnd       Step = "end"
)

// Fault is the misbehaviour of a host.
type Fault string

// The faults. Drop closes the connection without a word; at the end of a message it has not taken the message, and DropTaken has. Hang
// does the same after a while, and Goodbye after the reply that it should give.
const (
	None      Fault = ""
	Defer     Fault = "defer"
	Refuse    Fault = "refuse"
	Leave     Fault = "leave with 421"
	Drop      Fault = "drop"
	DropTaken Fault = "drop what was taken"
	Hang      Fault = "hang"
	HangTaken Fault = "hang with what was taken"
	Goodbye   Fault = "goodbye"
)

// Host takes mail by SMTP or LMTP on loopback, and fails as it is asked to. Its fields are set before Serve.
type Host struct {
	// Name is that of its greeting, and names it in arrivals.
	Name string
	LMTP bool
	// Fault says how to fail at a step; nil means never. It is called by several goroutines.
	Fault func(step Step) Fault
	// Hang is how long it hangs; 0 means a second.
	Hang time.Duration
	// Bare hosts know no extension but their own name.
	Bare bool

	mu       sync.Mutex
	arrivals []*Arrival
	failed   map[Fault]int
	unread   []string
	open     map[net.Conn]struct{}
	listener net.Listener
	closed   chan struct{}
	running  sync.WaitGroup
}

// Serve takes connections of a listener until Close; it returns at once. After Close it may serve again.
func (h *Host) Serve(listener net.Listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.listener, h.closed = listener, make(chan struct{})
	if h.open == nil {
		h.open, h.failed = make(map[net.Conn]struct{}), make(map[Fault]int)
	}
	h.running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			h.mu.Lock()
			h.open[conn] = struct{}{}
			h.mu.Unlock()
			h.running.Go(func() {
				s := newSession(h, conn)
				s.run()
				_ = conn.Close()
				h.ended(conn, s)
			})
		}
	})
}

// Close stops it on the spot: connections are cut wherever they are.
func (h *Host) Close() error {
	h.mu.Lock()
	var err error
	if h.listener != nil {
		err = h.listener.Close()
		close(h.closed)
	}
	h.listener = nil
	for conn := range h.open {
		_ = conn.Close()
	}
	h.mu.Unlock()
	h.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("close host %s: %w", h.Name, err)
	}
	return nil
}

// fault draws how to fail at a step, and counts it.
func (h *Host) fault(step Step) Fault {
	if h.Fault == nil {
		return None
	}
	fault := h.Fault(step)
	if fault != None {
		h.mu.Lock()
		h.failed[fault]++
		h.mu.Unlock()
	}
	return fault
}

// hang waits for a while, or until the host is closed.
func (h *Host) hang() {
	h.mu.Lock()
	closed := h.closed
	h.mu.Unlock()
	wait := h.Hang
	if wait == 0 {
		wait = time.Second
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// take enters a message that was taken, for each of its recipients.
func (h *Host) take(message []byte, recipients []string, ending Ending) []*Arrival {
	key, hash, report, err := Read(message)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.unread = append(h.unread, fmt.Sprintf("%s: %v: %.200q", h.Name, err, message))
		return nil
	}
	taken := make([]*Arrival, 0, len(recipients))
	for _, recipient := range recipients {
		taken = append(taken, &Arrival{
			Key: key, Recipient: recipient, Hash: hash, Report: report, Place: h.Name, Ending: ending, At: time.Now(),
		})
	}
	h.arrivals = append(h.arrivals, taken...)
	return taken
}

// acknowledged enters that the peer has read the reply.
func (h *Host) acknowledged(taken []*Arrival) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range taken {
		if a.Ending == Unread {
			a.Ending = Acknowledged
		}
	}
}

func (h *Host) ended(conn net.Conn, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.open, conn)
	now := time.Now()
	for _, a := range s.taken {
		a.Ended = now
	}
}

// Arrivals are the letters that it has taken until now.
func (h *Host) Arrivals() []Arrival {
	h.mu.Lock()
	defer h.mu.Unlock()
	arrivals := make([]Arrival, len(h.arrivals))
	for i, a := range h.arrivals {
		arrivals[i] = *a
	}
	return arrivals
}

// Taken is how many letters and reports it has taken, once for each recipient.
func (h *Host) Taken() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.arrivals)
}

// Failed is how often it failed, by fault, and what it took and could not read.
func (h *Host) Failed() (faults map[Fault]int, unread []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.failed), append([]string(nil), h.unread...)
}

// answered enters that the reply has been sent.
func (h *Host) answered(taken []*Arrival) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range taken {
		a.Ending = Unread
	}
}
