package console

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// flowMessage is a message of the integration engine that is there.
type flowMessage struct {
	MessageID                                     int64
	ParentID                                      *int64
	ReceivedAt                                    time.Time
	Application, ReceivePort, Location, Publisher *string
	MessageType                                   *string
	Size                                          int64
	Deliveries, Parts                             int32
	Promoted                                      string
}

// flowSuspension is a message that waits for an operator, at one of the ports that get it.
type flowSuspension struct {
	SuspensionID, MessageID, Size                          int64
	Stage, Code                                            string
	Application, SendPort, Location, MessageType, OrderKey *string
	Error, Remedy                                          *string
	Attempts                                               int32
	IsResumable, HoldsUpOrder                              bool
	SuspendedAt                                            time.Time
}

// flowProperty is a property of a message, for who may read its content.
type flowProperty struct {
	Name, Value, Type string
	IsPromoted        bool
}

// flowContent is the body of a message with its properties.
type flowContent struct {
	Body       body
	Properties []flowProperty
}

// flowMessagePage is the way of a message: where it came from, who got it, what is open.
type flowMessagePage struct {
	ID          int64
	Is          *flowMessage
	Suspensions []flowSuspension
	Events      []flowEvent
	Content     *flowContent
	Token       string
}

const suspensionColumns = `
	x.suspension_id, x.message_id, coalesce(x.size, 0)::bigint as size, x.stage, x.code, x.application, x.send_port, x.location,
	x.message_type, x.order_key, x.error, x.remedy, coalesce(x.attempts, 0) as attempts, x.is_resumable, x.holds_up_order, x.suspended_at`

// read reads the message; one that is gone has what was tracked of it.
func (p *flowMessagePage) read(ctx context.Context, tx pgx.Tx) error {
	found, err := readAll[flowMessage](ctx, tx, "the message", `
		select x.message_id, x.parent_id, x.received_at, x.application, x.receive_port, x.location, x.published_by as publisher,
			x.message_type, x.size::bigint as size, x.deliveries, x.parts, jsonb_pretty(x.promoted) as promoted
		from parley_flow.messages_matching(jsonb_build_object('message', $1::bigint), 1) as x`, p.ID)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		p.Is = &found[0]
	}
	p.Suspensions, err = readAll[flowSuspension](ctx, tx, "where it is suspended", `
		select `+suspensionColumns+`
		from parley_flow.suspended_matching(jsonb_build_object('messages', jsonb_build_array($1::bigint)), 50) as x`, p.ID)
	if err != nil {
		return err
	}
	p.Events, err = readAll[flowEvent](ctx, tx, "its way", `
		select t.at, t.event, t.message, t.relation, t.host, coalesce(t.fields ->> 'code', t.fields ->> 'details') as detail,
			t.send_port, t.location, left(t.fields::text, 1000) as text
		from parley_flow.track($1) as t
		order by t.at, t.message
		limit 200`, p.ID)
	return err
}

func (c *Console) showFlowMessage(w http.ResponseWriter, request *http.Request, s *session) error {
	return c.showFlowMessageWith(w, request, s, s.read, false)
}

// showFlowContent shows the message with its content, which the database records: so it is no page that one only looks at.
func (c *Console) showFlowContent(w http.ResponseWriter, request *http.Request, s *session) error {
	return c.showFlowMessageWith(w, request, s, s.change, true)
}

func (c *Console) showFlowMessageWith(
	w http.ResponseWriter, request *http.Request, s *session,
	within func(context.Context, func(context.Context, pgx.Tx) error) error, withContent bool,
) error {
	id, err := pathNumber(request, "message")
	if err != nil {
		return err
	}
	shown := flowMessagePage{ID: id, Token: s.token}
	err = within(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := shown.read(ctx, tx); err != nil || !withContent {
			return err
		}
		shown.Content, err = readContent(ctx, tx, id, bodyMost)
		return err
	})
	if err != nil {
		return err
	}
	if shown.Is == nil && len(shown.Events) == 0 {
		return refused{http.StatusNotFound, "There is no such message, nothing was tracked of it, or your role may not see it."}
	}
	c.pages.render(w, http.StatusOK, "flow-message", c.frame(s, request, "Message "+request.PathValue("message")), shown)
	return nil
}

// readContent reads the properties of a message and the beginning of its body.
func readContent(ctx context.Context, tx pgx.Tx, id int64, most int) (*flowContent, error) {
	var content flowContent
	var beginning []byte
	var total int64
	err := tx.QueryRow(ctx, `
		select substring(r.body from 1 for $2::integer), coalesce(octet_length(r.body), 0)::bigint
		from (select parley_flow.read_message($1) as body offset 0) as r`, id, most).Scan(&beginning, &total)
	if err != nil {
		return nil, err
	}
	content.Body = showBody(beginning, total)
	content.Properties, err = readAll[flowProperty](ctx, tx, "the properties", `
		select p.name, coalesce(p.value #>> '{}', '') as value, p.type, p.is_promoted from parley_flow.read_properties($1) as p`, id)
	return &content, err
}
