package demo

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// stream holds the messages that one sender sends on one conversation. Its messages are numbered from 1.
type stream struct {
	conversation int
	handle       parley.UUID
	sequence     int
}

// sender is one session that sends, one message a transaction.
type sender struct {
	number  int
	conn    *pgx.Conn
	streams []*stream
	next    int
	bodies  *bodyWriter
	// sent counts what was sent, by others too.
	sent *atomic.Int64
	// took is how long each send of the phase took, from call to commit.
	took []time.Duration
}

// sendOne sends one message on the next of the sender's conversations. It returns when the send has committed.
func (s *sender) sendOne(ctx context.Context, payloadBytes int) error {
	to := s.streams[s.next]
	s.next = (s.next + 1) % len(s.streams)
	to.sequence++
	body := s.bodies.write(to.conversation, s.number, to.sequence, payloadBytes)
	begun := time.Now()
	_, err := s.conn.Exec(ctx, "call send_lab_test($1, $2, $3, $4, $5)", to.handle, to.conversation, s.number, to.sequence, body)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	s.took = append(s.took, time.Since(begun))
	s.sent.Add(1)
	return nil
}

// sendUntil sends until it is stopped.
func (s *sender) sendUntil(ctx context.Context, payloadBytes int, stopped *atomic.Bool) error {
	for !stopped.Load() {
		if err := s.sendOne(ctx, payloadBytes); err != nil {
			return err
		}
	}
	return nil
}

// warmUp sends one message on each conversation, so that all targets exist, as the paper advises.
func (s *sender) warmUp(ctx context.Context) error {
	for range s.streams {
		if err := s.sendOne(ctx, PayloadBytes[0]); err != nil {
			return err
		}
	}
	return nil
}

// deal shares the conversations out, numbered from first: each has one sender, or, when there are fewer than senders, several. The
// conversations that the senders had before are theirs no more.
func deal(handles []parley.UUID, first int, senders []*sender) {
	for _, s := range senders {
		s.streams, s.next = nil, 0
	}
	for i := range max(len(handles), len(senders)) {
		conversation := i % len(handles)
		s := senders[i%len(senders)]
		s.streams = append(s.streams, &stream{conversation: first + conversation, handle: handles[conversation]})
	}
}

// openDialogs begins the conversations with these numbers, with one statement, and returns their handles.
func openDialogs(ctx context.Context, conn *pgx.Conn, first, conversations int) ([]parley.UUID, error) {
	rows, err := conn.Query(ctx, `
		insert into dialogs (dialog_number, conversation_handle)
		select n, parley.begin_dialog(
			'//MySSB.com/Lab/S_Sender', '//MySSB.com/Lab/S_Test', contract => '//MySSB.com/Lab/C_Test', encryption => false
		)
		from generate_series($1::integer, $1::integer + $2::integer - 1) as n
		returning conversation_handle`, first, conversations)
	if err != nil {
		return nil, fmt.Errorf("begin the dialogs: %w", err)
	}
	handles, err := pgx.CollectRows(rows, pgx.RowTo[parley.UUID])
	if err != nil {
		return nil, fmt.Errorf("begin the dialogs: %w", err)
	}
	return handles, nil
}

// endDialogs ends the initiators' side of all conversations, each in a transaction of its own.
func endDialogs(ctx context.Context, conn *pgx.Conn, handles []parley.UUID) error {
	for _, handle := range handles {
		if err := parley.EndConversation(ctx, conn, handle); err != nil {
			return err
		}
	}
	return nil
}
