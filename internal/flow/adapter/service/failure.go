package service

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/flow/adapter"
	"github.com/parley-broker/parley/internal/pgdb"
)

// The errors of a port whose definition its host cannot work with, of which the database has raised none.
var (
	errNotOwned = errors.New("the service is not the host's")
	errNotSeen  = errors.New("not there, or not seen")
)

// judge says what follows an error of the broker.
func judge(err error) error {
	if _, ok := errors.AsType[*adapter.Failure](err); ok {
		return err
	}
	if number, ok := parley.ErrorNumber(err); ok {
		if number == parley.MessageTooLarge {
			return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
		}
		// A conversation that was ended meanwhile concerns its messages; what else the broker refuses would be refused to all of them.
		isOfOne := slices.Contains([]int{parley.ConversationNotFound, parley.SendNotAllowed}, number)
		return &adapter.Failure{Code: "send.transport", Err: err, Unreachable: !isOfOne}
	}
	if errors.Is(err, errNotOwned) || errors.Is(err, errNotSeen) {
		return &adapter.Failure{Code: "send.transport", Err: err, Unreachable: true}
	}
	switch state := pgdb.SQLState(err); {
	case state == "":
		return &adapter.Failure{Code: "send.unreachable", Err: err, Unreachable: !errors.Is(err, context.Canceled)}
	case state[:2] == "22" || state[:2] == "23":
		return &adapter.Failure{Code: "send.refused", Err: err, Permanent: true}
	case state[:2] == "40" || state[:2] == "55":
		return &adapter.Failure{Code: "send.transport", Err: err}
	}
	return &adapter.Failure{Code: "send.transport", Err: err, Unreachable: true}
}

// broken says whether an error ends the connection, or its transaction, for everything: none that a savepoint helps against.
func broken(ctx context.Context, err error) bool {
	if _, isOfMessage := errors.AsType[*adapter.Failure](err); isOfMessage || errors.Is(err, errNotOwned) || errors.Is(err, errNotSeen) {
		return ctx.Err() != nil
	}
	said, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || said.Severity == "FATAL" || said.Severity == "PANIC" || ctx.Err() != nil
}
