package translator

import (
	"context"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/fault"
)

// queueQuery finds a queue without regard to case, in a database that has a broker. The name is that of its view.
const queueQuery = `select c.relname from pg_catalog.pg_class as c
where c.relnamespace = to_regnamespace('parley_queue') and c.relkind = 'v'
  and lower(c.relname) = lower(case when lower($1::text) = 'dbo' then $2::text else $1::text || '.' || $2::text end)
order by c.relname = $2::text desc limit 1`

// queue gives a queue as a table that can be read alone; nil where there is none of the name.
func (t *Translator) queue(ctx context.Context, schema, name string) (*relation, *fault.Error) {
	view := ""
	if err := t.rows(ctx, queueQuery, []string{schema, name}, func(row []string) { view = row[0] }); err != nil || view == "" {
		return nil, err
	}
	if err := t.prepare(ctx); err != nil {
		return nil, err
	}
	columns, sql := viewOf("parley_queue."+quote(view)+" as v", messageView)
	r := &relation{schema: strings.ToLower(schema), name: name, kind: 's', sql: "(" + sql + ")"}
	for i, part := range strings.Split(columns, ", ") {
		named, written, _ := strings.Cut(part, " ")
		typ, _ := readType(written)
		r.columns = append(r.columns, &column{name: named, typ: typ, isNullable: true, number: i + 1})
	}
	return r, nil
}
