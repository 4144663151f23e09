package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

// busiestMost is how many queues the overview shows.
const busiestMost = 12

// overview is the first page: how the broker is, where most waits, what is wrong.
type overview struct {
	Queues  []activeQueue
	Waiting int64
	// IsEstimated reports that Waiting is the sum of numbers of which some are estimates.
	IsEstimated bool
	// SetAside are conversations, and SetAsideMessages messages of simple queues.
	SetAside, SetAsideMessages setAsideCount
	Sessions                   int
	Findings                   []operate.Finding
	// MayNotDiagnose is why the role sees no findings; empty when it does.
	MayNotDiagnose string
}

func (c *Console) showOverview(w http.ResponseWriter, request *http.Request, s *session) error {
	var shown overview
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
		activity, queues, err := s.activity(ctx, tx)
		if err != nil {
			return err
		}
		shown.Sessions = len(activity.Sessions)
		for _, queue := range queues {
			shown.Waiting += queue.WaitingMessages
			shown.IsEstimated = shown.IsEstimated || queue.IsEstimated
		}
		slices.SortStableFunc(queues, func(a, b activeQueue) int { return cmp.Compare(b.WaitingMessages, a.WaitingMessages) })
		shown.Queues = queues[:min(len(queues), busiestMost)]
		err = tx.QueryRow(ctx, `
			select coalesce(sum(q.set_aside_conversations), 0)::bigint, coalesce(max(q.set_aside_conversations) >= $1, false)
			from parley.service_queues as q`, setAsideMost).Scan(&shown.SetAside.N, &shown.SetAside.IsMore)
		if err != nil {
			return err
		}
		messages, err := s.setAsideMessages(ctx, tx)
		if err != nil {
			return err
		}
		shown.SetAsideMessages = messages.all()
		shown.Findings, shown.MayNotDiagnose, err = s.recentFindings(ctx, tx)
		return err
	})
	if err != nil {
		return err
	}
	c.pages.render(w, http.StatusOK, "overview", c.frame(s, request, "Overview"), shown)
	return nil
}
