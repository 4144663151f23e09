package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/pgdb"
)

// refused is an error of the user's, with the status of the answer.
type refused struct {
	status int
	text   string
}

func (r refused) Error() string { return r.text }

// failure is an error as a page shows it.
type failure struct {
	Title, Text, Detail, Hint string
}

// describe gives the status of an error and how the page shows it. Errors of the database are shown as they are: the user could read
// them with psql as well.
func describe(err error) (status int, shown failure) {
	if own, ok := errors.AsType[refused](err); ok {
		return own.status, failure{Title: http.StatusText(own.status), Text: own.text}
	}
	if server, ok := errors.AsType[*pgconn.PgError](err); ok {
		shown = failure{Title: "PostgreSQL refuses this", Text: server.Message, Detail: server.Detail, Hint: server.Hint}
		switch server.Code {
		case "42501", "PF001":
			return http.StatusForbidden, failure{
				Title: "Your role may not do this", Text: server.Message, Detail: server.Detail, Hint: server.Hint,
			}
		case "57014":
			return http.StatusGatewayTimeout, failure{
				Title: "This took too long", Text: fmt.Sprintf("The database was asked to stop after %s.", readBudget),
				Hint: "Narrow the list by its filters.",
			}
		case "55P03":
			return http.StatusConflict, failure{
				Title: "Somebody else works on this", Text: "A lock was not free in time.", Hint: "Try again.",
			}
		}
		return http.StatusUnprocessableEntity, shown
	}
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return http.StatusNotFound, failure{
			Title: "Not here", Text: "There is nothing under this name, or your role may not see it.",
		}
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout, failure{Title: "The database does not answer", Text: "Try again in a moment."}
	case pgdb.SQLState(err) == "":
		// The error names hosts and files of the console's own configuration.
		return http.StatusBadGateway, failure{
			Title: "The database does not answer", Text: "There is no connection to it; the log of the console has the reason.",
		}
	}
	return http.StatusInternalServerError, failure{Title: "This page failed", Text: err.Error()}
}

// showError shows an error in the place of a page. The log gets what is not the user's.
func (c *Console) showError(w http.ResponseWriter, request *http.Request, s *session, err error) {
	if errors.Is(err, errLoggedOut) {
		c.config.Logger.Info("a session ends", "role", s.role, "database", s.target, "error", err)
		c.sessions.end(s)
		c.askToLogIn(w, request)
		return
	}
	status, shown := describe(err)
	if status >= http.StatusInternalServerError && request.Context().Err() == nil {
		c.config.Logger.Warn("a page has no answer", "path", request.URL.Path, "role", s.role, "error", err)
	}
	c.pages.render(w, status, "failure", c.frame(s, request, shown.Title), shown)
}
