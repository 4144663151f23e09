package translator

// typeSizes has the types of the system with their length in bytes, precision and scale; those of decimal are the greatest.
const typeSizes = `values ('image'::text, 16, 0, 0), ('text', 16, 0, 0), ('uniqueidentifier', 16, 0, 0), ('date', 3, 10, 0),
  ('time', 5, 16, 7), ('datetime2', 8, 27, 7), ('datetimeoffset', 10, 34, 7), ('tinyint', 1, 3, 0), ('smallint', 2, 5, 0),
  ('int', 4, 10, 0), ('smalldatetime', 4, 16, 0), ('real', 4, 24, 0), ('money', 8, 19, 4), ('datetime', 8, 23, 3), ('float', 8, 53, 0),
  ('sql_variant', 8016, 0, 0), ('ntext', 16, 0, 0), ('bit', 1, 1, 0), ('decimal', 17, 38, 38), ('numeric', 17, 38, 38),
  ('smallmoney', 4, 10, 4), ('bigint', 8, 19, 0), ('varbinary', 8000, 0, 0), ('varchar', 8000, 0, 0), ('binary', 8000, 0, 0),
  ('char', 8000, 0, 0), ('timestamp', 8, 0, 0), ('nvarchar', 8000, 0, 0), ('nchar', 8000, 0, 0), ('xml', -1, 0, 0), ('sysname', 256, 0, 0)`

// aliasSize reads the length, or precision and scale, that the text of an alias type u writes behind the type.
const aliasSize = `cross join lateral (select nullif(split_part(split_part(u.behind, '(', 2), ')', 1), '') as size) as w
cross join lateral (select substring(w.size from '^\s*(\d+)')::integer as first, w.size ~* 'max' as is_max,
  coalesce(substring(w.size from ',\s*(\d+)')::integer, 0) as places) as p`

// typesFrom has the types of the system, those of the user, and table types.
const typesFrom = `(
  select t.name, t.id as type_id, t.id, 4 as schema_id, z.length, z.digits, z.places, t.id not in (189, 256) as is_nullable,
    false as is_user, false as is_table
  from (` + typesQuery + `) as t (name, id) join (` + typeSizes + `) as z (name, length, digits, places) on z.name = t.name
  union all
  select u.name, coalesce(t.id, 243), u.id, u.schema_id,
    case when u.base is null or p.is_max then -1 when u.base in ('nchar', 'nvarchar') then 2 * coalesce(p.first, 1)
      when u.base in ('char', 'varchar', 'binary', 'varbinary') then coalesce(p.first, 1) else z.length end,
    case when u.base in ('decimal', 'numeric') then coalesce(p.first, 18) else coalesce(z.digits, 0) end,
    case when u.base in ('decimal', 'numeric') then p.places else coalesce(z.places, 0) end, not u.is_not_null, true, u.is_table
  from (` + userTypes + `) as u ` + aliasSize + ` left join (` + typesQuery + `) as t (name, id) on t.name = u.base
  left join (` + typeSizes + `) as z (name, length, digits, places) on z.name = u.base) as v`

func init() { //nolint:gochecknoinits // the views are registered one by one
	columns, sql := viewOf(typesFrom, `name sysname
system_type_id tinyint = case v.type_id when 256 then 231 else v.type_id end
user_type_id int = v.id
schema_id int
principal_id int = null
max_length smallint = v.length
precision tinyint = v.digits
scale tinyint = v.places
collation_name sysname = case when v.type_id in (35, 99, 167, 175, 231, 239, 256) then `+defaultCollation+` end
is_nullable bit
is_user_defined bit = v.is_user
is_assembly_type bit = false
default_object_id int = 0
rule_object_id int = 0
is_table_type bit = v.is_table`)
	Register("sys.types", columns, sql)
}
