package verb

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/schema"
)

// Attach opens one connection for a verb that works with the broker of the database, and warns when the broker is
// switched off, or may be a copy of another one. The caller closes it.
func (a *App) Attach(ctx context.Context) (*pgx.Conn, error) {
	conn, err := a.Connect(ctx)
	if err != nil {
		return nil, err
	}
	broker, err := parley.Attach(ctx, conn)
	if err == nil {
		err = schema.RequireBuild(broker)
	}
	if err != nil {
		CloseConnection(ctx, conn)
		return nil, err
	}
	if broker.State != parley.BrokerEnabled {
		fmt.Fprintf(a.Stderr, "parley: warning: %s\n", broker.Advice)
	}
	return conn, nil
}

// WithConnection runs work on one connection.
func (a *App) WithConnection(ctx context.Context, work func(conn *pgx.Conn) error) error {
	conn, err := a.Attach(ctx)
	if err != nil {
		return err
	}
	defer CloseConnection(ctx, conn)
	return work(conn)
}

// ShowAll shows all that is read: as JSON for programs, or as write does for people.
func ShowAll[T any](
	a *App, cmd *cobra.Command, read func(context.Context, parley.DB) ([]T, error), write func(io.Writer, []T) error,
) error {
	ctx := cmd.Context()
	return a.WithConnection(ctx, func(conn *pgx.Conn) error {
		found, err := read(ctx, conn)
		if err != nil {
			return err
		}
		if a.JSON {
			return EncodeJSON(cmd.OutOrStdout(), append([]T{}, found...))
		}
		return write(cmd.OutOrStdout(), found)
	})
}

// Change runs one statement and reports what it has done: as JSON for programs, or in a line of text on out for people.
func (a *App) Change(cmd *cobra.Command, done any, out io.Writer, text string, run func(context.Context, *pgx.Conn) error) error {
	ctx := cmd.Context()
	return a.WithConnection(ctx, func(conn *pgx.Conn) error {
		if err := run(ctx, conn); err != nil {
			return err
		}
		if a.JSON {
			return EncodeJSON(cmd.OutOrStdout(), done)
		}
		_, err := fmt.Fprintln(out, text)
		return err
	})
}
