package console

import (
	"context"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
)

// flowInstance is an instance of an orchestration that is not over.
type flowInstance struct {
	InstanceID                                   int64
	Orchestration, Application, Host, Status     string
	Version                                      int32
	BeganAt, ChangedAt                           time.Time
	Steps, Unread                                int64
	Attempts                                     int32
	MessageID                                    *int64
	ConvoyKey, Code, Path, Error, Remedy, Stands *string
	StateBytes                                   *int32
}

// flowWait is a receive, a timer or an activity for which an instance waits.
type flowWait struct {
	Kind          string
	Shape, Detail *string
	Until         *time.Time
}

// flowStep is a shape that an instance went through.
type flowStep struct {
	Shape, Times string
}

// flowEvent is something that happened to an instance or to a message.
type flowEvent struct {
	At                       time.Time
	Event                    string
	Message                  *int64
	Relation, Host, Detail   *string
	SendPort, Location, Text *string
}

// instancePage is an instance, as it is and as it was tracked.
type instancePage struct {
	ID      int64
	Is      *flowInstance
	Waits   []flowWait
	Passed  []flowStep
	Events  []flowEvent
	Actions []action
	Token   string
}

func (c *Console) showInstance(w http.ResponseWriter, request *http.Request, s *session) error {
	id, err := pathNumber(request, "instance")
	if err != nil {
		return err
	}
	shown := instancePage{ID: id, Actions: instances.actions, Token: s.token}
	err = s.read(request.Context(), shown.read)
	if err != nil {
		return err
	}
	if shown.Is == nil && len(shown.Events) == 0 {
		return refused{http.StatusNotFound, "There is no such instance, nothing was tracked of it, or your role may not see it."}
	}
	c.pages.render(w, http.StatusOK, "instance", c.frame(s, request, "Instance "+request.PathValue("instance")), shown)
	return nil
}

// ofInstance is the source of all that is known of an instance that is not over; $1 is its number.
const ofInstance = "parley_flow.instances_matching(jsonb_build_object('instances', jsonb_build_array($1::bigint)), 1) as x"

func (p *instancePage) read(ctx context.Context, tx pgx.Tx) error {
	found, err := readAll[flowInstance](ctx, tx, "the instance", `
		select x.instance_id, x.orchestration, x.application, x.host, x.status, x.version, x.began_at, x.changed_at, x.steps, x.unread,
			x.attempts, x.message_id, x.convoy_key, x.code, x.path, x.error, x.remedy, array_to_string(x.stands_at, ', ') as stands,
			x.state_bytes
		from `+ofInstance, p.ID)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		p.Is = &found[0]
	}
	p.Waits, err = readAll[flowWait](ctx, tx, "what it waits for", `
		select w.wait ->> 'kind' as kind, w.wait ->> 'shape' as shape, coalesce(w.wait ->> 'at', w.wait ->> 'due_at')::timestamptz as until,
			concat_ws(
				', ', (select string_agg(v.key || ' = ' || v.value, ', ') from jsonb_each_text(w.wait -> 'values') as v),
				'queue ' || (w.wait ->> 'queue'), 'attempt ' || (w.wait ->> 'attempt'), w.wait ->> 'error'
			) as detail
		from `+ofInstance+`
		cross join jsonb_array_elements(x.waits_for) as w (wait)
		limit 100`, p.ID)
	if err != nil {
		return err
	}
	p.Passed, err = readAll[flowStep](ctx, tx, "where it was", `
		select p.key as shape, p.value as times
		from `+ofInstance+`
		cross join jsonb_each_text(case when jsonb_typeof(x.passed) = 'object' then x.passed end) as p
		order by length(p.key), p.key
		limit 500`, p.ID)
	if err != nil {
		return err
	}
	p.Events, err = readAll[flowEvent](ctx, tx, "what was tracked of it", `
		select t.at, t.event, null::bigint as message, null::text as relation, t.host, t.fields ->> 'code' as detail,
			null::text as send_port, null::text as location, left((t.fields - 'passed')::text, 1000) as text
		from parley_flow.track_instance($1) as t
		order by t.at desc
		limit 200`, p.ID)
	return err
}
