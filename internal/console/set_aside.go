package console

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
)

// setAsideMost is up to how many messages that are set aside are counted, and up to how many conversations of a queue; a page shows that
// many as at least that many.
const setAsideMost = 10_000

// setAsideCounts are how many messages of each simple queue are set aside, as far as the role of the session may see them; byQueue is nil
// where nobody knows.
type setAsideCounts struct {
	at      time.Time
	byQueue map[string]int64
	// isMore says that there are more than were counted: in any queue.
	isMore bool
}

// setAsideCount is how many conversations or messages are set aside, as far as they are counted.
type setAsideCount struct {
	N int64
	// IsMore says that there may be more than N, and IsUnknown that it took too long to count them.
	IsMore, IsUnknown bool
}

// IsAny reports whether there may be something to look at.
func (c setAsideCount) IsAny() bool { return c.N > 0 || c.IsMore || c.IsUnknown }

// String writes the count as a page shows it.
func (c setAsideCount) String() string {
	switch {
	case c.IsUnknown && c.N == 0:
		return "not counted"
	case c.IsUnknown || c.IsMore:
		return "≥ " + formatCount(c.N)
	}
	return formatCount(c.N)
}

// of gives the count of a simple queue.
func (c setAsideCounts) of(queue string) setAsideCount {
	return setAsideCount{N: c.byQueue[queue], IsMore: c.isMore, IsUnknown: c.byQueue == nil}
}

// countOfConversations is the count of a queue of services, as the catalog has it.
func countOfConversations(conversations int64) setAsideCount {
	return setAsideCount{N: conversations, IsMore: conversations >= setAsideMost}
}

// all gives the count of all queues.
func (c setAsideCounts) all() (sum setAsideCount) {
	sum.IsMore, sum.IsUnknown = c.isMore, c.byQueue == nil
	for _, messages := range c.byQueue {
		sum.N += messages
	}
	return sum
}

// setAsideMessages gives how many messages of each queue are set aside, for as long as findings are kept, or until the session changes
// something; nil where that takes too long.
func (s *session) setAsideMessages(ctx context.Context, tx pgx.Tx) (setAsideCounts, error) {
	s.mu.Lock()
	kept := s.setAside
	s.mu.Unlock()
	if time.Since(kept.at) < diagnosisAge {
		return kept, nil
	}
	counted, total := map[string]int64{}, int64(0)
	err := withinBudget(ctx, tx, overviewBudget, func(part pgx.Tx) error {
		rows, err := part.Query(ctx, `
			select n.queue_name, count(*)
			from (select x.queue_name from parley.set_aside_messages as x limit $1::integer) as n
			group by n.queue_name`, setAsideMost)
		if err != nil {
			return err
		}
		var queue string
		var messages int64
		_, err = pgx.ForEachRow(rows, []any{&queue, &messages}, func() error {
			counted[queue] = messages
			total += messages
			return nil
		})
		return err
	})
	if pgdb.TookTooLong(err) && ctx.Err() == nil {
		counted = nil
	} else if err != nil {
		return kept, err
	}
	kept = setAsideCounts{at: time.Now(), byQueue: counted, isMore: total >= setAsideMost}
	s.mu.Lock()
	s.setAside = kept
	s.mu.Unlock()
	return kept, nil
}

// forgetCounts has the next page count anew, after a change.
func (s *session) forgetCounts() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setAside = setAsideCounts{}
}
