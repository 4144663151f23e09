package translator

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/parley-broker/parley/internal/tsql/ast"
	"github.com/parley-broker/parley/internal/tsql/expression"
	"github.com/parley-broker/parley/internal/tsql/fault"
	"github.com/parley-broker/parley/internal/tsql/parser"
	"github.com/parley-broker/parley/internal/tsql/value"
)

// parametersMark stands in views for the parameters of all modules: Go reads them from the texts of the modules when the statement runs.
const parametersMark = "\x03parameters"

// A parameterRow is a parameter of a procedure or a function, or the result of a scalar function, which has number 0.
type parameterRow struct {
	Object     string `json:"object"`
	Name       string `json:"name"`
	Number     int    `json:"number"`
	Type       string `json:"type"` // of the system; empty for a type of tables
	User       string `json:"user"` // the type of the user
	Schema     string `json:"schema"`
	IsOutput   bool   `json:"is_output"`
	IsCursor   bool   `json:"is_cursor"`
	IsReadOnly bool   `json:"is_read_only"`
	IsNotNull  bool   `json:"is_not_null"`
}

// parametersQuery has the parameters with their types and sizes.
var parametersQuery = sizesOfTypes + `
from (select r.object as object_id, ` + textOf("r.name") + ` as name, r.number as parameter_id, ` + textOf("t.name") + ` as type_name,
    t.name as kind, r.user_type, r.schema, r.is_output, r.is_cursor, r.is_read_only, r.is_not_null, t.size,
    ` + sizeParts + `
  from (select * from json_to_recordset(` + parametersMark + `::json) as j (object integer, name text, number integer, type text,
      "user" text, schema text, is_output boolean, is_cursor boolean, is_read_only boolean, is_not_null boolean)) as r
      (object, name, number, type, user_type, schema, is_output, is_cursor, is_read_only, is_not_null)
  cross join lateral (select nullif(split_part(split_part(r.type, '(', 2), ')', 1), ''), split_part(r.type, '(', 1))
    as t (size, name)) as m`

var parametersFrom = "(" + parametersQuery + ") as v left join (" + typesQuery + ") as t (name, id) on t.name = v.type_name" +
	" left join (" + userTypes + ") as u on lower(u.name) = lower(v.user_type) and lower(u.schema_name) = lower(v.schema)"

func init() { //nolint:gochecknoinits // the views are registered one by one
	columns, sql := viewOf(parametersFrom, `object_id int
name sysname
parameter_id int
system_type_id tinyint = coalesce(`+systemType+`, case when u.is_table then 243 else 0 end)
user_type_id int = coalesce(u.id, t.id, 0)
max_length smallint = case when u.is_table then -1 else v.max_length end
precision tinyint
scale tinyint
is_output bit
is_cursor_ref bit = v.is_cursor
has_default_value bit = false
is_xml_document bit = false
default_value nvarchar(4000) = null
xml_collection_id int = 0
is_readonly bit = v.is_read_only
is_nullable bit = not v.is_not_null
encryption_type int = null
encryption_type_desc nvarchar(64) = null
encryption_algorithm_name sysname = null
column_encryption_key_id int = null
column_encryption_key_database_name sysname = null`)
	Register("sys.parameters", columns, sql)
	Register("sys.all_parameters", columns, sql)
	columns, sql = viewOf(parametersFrom+" join ("+objectsQuery+") as o on o.object_id = v.object_id"+
		" join pg_catalog.pg_namespace as n on n.oid = o.schema_id::oid", `SPECIFIC_CATALOG sysname = `+ownDatabase+`
SPECIFIC_SCHEMA sysname = n.nspname
SPECIFIC_NAME sysname = o.name
ORDINAL_POSITION int = v.parameter_id
PARAMETER_MODE nvarchar(10) = case when v.parameter_id = 0 then 'OUT' when v.is_output then 'INOUT' else 'IN' end
IS_RESULT nvarchar(10) = case when v.parameter_id = 0 then 'YES' else 'NO' end
AS_LOCATOR nvarchar(10) = 'NO'
PARAMETER_NAME sysname = nullif(v.name, '')
DATA_TYPE sysname = case when u.is_table then 'table type' when v.kind = 'sysname' then 'nvarchar' else v.kind end
CHARACTER_MAXIMUM_LENGTH int = case when v.kind = 'sysname' then 128 when v.kind !~ 'char|binary' then null
  when v.size = 'max' then -1 else v.first end
CHARACTER_OCTET_LENGTH int = case when v.kind ~ 'char|binary|sysname' then v.max_length end
COLLATION_CATALOG sysname = null
COLLATION_SCHEMA sysname = null
COLLATION_NAME sysname = v.collation_name
NUMERIC_PRECISION tinyint = case when v.kind ~ 'int|decimal|numeric|money|float|real' then v.precision end
NUMERIC_PRECISION_RADIX smallint = case when v.kind ~ 'float|real' then 2 when v.kind ~ 'int|decimal|numeric|money' then 10 end
NUMERIC_SCALE tinyint = case when v.kind ~ 'int|decimal|numeric|money' then v.scale end
DATETIME_PRECISION smallint = case v.kind when 'date' then 0 when 'smalldatetime' then 0 when 'datetime' then 3 when 'time' then v.places
  when 'datetime2' then v.places when 'datetimeoffset' then v.places end`)
	Register("INFORMATION_SCHEMA.PARAMETERS", columns, sql)
}

