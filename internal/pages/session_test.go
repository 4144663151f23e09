package pages

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/parley-broker/parley/internal/sqltext"
)

// A session is a small psql.
type session struct {
	t         *testing.T
	conn      *pgx.Conn
	variables map[string]string
}

func newSession(t *testing.T, pool *pgxpool.Pool) *session {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return &session{t: t, conn: conn, variables: map[string]string{}}
}

// gset stands for \gset between the statements of a block.
const gset = "gset"

var variable = regexp.MustCompile(`:'([a-z_]+)'`)

// run gives the last rows that a block shows. Only its last statement may fail, and only when the page shows it.
func (s *session) run(b block) (shown string) {
	s.t.Helper()
	statements, err := sqltext.Split(strings.ReplaceAll(b.sql, ` \gset`, "; "+gset+";"))
	if err != nil {
		s.t.Fatalf("line %d: %v", b.line, err)
	}
	var result *pgconn.Result
	for i, statement := range statements {
		if statement.Text == gset {
			s.set(result)
			continue
		}
		text := variable.ReplaceAllStringFunc(statement.Text, func(use string) string {
			value, ok := s.variables[variable.FindStringSubmatch(use)[1]]
			if !ok {
				s.t.Fatalf("line %d: nothing has set %s", b.line+statement.Line-1, use)
			}
			return "'" + value + "'"
		})
		results, err := s.conn.PgConn().Exec(s.t.Context(), text).ReadAll()
		var refused *pgconn.PgError
		if errors.As(err, &refused) && i == len(statements)-1 && strings.HasPrefix(b.output, "ERROR:") {
			return showError(refused)
		}
		if err != nil {
			s.t.Fatalf("line %d: %v: %s", b.line+statement.Line-1, err, text)
		}
		if last := results[len(results)-1]; len(last.FieldDescriptions) > 0 {
			result = last
		}
	}
	return showRows(result)
}

func (s *session) set(result *pgconn.Result) {
	s.t.Helper()
	if len(result.Rows) != 1 {
		s.t.Fatalf("\\gset of %d rows", len(result.Rows))
	}
	for i, field := range result.FieldDescriptions {
		s.variables[field.Name] = string(result.Rows[0][i])
	}
}

func showError(e *pgconn.PgError) string {
	shown := "ERROR:  " + e.Message
	if e.Detail != "" {
		shown += "\nDETAIL:  " + e.Detail
	}
	if e.Hint != "" {
		shown += "\nHINT:  " + e.Hint
	}
	return shown
}

// showRows writes rows as psql does, but for the blanks, which are not compared.
func showRows(result *pgconn.Result) string {
	if result == nil {
		return ""
	}
	var shown strings.Builder
	var names, rules []string
	for _, field := range result.FieldDescriptions {
		names = append(names, field.Name)
		rules = append(rules, "---")
	}
	fmt.Fprintf(&shown, "%s\n%s\n", strings.Join(names, " | "), strings.Join(rules, "+"))
	for _, row := range result.Rows {
		var cells []string
		for _, value := range row {
			cells = append(cells, string(value))
		}
		fmt.Fprintln(&shown, strings.Join(cells, " | "))
	}
	rows := "rows"
	if len(result.Rows) == 1 {
		rows = "row"
	}
	fmt.Fprintf(&shown, "(%d %s)", len(result.Rows), rows)
	return shown.String()
}
