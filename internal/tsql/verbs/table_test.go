package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/broker/verbs/trust"
	"github.com/parley-broker/parley/internal/tsql/check"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/function"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// numbers keeps the errors of a batch.
type numbers struct {
	session.Sink
	found []string
}

func (n *numbers) Message(m *fault.Error) error {
	// 195: no such function or option; 40510, 40517: not there; 102, 137, 156: no such type, variable or form
	if slices.Contains([]int{102, 137, 156, 195, 243, 2715, 40510, 40517}, m.Number) {
		n.found = append(n.found, m.Error())
	}
	return nil
}

// probe gives a batch that uses a construct of the table, whatever its arguments, or an empty text.
func probe(name string) string {
	kind, object, _ := strings.Cut(name, " ")
	switch {
	case kind == "function" && slices.Contains([]string{"CURRENT_TIMESTAMP", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "USER", "CURRENT_DATE"}, object):
		return "DECLARE @probe sql_variant = " + object
	case kind == "function" && (object == "STRING_SPLIT" || object == "as a table"):
		return "SELECT * FROM STRING_SPLIT('a,b', ',')"
	case kind == "function" && object == "GENERATE_SERIES":
		return "SELECT * FROM GENERATE_SERIES(1, 2)"
	case kind == "function" && strings.HasPrefix(object, "DATE"):
		return "DECLARE @probe sql_variant = " + object + "(day, 1, 1)"
	case kind == "function":
		return "DECLARE @probe sql_variant = " + object + "(1)"
	case kind == "type" && strings.Contains(object, "'"):
		return ""
	case kind == "type":
		return "DECLARE @probe " + object
	case strings.HasPrefix(name, "@@"):
		return "DECLARE @probe sql_variant = " + name
	case kind == "SET" && values[object] != "":
		return "SET " + object + " " + values[object]
	case kind == "SET" && object == strings.ToUpper(object) && !strings.Contains(object, " "):
		return "SET " + object + " ON"
	default:
		return ""
	}
}

// values are those of the options that are not ON or OFF.
var values = map[string]string{
	"ROWCOUNT": "0", "LOCK_TIMEOUT": "-1", "DATEFIRST": "1", "DATEFORMAT": "dmy", "LANGUAGE": "us_english", "TEXTSIZE": "-1",
	"CONTEXT_INFO": "0x01", "DEADLOCK_PRIORITY": "LOW", "QUERY_GOVERNOR_COST_LIMIT": "1", "FIPS_FLAGGER": "'OFF'", "STATISTICS": "IO ON",
	"IDENTITY_INSERT": "t ON", "OFFSETS": "SELECT ON",
}

// newRunner gives the runner of the command, whose database cannot be reached: so each construct that it knows fails with another
// number.
func newRunner() *interpreter.Session {
	away := connection.New(func(context.Context, string) (*pgx.Conn, error) { return nil, errors.New("there is no database") })
	id := interpreter.Identity{Login: "parley", User: "dbo", Database: "shop", Process: 51}
	return runner.NewWithKeys(id, away, ownKeys{&trust.MasterKeyFlag{}})
}

// The table says of functions, types, system variables and options that they run where the runner has them, and only there.
func TestTableSaysWhatTheRunnerHas(t *testing.T) {
	t.Parallel()
	for _, row := range check.All() {
		batch := probe(row.Name)
		if batch == "" {
			continue
		}
		runner := newRunner()
		sink := &numbers{Sink: session.NewTextSink(&strings.Builder{})}
		if err := runner.Run(t.Context(), batch, sink); err != nil {
			t.Logf("%s: %v", batch, err) // it is known, and asks the database
		}
		if runs := len(sink.found) == 0; runs != (row.State == check.Runs) && (row.State == check.Runs || row.State == check.Later) {
			t.Errorf("%s is %q in the table: %s gives %s", row.Name, row.State, batch, fmt.Sprint(sink.found))
		}
	}
}

// Each function of the runner is in the table.
func TestTableHasEachFunctionOfTheRunner(t *testing.T) {
	t.Parallel()
	for _, name := range function.Names() {
		name, _, _ = strings.Cut(name, " ") // TRIM LEADING is TRIM
		if row := check.Find("function " + name); row.State != check.Runs && check.Find(name).State != check.Runs {
			t.Errorf("%s is %q in the table", name, row.State)
		}
	}
}

// The runner has each construct that --check lets pass: none of the parser's tests in which everything runs is not there.
func TestRunnerHasWhatCheckLetsPass(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../parser/testdata/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal("no constructs", err)
	}
	passed := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for batch := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n--\n") {
			tree, err := parser.Parse(batch, parser.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(batch, "WAITFOR") || slices.ContainsFunc(check.New().Batch(tree), func(u check.Use) bool { return u.State == check.Later || u.State == check.Refused }) {
				continue
			}
			passed++
			runner := newRunner()
			sink := &numbers{Sink: session.NewTextSink(&strings.Builder{})}
			if err := runner.Run(t.Context(), batch, sink); err != nil {
				t.Logf("%s: %v", batch, err) // without a database transactions cannot begin
			}
			for _, found := range sink.found {
				// Without a database no type of the user's is known.
				if !strings.Contains(found, "Must declare") && !strings.Contains(found, "Cannot find data type") {
					t.Errorf("%s gives %s", batch, found)
				}
			}
		}
	}
	if passed < 10 {
		t.Errorf("%d constructs pass", passed)
	}
}
