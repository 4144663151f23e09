package parley

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A consumer with Groups receives from all of them in one statement, which is undone as a whole. So a savepoint stands before it. When a
// handler fails the transaction goes back to that: the database keeps what was received from other readers, until the transaction
// ends. Then the groups are locked again, and all but the one that has failed are received and handled one by one, each behind a savepoint
// of its own, and committed together. The locks are older than these savepoints, so going back to one gives back one group.
const (
	savepointOfAll = "parley_groups"
	savepointOfOne = "parley_group"
)

// errFailedUnnoticed is a statement of the handler that has failed, though the handler returned no error.
var errFailedUnnoticed = errors.New("a statement of the handler has failed, though it returned no error")

// source holds the arguments of a RECEIVE.
type source struct {
	statement string
	arguments []any
	isMany    bool // of many groups, behind a savepoint
}

// source is how much the next RECEIVE may take, when so many messages are about to count as handled.
func (execution *consumerExecution) source(pending int) (from source) {
	options := []ReceiveOption{Top(execution.Top), asReader()}
	switch {
	case execution.singles.Load() > int64(pending):
		options[0] = Top(1)
	case execution.Groups > 1:
		options = append(options, Groups(execution.Groups))
		from.isMany = true
	}
	from.statement, from.arguments = receiveStatement(execution.Queue, options)
	return from
}

// queue adds the RECEIVE to a batch.
func (from source) queue(batch *pgx.Batch) {
	if from.isMany {
		batch.Queue("savepoint " + savepointOfAll)
	}
	batch.Queue(from.statement, from.arguments...)
}

// collect reads what came of it.
func (from source) collect(results pgx.BatchResults, queue string) ([]Message, error) {
	if from.isMany {
		if _, err := results.Exec(); err != nil {
			return nil, fmt.Errorf("set a savepoint: %w", err)
		}
	}
	rows, err := results.Query()
	return collectReceived(rows, err, queue)
}

// byGroup parts messages by conversation group, in the order of their first messages.
func byGroup(messages []Message) (groups [][]Message) {
	places := map[UUID]int{}
	for _, message := range messages {
		place, ok := places[message.ConversationGroupID]
		if !ok {
			place = len(groups)
			places[message.ConversationGroupID] = place
			groups = append(groups, nil)
		}
		groups[place] = append(groups[place], message)
	}
	return groups
}

// hasFailed reports whether a transaction can only go back.
func hasFailed(conn *pgxpool.Conn) bool {
	return !conn.Conn().IsClosed() && conn.Conn().PgConn().TxStatus() == 'E'
}

// canGoBack reports whether the groups of a transaction in which a handler has failed can be handled one by one: there are several, and the
// handler has neither ended the transaction nor lost the connection, which a context that ends during a statement does.
func (execution *consumerExecution) canGoBack(ctx context.Context, conn *pgxpool.Conn, current *reception) bool {
	if !current.from.isMany || ctx.Err() != nil || conn.Conn().IsClosed() || conn.Conn().PgConn().TxStatus() == 'I' {
		return false
	}
	first := current.messages[0].ConversationGroupID
	for _, message := range current.messages {
		if message.ConversationGroupID != first {
			return true
		}
	}
	return false
}

// handleOneByOne goes back to before the RECEIVE, and receives and handles each group but the one that has failed by itself. The messages
// left in current were handled, and are to be committed; givenBack are the groups that have failed, the first included. With an error the
// whole transaction is to be rolled back.
func (execution *consumerExecution) handleOneByOne(
	ctx context.Context, conn *pgxpool.Conn, current *reception, failed *handlerError,
) (givenBack []*handlerError, err error) {
	sizes := map[UUID]int{}
	for _, message := range current.messages {
		sizes[message.ConversationGroupID]++
	}
	groups, err := execution.goBack(ctx, conn, len(sizes))
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	together := failed.messages
	failed.messages = sizes[failed.group]
	givenBack = append(givenBack, failed)
	current.messages = nil
	isSet := false
	for _, group := range groups {
		if group == failed.group {
			continue
		}
		messages, err := execution.receiveOne(ctx, conn, group, max(sizes[group], 1), isSet)
		isSet = true
		if err == nil && len(messages) > 0 {
			err = execution.handle(ctx, current.tx, messages)
			if err == nil && hasFailed(conn) {
				err = errFailedUnnoticed
			}
			if err != nil {
				err = newHandlerError(messages, together, err)
			}
		}
		if err == nil {
			current.messages = append(current.messages, messages...)
			continue
		}
		if _, undoErr := conn.Exec(ctx, "rollback to savepoint "+savepointOfOne); undoErr != nil {
			return givenBack, err
		}
		if one, ok := errors.AsType[*handlerError](err); ok {
			one.messages = len(messages)
			givenBack = append(givenBack, one)
		} else if !hasGone(err) {
			return givenBack, err
		}
	}
	return givenBack, nil
}

// goBack goes back to before the RECEIVE and locks up to so many groups: those that it had received, unless somebody else was quicker.
func (execution *consumerExecution) goBack(ctx context.Context, conn *pgxpool.Conn, groups int) ([]UUID, error) {
	// By itself: in a transaction that has failed nothing else could be prepared.
	if _, err := conn.Exec(ctx, "rollback to savepoint "+savepointOfAll); err != nil {
		return nil, fmt.Errorf("roll back to the savepoint: %w", err)
	}
	return GetConversationGroups(ctx, conn, execution.Queue, groups)
}

// receiveOne receives from a group that is locked, behind a savepoint, in one round trip. It releases the one before, if there is any.
func (execution *consumerExecution) receiveOne(
	ctx context.Context, conn *pgxpool.Conn, group UUID, top int, isSet bool,
) (messages []Message, err error) {
	statement, arguments := receiveStatement(execution.Queue, []ReceiveOption{Top(top), FromGroup(group)})
	batch := &pgx.Batch{}
	if isSet {
		batch.Queue("release savepoint " + savepointOfOne)
	}
	batch.Queue("savepoint " + savepointOfOne)
	batch.Queue(statement, arguments...)
	results := conn.SendBatch(ctx, batch)
	defer func() { err = closeResults(results, err) }()
	for range batch.Len() - 1 {
		if _, err := results.Exec(); err != nil {
			return nil, fmt.Errorf("set a savepoint: %w", err)
		}
	}
	rows, err := results.Query()
	return collectReceived(rows, err, execution.Queue)
}

// hasGone reports whether there is nothing to receive from a group any more: the handler of another one has ended its conversations or
// moved them.
func hasGone(err error) bool {
	number, _ := ErrorNumber(err)
	return number == ConversationNotFound || number == ConversationGroupNotFound
}
