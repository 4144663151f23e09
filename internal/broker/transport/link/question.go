package link

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/parley-broker/parley/internal/broker/transport/wire"
	"github.com/parley-broker/parley/internal/broker/transport/wire/pb"
)

// question is a batch or a fragment on its way.
type question struct {
	class class
	frame *pb.Frame
	// cost is its size in the window, messages the number that it carries.
	cost, messages int64
	// sent is when the stream took it.
	sent time.Time
	// answered has the frame that answers it.
	answered chan *pb.Frame
	// abandoned reports that nobody waits any more. A question that was not sent then need not be.
	abandoned atomic.Bool
}

func newQuestion(c class, kind pb.Kind, payload []byte, messages int, compress bool) *question {
	return &question{
		class:    c,
		frame:    wire.Pack(kind, 0, payload, compress),
		cost:     costOf(int64(len(payload))),
		messages: int64(messages),
		answered: make(chan *pb.Frame, 1),
	}
}

// costOf is the size of a payload in the window; both ends count alike.
func costOf(payload int64) int64 { return payload + wire.FrameOverhead }

// outbox holds the questions that have room in the window until the stream takes them. The classes take turns, so that each waits behind at
// most one frame of the other.
type outbox struct {
	mu    sync.Mutex
	lines [classes][]*question
	turn  class
	wake  chan struct{}
}

func newOutbox() *outbox { return &outbox{wake: make(chan struct{}, 1)} }

func (o *outbox) put(q *question) {
	o.mu.Lock()
	o.lines[q.class] = append(o.lines[q.class], q)
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// take returns the next question, or nil when there is none.
func (o *outbox) take() *question {
	o.mu.Lock()
	defer o.mu.Unlock()
	for range classes {
		c := o.turn
		o.turn = (o.turn + 1) % classes
		if len(o.lines[c]) > 0 {
			q := o.lines[c][0]
			o.lines[c] = o.lines[c][1:]
			return q
		}
	}
	return nil
}
