package postgresql

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/flow/adapter"
)

// session has the settings of a transaction while statements of definitions run in it, as the role of the host where that is its database.
type session struct {
	asRole           func(ctx context.Context, tx pgx.Tx) (back func(ctx context.Context) error, err error)
	searchPath       string
	statementTimeout time.Duration
}

// pinned are the settings that a statement finds. The last of them say how values are written.
var pinned = []string{"search_path", "statement_timeout", "datestyle", "intervalstyle", "timezone", "bytea_output", "extra_float_digits"}

// asLogin works with the rights of the login.
func asLogin(context.Context, pgx.Tx) (func(context.Context) error, error) {
	return func(context.Context) error { return nil }, nil
}

// newSession makes a session for statements in a place.
func newSession(e adapter.Endpoint, at place, searchPath string, statementTimeout adapter.Duration) session {
	s := session{asRole: asLogin, searchPath: searchPath, statementTimeout: time.Duration(statementTimeout)}
	if at.isLocal {
		s.asRole = e.AsRole
	}
	return s
}

// enter gives a transaction role and settings of a statement; leave gives back those that it had.
func (s session) enter(ctx context.Context, tx pgx.Tx) (leave func(ctx context.Context) error, err error) {
	back, err := s.asRole(ctx, tx)
	if err != nil {
		return nil, err
	}
	values := []string{
		s.searchPath, strconv.FormatInt(s.statementTimeout.Milliseconds(), 10), "ISO, YMD", "iso_8601", "UTC", "hex", "1",
	}
	before := make([]string, len(pinned)+1)
	if err := setAll(ctx, tx, values, before); err != nil {
		return nil, fmt.Errorf("prepare the transaction for a statement: %w", err)
	}
	return func(ctx context.Context) error {
		found := make([]string, len(before))
		if err := setAll(ctx, tx, before[:len(pinned)], found); err != nil {
			return fmt.Errorf("give the transaction back its settings: %w", err)
		}
		// All is undone: other ports and hosts have this session next, and a role may be kept behind the commit.
		if was, is := before[len(pinned)], found[len(pinned)]; is != was {
			return fmt.Errorf("the statement has changed the role from %s to %s; give the role of the host the rights instead, "+
				"or call a function that is security definer", was, is)
		}
		return back(ctx)
	}, nil
}

// setAll sets the pinned settings to the end of the transaction, and writes what they were, and behind them the role.
func setAll(ctx context.Context, tx pgx.Tx, values, before []string) error {
	was, sets := make([]string, len(pinned)), make([]string, len(pinned))
	for i, name := range pinned {
		was[i] = fmt.Sprintf("pg_catalog.current_setting('%s') as s%d", name, i)
		sets[i] = fmt.Sprintf("was.s%d, pg_catalog.set_config('%s', $%d, true)", i, name, i+1)
	}
	statement := "with was as materialized (select " + strings.Join(was, ", ") + ") select " + strings.Join(sets, ", ") +
		", pg_catalog.format('%I of the session of %I', current_user, session_user) from was"
	parameters := make([][]byte, len(values))
	for i, value := range values {
		parameters[i] = []byte(value)
	}
	result := tx.Conn().PgConn().ExecParams(ctx, statement, parameters, nil, nil, nil).Read()
	if result.Err != nil {
		return result.Err
	}
	if len(result.Rows) != 1 || len(result.Rows[0]) != 2*len(pinned)+1 {
		return errors.New("the settings were not given back")
	}
	for i := range before {
		before[i] = string(result.Rows[0][2*i])
	}
	return nil
}

// broken says whether an error ends the connection, or its transaction, for everything: none that a savepoint helps against.
func broken(ctx context.Context, err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || refused.Severity == "FATAL" || refused.Severity == "PANIC" || ctx.Err() != nil
}
