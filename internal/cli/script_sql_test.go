package cli

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
)

// scriptSQL runs statements, in the database that PARLEY_DSN names.
func scriptSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sql STATEMENT...")
	}
	conn := scriptConnection(ts)
	for _, statement := range args {
		_, err := conn.Exec(context.Background(), statement)
		ts.Check(err)
	}
}

// scriptValue puts the one value that a query gives into a variable of the script.
func scriptValue(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: value NAME QUERY")
	}
	var value string
	query := fmt.Sprintf("select (%s)::text", args[1])
	ts.Check(scriptConnection(ts).QueryRow(context.Background(), query).Scan(&value))
	ts.Setenv(args[0], value)
}

// scriptConnection connects to the database of the script until the script ends.
func scriptConnection(ts *testscript.TestScript) *pgx.Conn {
	conn, err := pgx.Connect(context.Background(), ts.Getenv("PARLEY_DSN"))
	ts.Check(err)
	ts.Defer(func() { _ = conn.Close(context.Background()) })
	return conn
}