// withParameters puts the parameters of all modules into the query of a view of the system. Error 40517 for a view of the user over it.
func (b *builder) withParameters(sql string) (string, *fault.Error) {
	if !strings.Contains(sql, parametersMark) {
		return sql, nil
	}
	if b.isDefinition {
		return "", expression.Unsupported("a view over the parameters of modules")
	}
	rows := b.parameter(&expression.Expression{Type: document, Evaluate: func(f *expression.Frame) (value.Value, *fault.Error) {
		ctx, _ := f.Outside.(context.Context)
		rows, err := b.translator.parameterRows(ctx)
		if err != nil {
			return value.Value{}, err
		}
		list, _ := json.Marshal(rows)
		return value.NewNVarChar(string(list)), nil
	}}, "")
	return strings.ReplaceAll(sql, parametersMark, plain(rows.sql)), nil
}

// parameterRows reads the parameters of all modules. A text that the runner does not read has none.
func (t *Translator) parameterRows(ctx context.Context) ([]parameterRow, *fault.Error) {
	texts := map[string]string{}
	const sql = "select m.object_id::text, m.definition from (" + moduleTexts + ") as m"
	err := t.rows(ctx, sql, nil, func(row []string) { texts[row[0]] = row[1] })
	if err != nil {
		return nil, err
	}
	rows := []parameterRow{}
	for object, text := range texts {
		parsed, failed := parser.Parse(text, parser.Options{})
		if failed != nil || len(parsed.Statements) != 1 {
			continue
		}
		var parameters []*ast.Parameter
		switch node := parsed.Statements[0].(type) {
		case *ast.Procedure:
			parameters = node.Parameters
		case *ast.Function:
			parameters = node.Parameters
			if !node.IsTable {
				rows = append(rows, t.parameterRow(ctx, object, 0, &ast.Parameter{Type: node.Returns, Output: true}))
			}
		}
		for i, p := range parameters {
			rows = append(rows, t.parameterRow(ctx, object, i+1, p))
		}
	}
	return rows, nil
}

func (t *Translator) parameterRow(ctx context.Context, object string, number int, p *ast.Parameter) parameterRow {
	row := parameterRow{
		Object: object, Name: p.Name, Number: number, IsOutput: p.Output, IsReadOnly: p.ReadOnly, IsNotNull: p.Nullable == "NOT NULL",
		IsCursor: strings.EqualFold(p.Type.Name.Object(), "cursor"),
	}
	if strings.EqualFold(p.Type.Name.Object(), "sysname") {
		row.Type = "sysname"
		return row
	}
	if found, err := t.typeOf(ctx, p.Type); err == nil {
		row.Type = found.String()
	}
	if _, err := expression.TypeOf(p.Type, value.Declaration); err != nil {
		row.User, row.Schema = p.Type.Name.Object(), p.Type.Name.Schema()
		if row.Schema == "" {
			row.Schema = "dbo"
		}
	}
	return row
}
