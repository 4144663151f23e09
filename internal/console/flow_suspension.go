package console

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// suspensionPage is a suspended message, why it is, and what can be done.
type suspensionPage struct {
	Is      flowSuspension
	Actions []action
	Token   string
	// Edit is set when its user edits it.
	Edit *edit
}

func readSuspension(ctx context.Context, tx pgx.Tx, id int64) (flowSuspension, error) {
	found, err := readAll[flowSuspension](ctx, tx, "the suspended message", `
		select `+suspensionColumns+`
		from parley_flow.suspended_matching(jsonb_build_object('suspensions', jsonb_build_array($1::bigint)), 1) as x`, id)
	if err != nil {
		return flowSuspension{}, err
	}
	if len(found) == 0 {
		return flowSuspension{}, refused{http.StatusNotFound, "It is not suspended any more, or your role may not see it."}
	}
	return found[0], nil
}

func (c *Console) showSuspension(w http.ResponseWriter, request *http.Request, s *session) error {
	id, err := pathNumber(request, "suspension")
	if err != nil {
		return err
	}
	shown := suspensionPage{Actions: suspensionActions, Token: s.token}
	err = s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		shown.Is, err = readSuspension(ctx, tx, id)
		return err
	})
	if err != nil {
		return err
	}
	c.pages.render(w, http.StatusOK, "suspension", c.frame(s, request, "Suspended message"), shown)
	return nil
}

// editSuspension shows the content of a suspended message in a form. The database records that it was read.
func (c *Console) editSuspension(w http.ResponseWriter, request *http.Request, s *session) error {
	id, err := pathNumber(request, "suspension")
	if err != nil {
		return err
	}
	shown := suspensionPage{Token: s.token}
	err = s.change(request.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
		if shown.Is, err = readSuspension(ctx, tx, id); err != nil {
			return err
		}
		content, err := readContent(ctx, tx, shown.Is.MessageID, editMost)
		if err != nil {
			return err
		}
		shown.Edit = newEdit(s, fmt.Sprintf("/flow/suspended/%d", id), content.Body)
		shown.Edit.Properties, shown.Edit.HasProperties = content.Properties, true
		return nil
	})
	if err != nil {
		return err
	}
	c.pages.render(w, http.StatusOK, "suspension", c.frame(s, request, "Suspended message"), shown)
	return nil
}

// resubmitSuspension puts what its user has edited in the place of a suspended message.
func (c *Console) resubmitSuspension(w http.ResponseWriter, request *http.Request, s *session) error {
	id, err := pathNumber(request, "suspension")
	if err != nil {
		return err
	}
	path := fmt.Sprintf("/flow/suspended/%d", id)
	changed, err := readEdit(request, s, path)
	if err != nil {
		return err
	}
	var properties *string
	if given := strings.TrimSpace(request.PostFormValue("properties")); given != "" {
		properties = &given
	}
	if changed.body == nil && properties == nil {
		return refused{http.StatusUnprocessableEntity, "Nothing was changed: to have it tried again as it is, use Try again."}
	}
	var message int64
	err = s.change(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
		err := tx.QueryRow(ctx, `
			select parley_flow.resubmit(suspension_id => $1, body => $2::bytea, properties => $3::text::jsonb, reason => $4::text)`,
			id, changed.body, properties, changed.reason).Scan(&message)
		if err != nil {
			return err
		}
		return recordEdit(ctx, tx, path+": resubmit", strconv.FormatInt(id, 10), changed.reason)
	})
	if err != nil {
		return err
	}
	c.config.Logger.Info("a user acted", "role", s.role, "action", "resubmit", "on", path)
	http.Redirect(w, request, fmt.Sprintf("/flow/messages/%d", message), http.StatusSeeOther)
	return nil
}
