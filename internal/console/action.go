package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/pgdb"
	"github.com/parley-broker/parley/operate"
)

// action is something that a user may do to rows of a list, or to what a page is about.
type action struct {
	Name, Label string
	// Sentence says what it does to one row, for the question before it.
	Sentence string
	// IsGrave marks what cannot be taken back.
	IsGrave bool
	// run does it to the row of a key; the fields of the form may have more arguments.
	run run
	// Inputs are the arguments that the question asks for.
	Inputs []input
}

// input is an argument of an action.
type input struct {
	Name, Label, Value, Kind string
}

// question is the page that asks before an action.
type question struct {
	Path, Back, Title string
	Action            action
	Count             int64
	IsMore            bool
	Names             []string
	Keys              []string
	Token, Once       string
}

// IsNamedInPart reports whether the question names some rows only.
func (q question) IsNamedInPart() bool { return q.Count > int64(len(q.Names)) }

// result is the page after an action.
type result struct {
	Back, Title string
	Action      action
	Done        int
	Failed      []failedRow
}

type failedRow struct {
	Name, Reason string
}

// namesMost is how many rows a question names.
const namesMost = 10

// actOn answers a form of a list: first with the question, then, when that is confirmed, by doing it.
func (c *Console) actOn(l listing) handler {
	return func(w http.ResponseWriter, request *http.Request, s *session) error {
		chosen, ok := find(l.actions, request.PostFormValue("action"))
		if !ok {
			return refused{http.StatusBadRequest, "There is no such action."}
		}
		back := l.path
		if request.URL.RawQuery != "" {
			back += "?" + request.URL.RawQuery
		}
		about := l.path + " " + chosen.Name
		if request.PostFormValue(onceField) == "" {
			return c.ask(w, request, s, l, chosen, back)
		}
		if !s.answer(request.PostFormValue(onceField), about) {
			return errAnswered
		}
		keys, _, err := l.keys(request.Context(), nil, withoutAll(request.PostForm), nil)
		if err != nil {
			return err
		}
		done := result{Back: back, Title: l.title, Action: chosen}
		err = s.change(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
			done.Done, done.Failed = 0, nil
			for _, key := range keys {
				if err := oneOf(ctx, tx, chosen, key, request.PostForm); err != nil {
					_, shown := describe(err)
					reason := strings.TrimSpace(shown.Text + " " + shown.Hint)
					done.Failed = append(done.Failed, failedRow{Name: strings.Join(key, " "), Reason: reason})
					continue
				}
				done.Done++
			}
			return record(ctx, tx, l.path+": "+chosen.Name, keys, done)
		})
		if err != nil {
			return err
		}
		c.config.Logger.Info("a user acted", "role", s.role, "action", chosen.Name, "on", l.path, "done", done.Done, "failed", len(done.Failed))
		c.pages.render(w, http.StatusOK, "result", c.frame(s, request, chosen.Label), done)
		return nil
	}
}

// ask shows the question: how many rows, and the first of them.
func (c *Console) ask(w http.ResponseWriter, request *http.Request, s *session, l listing, chosen action, back string) error {
	asked := question{
		Path: back, Back: back, Title: l.title, Action: chosen, Token: s.token, Once: s.ask(l.path + " " + chosen.Name),
	}
	err := s.read(request.Context(), func(ctx context.Context, tx pgx.Tx) error {
		keys, isMore, err := l.keys(ctx, tx, request.PostForm, request.URL.Query())
		if err != nil {
			return err
		}
		asked.Count, asked.IsMore = int64(len(keys)), isMore
		for _, key := range keys {
			if len(asked.Names) < namesMost {
				asked.Names = append(asked.Names, strings.Join(key, " "))
			}
			asked.Keys = append(asked.Keys, encodeKey(key))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if asked.Count == 0 {
		return refused{http.StatusUnprocessableEntity, "Choose a row first."}
	}
	c.pages.render(w, http.StatusOK, "question", c.frame(s, request, chosen.Label), asked)
	return nil
}

// oneOf does an action to one row, so that another row goes on when this one fails.
func oneOf(ctx context.Context, tx pgx.Tx, chosen action, key []string, form url.Values) error {
	return pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error { return chosen.run(ctx, part, key, form) })
}

// record writes who did what, in the transaction that did it.
func record(ctx context.Context, tx pgx.Tx, what string, keys [][]string, done result) error {
	objects := make([]string, 0, len(keys))
	for _, key := range keys {
		objects = append(objects, strings.Join(key, " "))
	}
	detail := fmt.Appendf(nil, `{"done":%d,"failed":%d}`, done.Done, len(done.Failed))
	return operate.RecordOperatorAction(ctx, tx, what, objects, detail)
}

func find(actions []action, name string) (action, bool) {
	for _, one := range actions {
		if one.Name == name {
			return one, true
		}
	}
	return action{}, false
}

// withoutAll gives a form without the wish for all rows: what was confirmed are the rows that the question named.
func withoutAll(form url.Values) url.Values {
	made := url.Values{}
	for name, values := range form {
		if name != "all" {
			made[name] = values
		}
	}
	return made
}

// statement makes an action of a statement whose parameters are the key of a row. Its result is whether it found something to do, or on
// how many things.
func statement(sql string) run {
	return func(ctx context.Context, tx pgx.Tx, key []string, _ url.Values) error {
		parameters := make([]any, len(key))
		for i, one := range key {
			parameters[i] = one
		}
		var done string
		if err := tx.QueryRow(ctx, sql, parameters...).Scan(&done); err != nil {
			return pgdb.StatementError(err, "act")
		}
		if done == "false" || done == "0" {
			return refused{http.StatusConflict, "There was nothing to do: it is so already, or not there any more."}
		}
		return nil
	}
}

// encodeKey writes the key of a row as a form has it.
func encodeKey(key []string) string {
	text, err := json.Marshal(key)
	if err != nil {
		panic(err) // a list of texts
	}
	return string(text)
}
