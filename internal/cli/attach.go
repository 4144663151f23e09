package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
)

// attach opens one connection for a verb that works with the broker of the database, and warns when the broker is
// switched off, or may be a copy of another one. The caller closes it.
func (a *app) attach(ctx context.Context) (*pgx.Conn, error) {
	conn, err := a.connect(ctx)
	if err != nil {
		return nil, err
	}
	broker, err := parley.Attach(ctx, conn)
	if err != nil {
		closeConnection(ctx, conn)
		return nil, err
	}
	if broker.State != parley.BrokerEnabled {
		fmt.Fprintf(a.stderr, "parley: warning: %s\n", broker.Advice)
	}
	return conn, nil
}
