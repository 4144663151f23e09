package bench

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley/internal/measure/record"
)

// TSQL runs batches of T-SQL on a connection, one after another. The error is the first one of a batch.
type TSQL func(ctx context.Context, conn *pgx.Conn, batches []string) error

// drainProcedures are the six procedures of the scenario drain in T-SQL.
//
//go:embed drain_tsql.sql
var drainProcedures string

const systemTSQL = "tsql"

// drainGoal has the figures that an interpreted procedure has to reach.
type drainGoal struct {
	share float64 // of the rate of the same procedure in PL/pgSQL
	times float64 // the published rate
}

// drainGoals has the goal of each variant.
func drainGoals() map[string]drainGoal {
	return map[string]drainGoal{
		"basic": {0.6, 8}, "batched": {0.6, 10}, "cursor": {0.8, 10}, "cursor_by_id": {0.8, 10}, "set_xml": {0.9, 20}, "set_binary": {0.9, 30},
	}
}

// installTSQL makes the procedures in T-SQL.
func (b *bench) installTSQL(ctx context.Context, conn *pgx.Conn) error {
	if b.TSQL == nil {
		return nil
	}
	if err := b.TSQL(ctx, conn, strings.Split(drainProcedures, "\ngo\n")); err != nil {
		return fmt.Errorf("install the procedures in T-SQL: %w", err)
	}
	return nil
}

// interpreted gives a way to drain whose procedure is in T-SQL.
func (b *bench) interpreted(v drainVariant) drainVariant {
	v.system = systemTSQL
	v.call = func(ctx context.Context, conn *pgx.Conn) error {
		return b.TSQL(ctx, conn, []string{"execute dbo." + v.procedure})
	}
	v.audit = "dbo.audit_rows"
	v.atLeast = drainGoals()[v.Name].times * v.published
	return v
}

// shareOfTSQL compares each interpreted procedure with the one in PL/pgSQL.
func (b *bench) shareOfTSQL(results []Result) {
	for key, share := range ratios(results) {
		variant, isShare := strings.CutSuffix(key, ":"+systemTSQL+"/"+systemParley)
		if isShare {
			b.extra = append(b.extra, record.Figure{
				Name: variant + " " + systemTSQL + "/" + systemParley, Unit: "of PL/pgSQL", Value: share,
				Limit: record.Limit{AtLeast: drainGoals()[variant].share},
			})
		}
	}
}
