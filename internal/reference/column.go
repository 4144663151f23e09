package reference

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/parley-broker/parley"
	"github.com/parley-broker/parley/sql"
)

// A column of a view or of a row type.
type column struct {
	relation string // with the schema
	name     string
	kind     string
	comment  string
}

// readColumns reads the columns of all public views and row types, by relation.
func readColumns(ctx context.Context, db parley.DB) (map[string][]column, error) {
	rows, err := db.Query(ctx, `
		select format('%s.%s', c.relnamespace::regnamespace, c.relname), a.attname, format_type(a.atttypid, a.atttypmod),
			coalesce(col_description(c.oid, a.attnum), '')
		from pg_class as c
		join pg_attribute as a on a.attrelid = c.oid
		where c.relnamespace::regnamespace::text = any ($1)
			and c.relkind in ('v', 'c')
			and c.relname !~ '^_p_'
			and a.attnum > 0
			and not a.attisdropped
		order by c.relname, a.attnum`, sql.OwnSchemas())
	if err != nil {
		return nil, fmt.Errorf("read the columns of the views: %w", err)
	}
	columns, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c column, err error) {
		err = row.Scan(&c.relation, &c.name, &c.kind, &c.comment)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("read the columns of the views: %w", err)
	}
	byRelation := map[string][]column{}
	for _, c := range columns {
		byRelation[c.relation] = append(byRelation[c.relation], c)
	}
	return byRelation, nil
}
