package translator

import "github.com/parley-broker/parley/internal/tsql/value"

// rowVersions makes the counter of rowversion columns: one for the database, of which each INSERT and UPDATE of T-SQL takes the next
// number. Changes by other clients leave the column of a changed row as it is.
var rowVersions = []string{
	"create sequence if not exists dbo._p_tsql_row_versions minvalue 0 start with 2001",
	"grant usage on sequence dbo._p_tsql_row_versions to public",
}

// nextRowVersion is the default of the column.
const nextRowVersion = "pg_catalog.int8send(pg_catalog.nextval('dbo._p_tsql_row_versions'))"

// withRowVersion adds to what UPDATE sets a new number for each rowversion column.
func (g *targeting) withRowVersion(assignments []assignment) []assignment {
	for _, c := range g.table.columns {
		if c.typ.Kind == value.RowVersion {
			assignments = append(assignments, assignment{column: c, value: sqlExpression{sql: "default", typ: c.typ}, slot: -1})
		}
	}
	return assignments
}
