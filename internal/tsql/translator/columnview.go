package translator

// defaultCollation is the collation of all text that T-SQL made.
const defaultCollation = "'SQL_Latin1_General_CP1_CI_AS'"

// typeText is the type of a column in T-SQL, the first line of its comment. A second one has the name of its default.
const typeText = `split_part(pg_catalog.col_description(c.oid, a.attnum), e'\n', 1)`

// defaultName is the name of the default of a column: the one that it was given, or one of its table and column.
const defaultName = `coalesce(nullif(split_part(pg_catalog.col_description(c.oid, a.attnum), e'\n', 2), ''),
  'DF_' || c.relname || '_' || a.attname)`

// typeName writes the name of a column's type in T-SQL.
const typeName = `coalesce(nullif(split_part(` + typeText + `, '(', 1), ''),
  pg_catalog.format_type(a.atttypid, null))`

// sizeParts reads the size of a type in parentheses: its first number as a length, as digits and as places, and its second one.
const sizeParts = `substring(t.size from '^\d+')::integer as first, coalesce(substring(t.size from '^\d+')::integer, 18) as digits,
    (case when t.name in ('decimal', 'numeric') then coalesce(substring(t.size from ',\s*(\d+)')::integer, 0)
      else coalesce(substring(t.size from '^\d+')::integer, 7) end) as places`

// sizesOfTypes has the lengths, precisions and scales of what the query behind it calls m.
const sizesOfTypes = `select m.*, (case when m.size = 'max' or m.type_name = 'xml' then -1
    when m.type_name in ('nchar', 'nvarchar') then 2 * m.first when m.type_name in ('char', 'varchar', 'binary', 'varbinary') then m.first
    when m.type_name in ('bit', 'tinyint') then 1 when m.type_name = 'smallint' then 2 when m.type_name = 'date' then 3
    when m.type_name in ('decimal', 'numeric') then case when m.digits <= 9 then 5 when m.digits <= 19 then 9 when m.digits <= 28 then 13
      else 17 end
    when m.type_name in ('time', 'datetime2', 'datetimeoffset') then case m.type_name when 'time' then 3 when 'datetime2' then 6 else 8 end
      + case when m.places <= 2 then 0 when m.places <= 4 then 1 else 2 end
    when m.type_name in ('bigint', 'datetime', 'money', 'float', 'timestamp', 'rowversion') then 8
    when m.type_name in ('uniqueidentifier', 'text', 'ntext', 'image') then 16
    when m.type_name = 'sysname' then 256 when m.type_name = 'sql_variant' then 8016 else 4 end) as max_length,
  (case m.type_name when 'decimal' then m.digits when 'numeric' then m.digits when 'bigint' then 19 when 'int' then 10
    when 'smallint' then 5 when 'tinyint' then 3 when 'bit' then 1 when 'money' then 19 when 'smallmoney' then 10 when 'float' then 53
    when 'real' then 24 when 'date' then 10 when 'datetime' then 23 when 'smalldatetime' then 16
    when 'time' then 8 + m.places + (m.places > 0)::integer when 'datetime2' then 19 + m.places + (m.places > 0)::integer
    when 'datetimeoffset' then 26 + m.places + (m.places > 0)::integer else 0 end) as precision,
  (case when m.type_name in ('decimal', 'numeric', 'time', 'datetime2', 'datetimeoffset') then m.places
    when m.type_name in ('money', 'smallmoney') then 4 when m.type_name = 'datetime' then 3 else 0 end) as scale,
  (case when m.kind ~ 'char|text|sysname' then (` + defaultCollation + `::text::bpchar collate ` + collation + `) end) as collation_name`

