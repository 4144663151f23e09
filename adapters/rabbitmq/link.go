package rabbitmq

import (
	"fmt"
	"sync"

	amqp "github.com/rabbitmq/amqp091-go"
)

// link is a channel for publishing, with the messages that the broker gives back because no queue takes them.
type link struct {
	conn    *amqp.Connection
	channel *amqp.Channel
	asked   chan question
	ended   chan struct{}

	mu  sync.Mutex
	err error
}

// question asks whether a message was given back.
type question struct {
	id     string
	answer chan string
}

func newLink(conn *amqp.Connection) (*link, error) {
	channel, err := conn.Channel()
	if err == nil {
		err = channel.Confirm(false)
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("open a channel for publishing: %w", err)
	}
	l := &link{conn: conn, channel: channel, asked: make(chan question), ended: make(chan struct{})}
	// The client gives a message that came back before its confirm, and waits until it was taken here: who has seen the confirm, and asks
	// then, finds it.
	go l.keep(channel.NotifyReturn(make(chan amqp.Return)), channel.NotifyClose(make(chan *amqp.Error, 1)))
	return l, nil
}

// keep keeps why messages came back, until it is asked.
func (l *link) keep(returns <-chan amqp.Return, closed <-chan *amqp.Error) {
	defer close(l.ended)
	returned := map[string]string{}
	for returns != nil || closed != nil {
		select {
		case r, isOpen := <-returns:
			if !isOpen {
				returns = nil
				continue
			}
			returned[r.MessageId] = r.ReplyText
		case q := <-l.asked:
			q.answer <- returned[q.id]
			delete(returned, q.id)
		case reason := <-closed:
			closed = nil
			if reason != nil {
				l.mu.Lock()
				l.err = reason
				l.mu.Unlock()
			}
		}
	}
}

// returnOf says why a message came back; empty where it did not.
func (l *link) returnOf(id string) string {
	q := question{id, make(chan string, 1)}
	select {
	case l.asked <- q:
		return <-q.answer
	case <-l.ended:
		return ""
	}
}

// reason says why the broker has closed the channel; nil where it did not.
func (l *link) reason() error {
	if l.channel.IsClosed() {
		<-l.ended
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *link) close() {
	_ = l.conn.Close()
}
