-- Tables into which mail is inserted (spec mail 12.2), and whose code runs when that is done.
--
-- The insert has the rights of the owner of the schema, and so has all that PostgreSQL calls on the way: triggers,
-- defaults, checks, expressions of indexes, domains, those of partitions too. So all of it must belong to roles that
-- have these rights anyway, and nobody else may make a trigger. A table is known by its name, which the owner of its
-- schema can give to another one at any moment: he must have them too.
-- Cost: for each message about forty probes of an index of pg_depend for a table of ten columns.

create function parley_mail._p_foreign_part(target regclass) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_owner oid := (select n.nspowner from pg_namespace as n where n.nspname = 'parley_mail');
  v_foreign text;
begin
  with recursive part (classid, objid) as (
    select 'pg_class'::regclass::oid, target::oid
    union
    select n.classid, n.objid
    from part as p
    cross join lateral (
      -- The objects that go with it: partitions, triggers, defaults, constraints, indexes, rules, policies.
      select d.classid, d.objid
      from pg_depend as d
      where d.refclassid = p.classid and d.refobjid = p.objid and d.deptype in ('a', 'i', 'P', 'S')
      union all
      -- The objects of which it is made, or which it calls.
      select d.refclassid, d.refobjid
      from pg_depend as d
      where d.classid = p.classid and d.objid = p.objid
        and (
          d.refclassid in ('pg_proc'::regclass, 'pg_type'::regclass, 'pg_operator'::regclass)
          or (d.refclassid = 'pg_class'::regclass and p.classid = 'pg_type'::regclass)
        )
    ) as n
  )

  select pg_describe_object(o.classid, o.objid, 0) into v_foreign
  from (
    select 'pg_namespace'::regclass as classid, n.oid as objid,
      case when pg_get_userbyid(n.nspowner) = 'pg_database_owner' then d.datdba else n.nspowner end as owner
    from pg_class as c
    join pg_namespace as n on n.oid = c.relnamespace
    join pg_database as d on d.datname = current_database()
    where c.oid = target
    union all
    select p.classid, p.objid, c.relowner
    from part as p
    join pg_class as c on p.classid = 'pg_class'::regclass and c.oid = p.objid
    union all
    select p.classid, p.objid, a.grantee
    from part as p
    join pg_class as c on p.classid = 'pg_class'::regclass and c.oid = p.objid
    cross join lateral aclexplode(c.relacl) as a
    where a.privilege_type = 'TRIGGER'
    union all
    select p.classid, p.objid, f.proowner
    from part as p
    join pg_proc as f on p.classid = 'pg_proc'::regclass and f.oid = p.objid
    union all
    select p.classid, p.objid, t.typowner
    from part as p
    join pg_type as t on p.classid = 'pg_type'::regclass and t.oid = p.objid
    union all
    select p.classid, p.objid, o.oprowner
    from part as p
    join pg_operator as o on p.classid = 'pg_operator'::regclass and o.oid = p.objid
  ) as o
  where o.owner = 0 or pg_has_role(o.owner, v_owner, 'member') is not true
  limit 1;
  return v_foreign;
end
$$;

comment on function parley_mail._p_foreign_part(regclass) is
'Names a part of a table that is controlled by a role that may not act as the owner of mail transport. The part is the
table itself, a partition, its schema, a function, a type or an operator that an insert uses, which the role owns, or
a table on which it may make triggers. Null: there is none.';

create function parley_mail._p_insert_into_table(target regclass, payload jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_columns text;
  v_foreign text;
  v_name constant text := target::text;
begin
  -- A session that makes a trigger, a default or a constraint, or gives the name away, waits until the row is there.
  execute format('lock table only %s in row exclusive mode', v_name);
  if to_regclass(v_name) is distinct from target
    or not exists (select from pg_class as c where c.oid = target and c.relkind in ('r', 'p')) then
    v_foreign := v_name;
  else
    v_foreign := parley_mail._p_foreign_part(target);
  end if;
  if v_foreign is not null then
    raise exception using
      errcode = 'insufficient_privilege',
      message = format(
        '%s is in the hands of a role that may not act as the owner of mail transport, and would run with its rights',
        v_foreign
      ),
      hint = 'Bind a table of the owner of the schema parley_mail on which nobody else holds TRIGGER, with functions '
        'and types of that owner, or use a service.';
  end if;
  select string_agg(quote_ident(a.attname), ', ' order by a.attnum) into v_columns
  from pg_attribute as a
  where a.attrelid = target and a.attnum > 0 and not a.attisdropped and payload ? a.attname::text;
  execute format(
    'insert into %1$s (%2$s) select %2$s from jsonb_populate_record(null::%1$s, $1)', v_name, v_columns
  ) using payload;
end
$$;

comment on function parley_mail._p_insert_into_table(regclass, jsonb) is
'Inserts a message into a table: columns that are called as fields of the message get them, others their defaults.
Errors: 42501 a part of the table belongs to somebody who may not act as the owner of mail transport, or the name has
come to another table meanwhile, and those of the insert.';
