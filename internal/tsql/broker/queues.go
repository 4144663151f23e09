package broker

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/connection"
	"github.com/parley-broker/parley/internal/tsql/fault"
)

// findQueue gives the queue whose name differs in the case of letters at most; one that is written alike comes first.
const findQueue = `select schema_name, name from parley.service_queues
where lower(name) = lower($1) and lower(schema_name) = lower($2) and (lower($2) <> 'dbo' or schema_name = 'dbo')
order by schema_name = $2 desc, name = $1 desc limit 1`

// queue gives the name of a queue as the functions of the schema take it. Names of queues are those of objects: their case does not
// count. Where there is none the name stays as it is written, and the function refuses it.
func (c *compiler) queue(ctx context.Context, name ast.Name) (string, *fault.Error) {
	if err := c.here(ctx, name); err != nil {
		return "", err
	}
	schema, object, err := c.find(ctx, name)
	return lookupName(schema, object), err
}

// find gives the two parts of the name of a queue as they are kept, or as they are written where there is none.
func (c *compiler) find(ctx context.Context, name ast.Name) (schema, object string, err *fault.Error) {
	schema, object = written(name)
	found := connection.Statement{
		SQL: findQueue, Parameters: [][]byte{[]byte(object), []byte(schema)},
		Row: func(_ []pgconn.FieldDescription, row [][]byte) error {
			schema, object = string(row[0]), string(row[1])
			return nil
		},
	}
	if _, err := c.translator.connection.Run(ctx, found); err != nil {
		return "", "", faultOf(err, "SELECT")
	}
	return schema, object, nil
}

// written gives the two parts of a name as the batch writes them.
func written(name ast.Name) (schema, object string) {
	schema, object = name.Schema(), name.Object()
	if schema == "" {
		schema = "dbo"
	}
	return schema, object
}

// lookupName gives the name under which the schema finds a queue at once. Under any other spelling it takes the name apart first, at each
// call of RECEIVE, which costs as much as the RECEIVE itself.
func lookupName(schema, object string) string {
	part := func(name string) string {
		if strings.ContainsAny(name, `.["`) {
			return ast.Bracketed(name)
		}
		return name
	}
	if schema == "dbo" {
		return part(object)
	}
	return part(schema) + "." + part(object)
}

// here refuses a name in another database or on another server.
func (c *compiler) here(ctx context.Context, name ast.Name) *fault.Error {
	if name.Server() != "" {
		return fault.New(40515, name.String())
	}
	if name.Database() == "" {
		return nil
	}
	current, err := c.translator.connection.Current(ctx)
	if err != nil {
		return faultOf(err, "USE")
	}
	if !strings.EqualFold(current, name.Database()) {
		return fault.New(40515, name.String())
	}
	return nil
}
