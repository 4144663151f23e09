package activation

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// TakeCare removes what has expired, up to a number of a kind, and does what else parley.fire_timers does that is not urgent, without
// running functions of others. It gives the endpoints of which messages wait for a way; those that were put off are not among them.
func TakeCare(ctx context.Context, db pgdb.DB, top int) (delayed []int64, err error) {
	err = db.QueryRow(ctx, `
		select array(select * from parley._p_delayed_senders(only_queues => null))
		from parley._p_take_care(
			caller => parley._p_caller(parley.current_caller()), only_queues => null, top => $1::integer
		)`, top).Scan(&delayed)
	if err != nil {
		return nil, pgdb.StatementError(err, "take care")
	}
	return delayed, nil
}

// DeliverDelayed finds the way again of what waits for endpoints. The server ends it after a time, as [SendDue].
func DeliverDelayed(ctx context.Context, db Beginner, endpoints []int64, most time.Duration) error {
	err := bounded(ctx, db, most, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "select parley._p_deliver_delayed_of_each(endpoints => $1::bigint[])", endpoints)
		return err
	})
	if err != nil {
		return pgdb.StatementError(err, "deliver what is delayed")
	}
	return nil
}

// PutOffDelivery has what waits for an endpoint tried again after a time.
func PutOffDelivery(ctx context.Context, db pgdb.DB, endpoint int64, delay time.Duration) error {
	_, err := db.Exec(ctx, `
		select parley._p_put_off_delivery(endpoint_id => $1::bigint, delay => pg_catalog.make_interval(secs => $2::float8))`,
		endpoint, delay.Seconds())
	if err != nil {
		return pgdb.StatementError(err, fmt.Sprintf("put off what is delayed of endpoint %d", endpoint))
	}
	return nil
}
