package operate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/internal/backoff"
	"github.com/parley-broker/parley/internal/pgdb"
)

// RetriedPoison is a conversation that was put back; as JSON it is a stable format.
type RetriedPoison struct {
	ConversationHandle parley.UUID `json:"conversation_handle"`
	Messages           int64       `json:"messages"`
}

// RetryMatchingPoison puts conversations that are set aside and match a filter back into their queues, the oldest first, as many as
// filter.Limit (0 means all), in one transaction. Those that somebody holds are passed over.
//
// Errors: a [parley.Error] with number [parley.QueueNotFound] or [parley.PermissionDenied].
func RetryMatchingPoison(ctx context.Context, db parley.DB, filter PoisonFilter) ([]RetriedPoison, error) {
	if filter.Failing || !filter.Conversation.IsZero() {
		return nil, errors.New("retry poison: the filter names a conversation or those that only fail")
	}
	rows, err := db.Query(ctx, `
		select r.conversation_handle, r.messages
		from parley.retry_poison_matching(
			top => nullif($1, 0), queue => nullif($2, ''), service_name => nullif($3, ''), contract => nullif($4, ''),
			sqlstate => nullif($5, ''), error => nullif($6, ''), set_aside_before => $7
		) as r`, filter.Limit, filter.Queue, filter.ServiceName, filter.Contract, filter.SQLState, filter.ErrorText,
		moment(filter.SetAsideBefore))
	if err != nil {
		return nil, pgdb.StatementError(err, "retry conversations that are set aside")
	}
	retried, err := pgx.CollectRows(rows, pgx.RowToStructByPos[RetriedPoison])
	if err != nil {
		return nil, pgdb.StatementError(err, "retry conversations that are set aside")
	}
	return retried, nil
}

// retriesAtOnce is how many conversations one transaction puts back when no rate is given.
const retriesAtOnce = 100

// RetryPoisonAtRate does what [RetryMatchingPoison] does, so many conversations a second and in small transactions, until none is
// left that was set aside before it began: what fails again is not tried again. A rate of 0 means as fast as they can be put back;
// filter.Limit bounds how many in all. It calls report, unless that is nil, after each transaction, and returns how many
// conversations were put back until then also when it fails or ctx ends.
func RetryPoisonAtRate(
	ctx context.Context, db parley.DB, filter PoisonFilter, perSecond float64, report func([]RetriedPoison),
) (conversations int, err error) {
	if perSecond < 0 {
		return 0, fmt.Errorf("retry poison: a rate of %v a second", perSecond)
	}
	var began time.Time
	if err := db.QueryRow(ctx, "select clock_timestamp()").Scan(&began); err != nil {
		return 0, fmt.Errorf("retry poison: %w", err)
	}
	if filter.SetAsideBefore.IsZero() || filter.SetAsideBefore.After(began) {
		filter.SetAsideBefore = began
	}
	limit, atOnce := filter.Limit, retriesAtOnce
	if perSecond > 0 {
		atOnce = max(1, min(atOnce, int(perSecond/20)))
	}
	for start := time.Now(); limit == 0 || conversations < limit; {
		filter.Limit = atOnce
		if limit > 0 {
			filter.Limit = min(atOnce, limit-conversations)
		}
		retried, err := RetryMatchingPoison(ctx, db, filter)
		if err != nil {
			return conversations, err
		}
		conversations += len(retried)
		if report != nil && len(retried) > 0 {
			report(retried)
		}
		if len(retried) == 0 {
			break
		}
		if perSecond > 0 && conversations != limit {
			_ = backoff.Wait(ctx, time.Until(start.Add(time.Duration(float64(conversations)/perSecond*float64(time.Second)))))
		}
		if ctx.Err() != nil {
			return conversations, fmt.Errorf("retry poison: %w", ctx.Err())
		}
	}
	return conversations, nil
}

// moment is null for the zero time.
func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
