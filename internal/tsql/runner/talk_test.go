package runner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/interpreter"
	"github.com/parley-broker/parley/internal/tsql/runner"
	"github.com/parley-broker/parley/internal/tsql/session"
)

// A talk is a session that stays open between its batches, so that a test can hold two against each other.
type talk struct {
	t       *testing.T
	session *interpreter.Session
	out     *strings.Builder
	sink    session.Sink
}

func talking(t *testing.T, config *pgx.ConnConfig) *talk {
	t.Helper()
	dial := func(ctx context.Context, database string) (*pgx.Conn, error) {
		chosen := config.Copy()
		if database != "" {
			chosen.Database = database
		}
		return pgx.ConnectConfig(ctx, chosen)
	}
	out := &strings.Builder{}
	k := &talk{t: t, out: out, sink: session.NewTextSink(out)}
	k.session = runner.New(interpreter.Identity{User: "dbo", Database: config.Database}, connection.New(dial))
	t.Cleanup(func() { _ = k.session.Close(context.WithoutCancel(t.Context())) })
	return k
}

// run runs batches that GO separates and gives what they print.
func (k *talk) run(text string) string {
	k.out.Reset()
	for batch := range strings.SplitSeq(text, "\nGO\n") {
		if err := k.session.Run(k.t.Context(), batch, k.sink); err != nil {
			k.out.WriteString("closed: " + err.Error() + "\n")
		}
	}
	return plain(k.out.String())
}

// says compares what batches print.
func (k *talk) says(text, want string) {
	k.t.Helper()
	if got := k.run(text); got != want {
		k.t.Errorf("%s\n--- got\n%s\n--- want\n%s", text, got, want)
	}
}
