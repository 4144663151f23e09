package parley

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

// The other readers go on, and the failure is recorded, when a handler cannot reach a database of its own.
func TestHandlerThatReachesNoOtherDatabaseIsNoOutage(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("connect: %w", &pgconn.ConnectError{})
	if !isOutage(away) {
		t.Error("a database that is away is no outage")
	}
	if isOutage(&handlerError{cause: away}) {
		t.Error("a handler that failed is taken for an outage")
	}
}
