package console

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/operate"
)

// eventsMost is how many moments of a conversation its page shows, the newest ones.
const eventsMost = 200

// conversationPage is a conversation: its sides here, the session that holds it, its life, and where its messages are.
type conversationPage struct {
	Handle string
	Sides  []conversationSide
	// Explanation answers step by step where its messages are.
	Explanation []operate.Explanation
	Events      []operate.TraceEvent
	IsCut       bool
	Timeline    *timeline
	Failure     *operate.PoisonConversation
	Token       string
}

// conversationSide is one of the sides that this database has.
type conversationSide struct {
	Handle, Conversation, Group                string
	Service, FarService, Contract, Side, State string
	BegunAt, Since                             *time.Time
	LifetimeEnds                               *time.Time
	Timer                                      *time.Time
	Priority                                   int16
}

func (c *Console) showConversation(w http.ResponseWriter, request *http.Request, s *session) error {
	handle, err := parley.ParseUUID(request.PathValue("handle"))
	if err != nil {
		return refused{http.StatusNotFound, "A conversation is named by its handle, its id or its group, which are UUIDs."}
	}
	shown := conversationPage{Handle: handle.String(), Token: s.token}
	err = s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		if shown.Sides, err = readSides(ctx, tx, handle); err != nil {
			return err
		}
		if shown.Explanation, err = operate.ExplainConversation(ctx, tx, handle); err != nil {
			return err
		}
		if shown.Events, err = operate.TraceConversation(ctx, tx, handle); err != nil {
			return err
		}
		for _, isFailing := range []bool{false, true} {
			failures, err := operate.ReadPoisonConversations(ctx, tx, operate.PoisonFilter{Conversation: handle, Failing: isFailing, Limit: 1})
			if err != nil {
				return err
			}
			if len(failures) > 0 && shown.Failure == nil {
				shown.Failure = &failures[0]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if extra := len(shown.Events) - eventsMost; extra > 0 {
		shown.Events, shown.IsCut = shown.Events[extra:], true
	}
	shown.Timeline = drawTimeline(shown.Events, time.Now())
	c.pages.render(w, http.StatusOK, "conversation", c.frame(s, request, "Conversation "+shown.Handle), shown)
	return nil
}

// sidesStatement finds the sides by each name that a conversation has, each by its own index.
const sidesStatement = `
	select
		e.conversation_handle::text, e.conversation_id::text, e.conversation_group_id::text,
		coalesce(e.service_name, ''), coalesce(e.far_service, ''), coalesce(e.service_contract_name, ''),
		case e.is_initiator when 1 then 'initiator' else 'target' end, e.state_desc, e.begun_at, e.state_since, e.lifetime,
		e.dialog_timer, e.priority::smallint
	from parley.conversation_endpoints as e
	where e.conversation_handle = any (array(
		select s.conversation_handle from parley.conversation_endpoints as s where s.conversation_handle = $1
		union
		select s.conversation_handle from parley.conversation_endpoints as s where s.conversation_id = $1
		union
		select s.conversation_handle from parley.conversation_endpoints as s where s.conversation_group_id = $1
	))
	order by e.is_initiator desc, e.begun_at
	limit 50`

func readSides(ctx context.Context, tx pgx.Tx, handle parley.UUID) ([]conversationSide, error) {
	rows, err := tx.Query(ctx, sidesStatement, handle)
	if err != nil {
		return nil, fmt.Errorf("read the sides of %s: %w", handle, err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (side conversationSide, err error) {
		err = row.Scan(
			&side.Handle, &side.Conversation, &side.Group, &side.Service, &side.FarService, &side.Contract, &side.Side, &side.State,
			&side.BegunAt, &side.Since, &side.LifetimeEnds, &side.Timer, &side.Priority)
		return side, err
	})
}
