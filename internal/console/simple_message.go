package console

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/operate"
)

// setAsideMessage is a message of a simple queue that is set aside.
type setAsideMessage struct {
	QueueName               string
	MessageID               int64
	Key                     *string
	Priority                int16
	Beginning               []byte
	BodyBytes               int64
	EnqueuedAt, SetAsideAt  time.Time
	Rollbacks               int32
	SQLState, Error, Answer *string
	ErrorTime               *time.Time
}

// pastEdit is a body that a message had before somebody edited it.
type pastEdit struct {
	EditedAt         time.Time
	RoleName, Reason string
	Beginning        []byte
	BodyBytes        int64
}

// Content is the body that it had.
func (p pastEdit) Content() body { return showBody(p.Beginning, p.BodyBytes) }

// simpleMessagePage is a message that is set aside, why, and what can be done.
type simpleMessagePage struct {
	Is      setAsideMessage
	Path    string
	Content body
	Edits   []pastEdit
	Actions []action
	Token   string
	Edit    *edit
}

func (c *Console) showSimpleMessage(w http.ResponseWriter, request *http.Request, s *session) error {
	return c.showSimpleMessageWith(w, request, s, bodyMost)
}

// editSimpleMessage shows the message in a form.
func (c *Console) editSimpleMessage(w http.ResponseWriter, request *http.Request, s *session) error {
	return c.showSimpleMessageWith(w, request, s, editMost)
}

func (c *Console) showSimpleMessageWith(w http.ResponseWriter, request *http.Request, s *session, most int) error {
	number, err := pathNumber(request, "message")
	if err != nil {
		return err
	}
	shown := simpleMessagePage{Actions: setAsideMessages.actions, Token: s.token}
	shown.Path = pathOfSimpleMessage(request)
	err = s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		found, err := readAll[setAsideMessage](ctx, tx, "the message", `
			select x.queue_name, x.message_id, x.key, x.priority, substring(x.body from 1 for $3::integer) as beginning,
				coalesce(octet_length(x.body), 0)::bigint as body_bytes, x.enqueued_at, x.set_aside_at, x.rollbacks, x.sqlstate, x.error,
				x.answer, x.error_time
			from parley.set_aside_messages as x
			where x.queue_name = $1 and x.message_id = $2`, request.PathValue("queue"), number, most)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return refused{http.StatusNotFound, "It is not set aside any more, or your role may not receive from its queue."}
		}
		shown.Is = found[0]
		shown.Edits, err = readAll[pastEdit](ctx, tx, "its edits", `
			select x.edited_at, x.role_name, x.reason, substring(x.body from 1 for $3::integer) as beginning,
				coalesce(octet_length(x.body), 0)::bigint as body_bytes
			from parley.edited_messages as x
			where x.queue_name = $1 and x.message_id = $2
			order by x.edit_id desc
			limit 20`, request.PathValue("queue"), number, bodyMost)
		return err
	})
	if err != nil {
		return err
	}
	shown.Content = showBody(shown.Is.Beginning, shown.Is.BodyBytes)
	if most == editMost {
		shown.Edit = newEdit(s, shown.Path, shown.Content)
	}
	c.pages.render(w, http.StatusOK, "simple-message", c.frame(s, request, "Message of "+shown.Is.QueueName), shown)
	return nil
}

// saveSimpleMessage gives a message the body that its user has made of it.
func (c *Console) saveSimpleMessage(w http.ResponseWriter, request *http.Request, s *session) error {
	number, err := pathNumber(request, "message")
	if err != nil {
		return err
	}
	path := pathOfSimpleMessage(request)
	changed, err := readEdit(request, s, path)
	if err != nil {
		return err
	}
	if changed.body == nil {
		return refused{http.StatusUnprocessableEntity, "Nothing was changed."}
	}
	err = s.change(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
		if err := operate.EditMessage(ctx, tx, request.PathValue("queue"), number, changed.body, changed.reason); err != nil {
			return err
		}
		return recordEdit(ctx, tx, setAsideMessages.path+": edit", request.PathValue("queue")+" "+request.PathValue("message"), changed.reason)
	})
	if err != nil {
		return err
	}
	c.config.Logger.Info("a user acted", "role", s.role, "action", "edit", "on", path)
	http.Redirect(w, request, path, http.StatusSeeOther) //nolint:gosec // a path of this console, whose parts are escaped
	return nil
}

func pathOfSimpleMessage(request *http.Request) string {
	return setAsideMessages.path + "/" + url.PathEscape(request.PathValue("queue")) + "/" + url.PathEscape(request.PathValue("message"))
}
