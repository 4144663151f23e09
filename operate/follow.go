package operate

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/pgdb"
)

// PassingMessage is a message that waits in a queue, or is on its way through.
type PassingMessage struct {
	QueuingOrder        int64
	Priority            int16
	ConversationHandle  parley.UUID
	ConversationGroupID parley.UUID
	ServiceName         string
	FarService          string
	ServiceContractName string
	MessageTypeName     string
	MessageEnqueueTime  time.Time
	MessageBody         []byte
	MessageKey          *string // in a simple queue, whose messages have no conversation, service or type
}

// Follower watches the messages that pass through a queue, without taking them and without disturbing anybody. It sees
// what waits when it reads; a message that is received before that passes unseen.
//
// Messages come in the order in which they can be seen, which is nearly that of their positions: transactions that send
// side by side commit in any order. None comes twice.
type Follower struct {
	conn  *pgx.Conn
	queue string

	queueID     int32
	isListening bool

	// from is settled: nothing can appear before it any more. Messages that were seen from there on are in seen.
	from int64
	seen map[int64]struct{}
	// probe is a position that was reached while some senders were under way; when all of them are gone it is settled.
	probe queueEnd
}

type queueEnd struct {
	position int64
	senders  []string
}

const (
	// followPage is how many messages one statement reads at most.
	followPage = 500
	// unsettledMost is how many messages are remembered while a sender stays open. Its messages are not seen when more than these have
	// passed.
	unsettledMost = 5000
)

// Follow begins to watch a queue, over a connection of the follower's own, from one position on: of a message that was
// seen before, 0 for all that waits, or -1 for what comes from now on.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound] or [parley.PermissionDenied].
func Follow(ctx context.Context, conn *pgx.Conn, queue string, from int64) (*Follower, error) {
	f := &Follower{conn: conn, queue: queue, from: from, seen: map[int64]struct{}{}}
	end, err := f.end(ctx)
	if err != nil {
		return nil, err
	}
	f.probe = end
	if from < 0 {
		f.from = end.position
	}
	// Through a pooler nothing would come, and the session that listens would be another's next.
	if _, direct, err := pgdb.Backend(ctx, conn); err != nil {
		return nil, err
	} else if direct {
		if _, err := conn.Exec(ctx, "listen parley"); err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		f.isListening = true
	}
	return f, nil
}

// Next reads the queue and returns what was not seen yet: perhaps nothing, or, when much is new, a part of it.
func (f *Follower) Next(ctx context.Context) ([]PassingMessage, error) {
	end, err := f.end(ctx)
	if err != nil {
		return nil, err
	}
	// Decided before the read, so that the read sees everything up to there.
	settled := f.from
	if !slices.ContainsFunc(end.senders, func(sender string) bool { return slices.Contains(f.probe.senders, sender) }) {
		settled = max(settled, f.probe.position)
		f.probe = end
	}
	if len(end.senders) == 0 {
		settled = max(settled, end.position)
	}
	var fresh []PassingMessage
	for from := f.from; ; {
		page, err := f.readPage(ctx, from)
		if err != nil {
			return nil, err
		}
		for _, message := range page {
			if _, known := f.seen[message.QueuingOrder]; !known {
				f.seen[message.QueuingOrder] = struct{}{}
				fresh = append(fresh, message)
			}
		}
		if len(page) < followPage {
			break
		}
		from = page[len(page)-1].QueuingOrder + 1
		if len(fresh) >= followPage {
			settled = min(settled, from) // there may be more
			break
		}
	}
	f.forget(max(f.from, settled))
	return fresh, nil
}

// forget moves on to a position that is settled, or further when too much would have to be remembered.
func (f *Follower) forget(settled int64) {
	if len(f.seen) > unsettledMost {
		positions := make([]int64, 0, len(f.seen))
		for position := range f.seen {
			positions = append(positions, position)
		}
		slices.Sort(positions)
		settled = max(settled, positions[len(positions)-unsettledMost])
	}
	f.from = settled
	for position := range f.seen {
		if position < settled {
			delete(f.seen, position)
		}
	}
}

// Wait waits until there may be something new: for a time at most, or until a sender notifies. No sender is asked to; they
// notify while readers sleep.
func (f *Follower) Wait(ctx context.Context, atMost time.Duration) error {
	until, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for f.isListening {
		notification, err := f.conn.WaitForNotification(until)
		switch {
		case err != nil && until.Err() != nil:
			return ctx.Err()
		case err != nil:
			return fmt.Errorf("wait for a notification: %w", err)
		case notification != nil && notification.Payload == strconv.Itoa(int(f.queueID)):
			return nil
		}
	}
	<-until.Done()
	return ctx.Err()
}

func (f *Follower) end(ctx context.Context) (queueEnd, error) {
	var end queueEnd
	err := f.conn.QueryRow(ctx, "select e.service_queue_id, e.position, e.senders from parley.queue_end(queue => $1) as e", f.queue).
		Scan(&f.queueID, &end.position, &end.senders)
	if err != nil {
		return end, pgdb.StatementError(err, "find the end of queue "+f.queue)
	}
	return end, nil
}

func (f *Follower) readPage(ctx context.Context, from int64) ([]PassingMessage, error) {
	rows, err := f.conn.Query(ctx, `
		select m.queuing_order, m.priority, m.conversation_handle, m.conversation_group_id, coalesce(m.service_name, ''),
			coalesce(m.far_service, ''), coalesce(m.service_contract_name, ''), coalesce(m.message_type_name, ''),
			m.message_enqueue_time, m.message_body, m.message_key
		from parley.passing_messages(queue => $1, from_position => $2, top => $3) as m`, f.queue, from, followPage)
	if err == nil {
		var messages []PassingMessage
		if messages, err = pgx.CollectRows(rows, pgx.RowToStructByPos[PassingMessage]); err == nil {
			return messages, nil
		}
	}
	return nil, pgdb.StatementError(err, "read queue "+f.queue)
}
