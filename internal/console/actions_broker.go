package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/operate"
)

// operatorsError is the code of the error that the far side of a conversation receives when an operator ends this one.
const operatorsError = 1

// run does an action to the row of a key.
type run func(ctx context.Context, tx pgx.Tx, key []string, form url.Values) error

// errGone refuses what somebody else was quicker to do.
var errGone = refused{http.StatusConflict, "It is not there any more."}

// onConversation makes an action of a function on a conversation, whose handle is the key.
func onConversation(do func(context.Context, parley.DB, parley.UUID) error) run {
	return func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
		handle, err := handleOf(key[0])
		if err != nil {
			return err
		}
		return do(ctx, tx, handle)
	}
}

// onMessage makes an action of a function on a message of a simple queue: the key is the queue and its number.
func onMessage(do func(context.Context, parley.DB, string, int64) error) run {
	return func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
		number, err := numberOf(key[1])
		if err != nil {
			return err
		}
		return do(ctx, tx, key[0], number)
	}
}

// onDelayedSend makes an action of a function on a message of a conversation that is not due: the key is its handle and its number.
func onDelayedSend(do func(context.Context, parley.DB, parley.UUID, int64) error) run {
	return func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
		handle, err := handleOf(key[0])
		if err != nil {
			return err
		}
		number, err := numberOf(key[1])
		if err != nil {
			return err
		}
		return do(ctx, tx, handle, number)
	}
}

// setConversationAside keeps the error that was reported. A conversation that waits for its next attempt is received by nobody before.
func setConversationAside(ctx context.Context, db parley.DB, handle parley.UUID) error {
	failing, err := operate.ReadPoisonConversations(ctx, db, operate.PoisonFilter{Conversation: handle, Failing: true, Limit: 1})
	if err != nil {
		return err
	}
	if len(failing) == 0 {
		return errGone
	}
	done, err := parley.RetryConversation(ctx, db, handle, parley.Final(reported(failing[0].Error)))
	if err == nil && !done.IsSetAside {
		return refused{http.StatusConflict, "Somebody receives from it, or it waits for its next attempt: set it aside when that is due."}
	}
	return err
}

// setMessageAside keeps the error that was reported.
func setMessageAside(ctx context.Context, db parley.DB, queue string, number int64) error {
	var failure *string
	err := db.QueryRow(ctx, "select f.error from parley.failing_messages as f where f.queue_name = $1 and f.message_id = $2", queue, number).
		Scan(&failure)
	if err != nil {
		return err
	}
	done, err := parley.RetryMessage(ctx, db, queue, number, parley.Final(reported(failure)))
	if err == nil && !done.IsSetAside {
		return refused{http.StatusConflict, "Somebody has it in hand: set it aside when it has come back."}
	}
	return err
}

// reported is the error that was reported, or a word of the operator's where none was.
func reported(failure *string) error {
	if failure == nil {
		return errors.New("set aside by an operator")
	}
	return errors.New(*failure)
}

func cancelMessage(ctx context.Context, db parley.DB, queue string, number int64) error {
	return ifThere(parley.CancelMessage(ctx, db, queue, number, false))
}

func putBack(ctx context.Context, db parley.DB, handle parley.UUID) error {
	_, err := operate.RetryPoison(ctx, db, handle)
	return err
}

func discardPoisonMessage(ctx context.Context, db parley.DB, handle parley.UUID) error {
	_, err := operate.DiscardPoisonMessage(ctx, db, handle)
	return err
}

func discardPoisonConversation(ctx context.Context, tx pgx.Tx, key []string, form url.Values) error {
	handle, description, err := endOf(key[0], form)
	if err != nil {
		return err
	}
	_, err = operate.DiscardPoisonConversation(ctx, tx, handle, operatorsError, description)
	return err
}

func endWithError(ctx context.Context, tx pgx.Tx, key []string, form url.Values) error {
	handle, description, err := endOf(key[0], form)
	if err != nil {
		return err
	}
	return parley.EndConversationWithError(ctx, tx, handle, operatorsError, description)
}

func discardMessage(ctx context.Context, db parley.DB, queue string, number int64) error {
	_, err := operate.DiscardMessage(ctx, db, queue, number)
	return err
}

func withdrawMessage(ctx context.Context, db parley.DB, queue string, number int64) error {
	return ifThere(parley.WithdrawMessage(ctx, db, queue, number))
}

func deliverMessageNow(ctx context.Context, db parley.DB, queue string, number int64) error {
	due, err := now(ctx, db)
	if err != nil {
		return err
	}
	return ifThere(parley.RescheduleMessage(ctx, db, queue, number, due))
}

func withdrawSend(ctx context.Context, db parley.DB, handle parley.UUID, number int64) error {
	return ifThere(parley.WithdrawSend(ctx, db, handle, number))
}

func sendNow(ctx context.Context, db parley.DB, handle parley.UUID, number int64) error {
	due, err := now(ctx, db)
	if err != nil {
		return err
	}
	return ifThere(parley.RescheduleSend(ctx, db, handle, number, due))
}

func ifThere(wasThere bool, err error) error {
	if err == nil && !wasThere {
		return errGone
	}
	return err
}

// endOf gives the conversation of a key and the description of its end.
func endOf(key string, form url.Values) (handle parley.UUID, description string, err error) {
	if handle, err = handleOf(key); err != nil {
		return handle, "", err
	}
	if description = strings.TrimSpace(form.Get(errorDescription.Name)); description == "" {
		return handle, "", refused{http.StatusUnprocessableEntity, "Describe the error: the far side reads it."}
	}
	return handle, description, nil
}

func handleOf(text string) (parley.UUID, error) {
	handle, err := parley.ParseUUID(text)
	if err != nil {
		return handle, refused{http.StatusUnprocessableEntity, text + " is no handle."}
	}
	return handle, nil
}

func numberOf(text string) (int64, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, refused{http.StatusUnprocessableEntity, text + " is no number of a message."}
	}
	return number, nil
}

// now is the time by the clock of the database.
func now(ctx context.Context, db parley.DB) (at time.Time, err error) {
	err = db.QueryRow(ctx, "select clock_timestamp()").Scan(&at)
	return at, err
}
