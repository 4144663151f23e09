package pgdb

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrIsolation means that transactions of a session begin at REPEATABLE READ or SERIALIZABLE, and that a pooler keeps the session from
// being set otherwise.
var ErrIsolation = errors.New("transactions begin at a level that hides what others commit meanwhile")

// OwnSettings begins what sets the settings of a session of the command or of the daemon, with the values that their statements were
// written for. An administrator may have changed each of them for the role, the database or the server. Columns: name; value; fits, a
// regular expression of the values that serve too; is_tracked, whether a pooler in transaction mode keeps it for each client (PgBouncer
// does with what the server reports); is_wish, whether the person who connects may want another value in the connection string.
const ownSettings = `
	values
		-- What a statement sees, and whether a session goes on.
		('default_transaction_isolation', 'read committed', '^read (un)?committed$', false, false),
		('default_transaction_deferrable', 'off', '^off$', false, false),
		('row_security', 'on', '^on$', false, false),
		('exit_on_error', 'off', '^off$', false, false),
		('statement_timeout', '0', '^0$', false, true),
		('lock_timeout', '0', '^0$', false, true),
		('idle_in_transaction_session_timeout', '0', '^0$', false, true),
		('idle_session_timeout', '0', '^0$', false, true),
		('transaction_timeout', '0', '^0$', false, true),
		('restrict_nonsystem_relation_kind', '', '^$', false, false),
		-- How a statement is read.
		('search_path', 'pg_catalog, pg_temp', '^pg_catalog, pg_temp$', false, false),
		('client_encoding', 'UTF8', '^UTF8$', true, false),
		('standard_conforming_strings', 'on', '^on$', true, false),
		('backslash_quote', 'safe_encoding', '^safe_encoding$', false, false),
		('transform_null_equals', 'off', '^off$', false, false),
		('array_nulls', 'on', '^on$', false, false),
		('xmloption', 'content', '^content$', false, false),
		-- How a value is written. The order of day and month stays as it is.
		('DateStyle', 'ISO', '^ISO', true, false),
		('IntervalStyle', 'postgres', '^postgres$', false, false),
		('extra_float_digits', '1', '^[1-3]$', false, false),
		('bytea_output', 'hex', '^hex$', false, false),
		('xmlbinary', 'base64', '^base64$', false, false),
		('quote_all_identifiers', 'off', '^off$', false, false),
		-- A warning says when a commit has not waited for its standby.
		('client_min_messages', 'warning', '^(debug|log|info|notice|warning)', false, false)`

// PrepareSession sets what statements of the command and of the daemon rely on, whatever the role, the database or the server has set. It
// is for sessions that run nothing of anybody else's: a procedure keeps what its owner chose. Time-outs that the connection string itself
// sets stay. So does default_transaction_read_only: with it an administrator, or a managed server whose disk is full, stops all writing.
//
// Behind a pooler in transaction mode the session belongs to others too, so only what the pooler keeps for each client is set. The error is
// then [ErrIsolation] when transactions begin at another level than READ COMMITTED.
//
// Each name in the statement is spelled in full: it has to find no function and no operator in a schema that stands in the search path, in
// which others may create objects.
//
// A statement_timeout of the role or the database holds for the statement that lifts it, too: where a busy server cuts that off it is sent
// again, at most [preparations] times.
func PrepareSession(ctx context.Context, conn *pgx.Conn) error {
	return untilNotCutOff(ctx, func() error { return prepareSession(ctx, conn) })
}

// preparations is how often a session is prepared at most.
const preparations = 20

// untilNotCutOff does something again that the server has cut off.
func untilNotCutOff(ctx context.Context, do func() error) error {
	var err error
	for range preparations {
		if err = do(); SQLState(err) != "57014" || ctx.Err() != nil {
			return err
		}
	}
	return fmt.Errorf("%w, %d times: give the role of the session a statement_timeout that its first statement can keep", err, preparations)
}

func prepareSession(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `
		select w.name, pg_catalog.current_setting(w.name), d.is_direct,
			case when d.is_direct or w.is_tracked then pg_catalog.set_config(w.name, w.value, false) end
		from (`+ownSettings+`
		) as w (name, value, fits, is_tracked, is_wish)
		cross join (select pg_catalog.pg_backend_pid() operator(pg_catalog.=) $1::pg_catalog.int8 as is_direct) as d
		where pg_catalog.current_setting(w.name, true) operator(pg_catalog.!~) w.fits
			and not (w.is_wish and w.name operator(pg_catalog.=) any (pg_catalog.string_to_array($2::pg_catalog.text, ',')))`,
		pgx.QueryExecModeExec, int64(conn.PgConn().PID()), strings.Join(givenSettings(conn.Config()), ","))
	if err != nil {
		return fmt.Errorf("set what the session needs: %w", err)
	}
	var name, was string
	var isDirect, isOther bool
	var isNow *string
	_, err = pgx.ForEachRow(rows, []any{&name, &was, &isDirect, &isNow}, func() error {
		isOther = isOther || !isDirect && name == "default_transaction_isolation"
		return nil
	})
	if err != nil {
		return fmt.Errorf("set what the session needs: %w", err)
	}
	if isOther {
		return isolationError(ctx, conn)
	}
	return nil
}

// isolationError says how a session behind a pooler gets the level that it needs.
func isolationError(ctx context.Context, conn *pgx.Conn) error {
	var level, cure string
	err := conn.QueryRow(ctx, `
		select pg_catalog.current_setting('default_transaction_isolation'),
			pg_catalog.format('alter role %I in database %I set default_transaction_isolation = ''read committed''',
				session_user, pg_catalog.current_database())`, pgx.QueryExecModeExec).Scan(&level, &cure)
	if err != nil {
		return fmt.Errorf("ask for the isolation level: %w", err)
	}
	return fmt.Errorf("%w: default_transaction_isolation is %s, and behind a pooler a session cannot change it; "+
		"connect without the pooler, or as an administrator: %s, and have the pooler connect anew", ErrIsolation, level, cure)
}

// givenSettings names the settings that a connection string itself gives, in lower case.
func givenSettings(config *pgx.ConnConfig) []string {
	var given []string
	for name, value := range config.RuntimeParams {
		given = append(given, strings.ToLower(name))
		if name != "options" {
			continue
		}
		// "-c name=value", "-cname=value" and "--name=value".
		for word := range strings.FieldsSeq(value) {
			name, _, isSetting := strings.Cut(strings.TrimLeft(word, "-"), "=")
			if isSetting {
				name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
				given = append(given, name, strings.TrimPrefix(name, "c"))
			}
		}
	}
	return given
}