// columnsQuery has the columns of tables and views with their types: what stands in parentheses behind a type is its size, or its
// precision and scale.
var columnsQuery = sizesOfTypes + `
from (select c.oid::integer as object_id, ` + textOf("a.attname") + ` as name, a.attnum::integer as column_id,
    ` + textOf(typeName) + ` as type_name, (` + typeName + `)::text as kind,
    not a.attnotnull as is_nullable, a.attidentity <> '' as is_identity,
    a.attgenerated <> '' as is_computed, ` + textOf("n.nspname") + ` as schema_name, ` + textOf("c.relname") + ` as table_name,
    t.size,
    ` + sizeParts + `,
    (case when a.atthasdef then ` + textOf("pg_catalog.pg_get_expr(d.adbin, d.adrelid)") + ` end) as column_default,
    coalesce(d.oid::integer, 0) as default_object_id
  from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute as a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
  left join pg_catalog.pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum and a.attgenerated = ''
  cross join lateral (select nullif(split_part(split_part(` + typeText + `, '(', 2), ')', 1), ''), ` + typeName + `)
    as t (size, name)
  where c.relkind in ('r', 'p', 'v') and ` + visible + `) as m`

// systemType writes the number of the type that SQL Server keeps a type as: sysname is nvarchar.
const systemType = "(case t.id when 256 then 231 else t.id end)::smallint"

// userTypes has the types of the user: a domain is an alias type, a composite type a table type. Their comments have their texts.
const userTypes = `select t.typname as name, t.oid::integer as id, n.oid::integer as schema_id, n.nspname as schema_name,
  t.typtype = 'c' as is_table, lower(substring(pg_catalog.obj_description(t.oid, 'pg_type') from '(?i)\sFROM\s+\[?(\w+)')) as base,
  substring(pg_catalog.obj_description(t.oid, 'pg_type') from '(?i)\sFROM\s+(\[?\w+\]?\s*(\([^)]*\))?)') as behind,
  pg_catalog.obj_description(t.oid, 'pg_type') ~* '\mNOT\s+NULL\s*;?\s*$' as is_not_null
from pg_catalog.pg_type as t join pg_catalog.pg_namespace as n on n.oid = t.typnamespace
where t.typtype in ('c', 'd') and pg_catalog.obj_description(t.oid, 'pg_type') ~* '^\s*create' and ` + visible

func init() { //nolint:gochecknoinits // the views are registered one by one
	Register("INFORMATION_SCHEMA.COLUMNS", "TABLE_CATALOG sysname, TABLE_SCHEMA sysname, TABLE_NAME sysname, COLUMN_NAME sysname, "+
		"ORDINAL_POSITION int, COLUMN_DEFAULT nvarchar(4000), IS_NULLABLE varchar(3), DATA_TYPE sysname, CHARACTER_MAXIMUM_LENGTH int, "+
		"CHARACTER_OCTET_LENGTH int, NUMERIC_PRECISION tinyint, NUMERIC_SCALE int, DATETIME_PRECISION smallint, COLLATION_NAME sysname",
		"select "+textOf(ownDatabase)+", m.schema_name, m.table_name, m.name, m.column_id, m.column_default, "+
			textOf("case when m.is_nullable then 'YES' else 'NO' end")+", m.type_name, (case when m.kind !~ 'char|binary' then null"+
			" when m.size = 'max' then -1 else m.first end), (case when m.kind ~ 'char|binary' then m.max_length end), "+
			"(case when m.kind ~ 'int|decimal|numeric|money|float|real' then m.precision::smallint end), "+
			"(case when m.kind ~ 'int|decimal|numeric|money' then m.scale end), (case m.type_name when 'date' then 0 when 'smalldatetime'"+
			" then 0 when 'datetime' then 3 when 'time' then m.places when 'datetime2' then m.places when 'datetimeoffset' then m.places end)"+
			"::smallint, m.collation_name from ("+columnsQuery+") as m")
}

// typesQuery has the types of the system with SQL Server's numbers.
const typesQuery = `values ('image'::text, 34), ('text', 35), ('uniqueidentifier', 36), ('date', 40), ('time', 41), ('datetime2', 42),
  ('datetimeoffset', 43), ('tinyint', 48), ('smallint', 52), ('int', 56), ('smalldatetime', 58), ('real', 59), ('money', 60),
  ('datetime', 61), ('float', 62), ('sql_variant', 98), ('ntext', 99), ('bit', 104), ('decimal', 106), ('numeric', 108),
  ('smallmoney', 122), ('bigint', 127), ('varbinary', 165), ('varchar', 167), ('binary', 173), ('char', 175), ('timestamp', 189),
  ('nvarchar', 231), ('nchar', 239), ('xml', 241), ('sysname', 256)`
