-- A description of every object in our schemas: one row for each property of each object. $1 lists the schemas of the
-- wings, $2 those of them in which users' own objects stand.
--
-- Two installations of one version on one server give the same rows: names instead of oids, no order of creation.
-- Objects that come and go are left out: with users' queues the sequences _p_queue_<id>_* and their views, with the
-- days the partitions _p_tracking_<day>. Grants are spelled out one by one, because their order in the catalog is that
-- of history.
with schema_of_ours as (
  select n.oid, n.nspname, n.nspowner, n.nspacl
  from pg_namespace as n
  where n.nspname = any ($1::text[])
),

relation as (
  select c.*, format('%I.%I', s.nspname, c.relname) as identity,
    case c.relkind
      when 'v' then 'view' when 'm' then 'materialized view' when 'S' then 'sequence'
      when 'c' then 'type' when 'i' then 'index' when 'I' then 'index' else 'table'
    end as kind
  from pg_class as c
  join schema_of_ours as s on s.oid = c.relnamespace
  where s.nspname <> all ($2::text[]) and c.relname !~ '^_p_(queue|tracking)_[0-9]+(_|$)'
),

routine as (
  select p.*, format('%I.%I(%s)', s.nspname, p.proname, oidvectortypes(p.proargtypes)) as identity,
    case p.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end as kind
  from pg_proc as p
  join schema_of_ours as s on s.oid = p.pronamespace
  where s.nspname <> all ($2::text[])
),

plain_type as (
  select t.*, format('%I.%I', s.nspname, t.typname) as identity
  from pg_type as t
  join schema_of_ours as s on s.oid = t.typnamespace
  where s.nspname <> all ($2::text[]) and t.typtype in ('d', 'e', 'r', 'm')
),

secured as (
  select 'schema' as kind, quote_ident(s.nspname) as identity, s.nspowner as owner, coalesce(s.nspacl, acldefault('n', s.nspowner)) as acl
  from schema_of_ours as s
  union all
  select r.kind, r.identity, r.relowner, coalesce(r.relacl, acldefault(case r.relkind when 'S' then 's'::"char" else 'r' end, r.relowner))
  from relation as r
  where r.kind <> 'index'
  union all
  select r.kind, r.identity, r.proowner, coalesce(r.proacl, acldefault('f', r.proowner)) from routine as r
  union all
  select 'type', t.identity, t.typowner, coalesce(t.typacl, acldefault('T', t.typowner)) from plain_type as t
),

described as (
  select s.kind, s.identity, p.property, p.value
  from secured as s
  cross join lateral (
    values ('owner', s.owner::regrole::text),
    (
      'grants',
      (
        select string_agg(
          format(
            '%s: %s%s', case a.grantee when 0 then 'PUBLIC' else a.grantee::regrole::text end,
            a.privilege_type, case when a.is_grantable then ' with grant option' end
          ), ', ' order by a.grantee::regrole::text collate "C", a.privilege_type collate "C"
        )
        from aclexplode(s.acl) as a
      )
    )
  ) as p (property, value)

  union all
  select 'schema', quote_ident(s.nspname), 'comment', obj_description(s.oid, 'pg_namespace')
  from schema_of_ours as s

  union all
  select r.kind, r.identity, p.property, p.value
  from relation as r
  left join pg_am as am on am.oid = r.relam
  left join pg_index as i on i.indexrelid = r.oid
  cross join lateral (
    values ('comment', obj_description(r.oid, 'pg_class')),
    ('persistence', case r.relpersistence when 'p' then 'permanent' when 'u' then 'unlogged' else r.relpersistence::text end),
    -- How eagerly a table is vacuumed is its administrator's choice.
    ('options', (select string_agg(o, ', ' order by o) from unnest(r.reloptions) as o where o not like 'autovacuum%')),
    ('access method', am.amname::text),
    ('partition key', case r.relkind when 'p' then pg_get_partkeydef(r.oid) end),
    ('partition bounds', pg_get_expr(r.relpartbound, r.oid)),
    ('row security', case when r.relrowsecurity then case when r.relforcerowsecurity then 'forced' else 'enabled' end end),
    ('replica identity', r.relreplident::text),
    ('definition', case r.kind when 'view' then pg_get_viewdef(r.oid) when 'materialized view' then pg_get_viewdef(r.oid) end),
    ('definition', case r.kind when 'index' then pg_get_indexdef(r.oid) end),
    ('state', case when i.indisvalid and i.indisready then 'valid' when i.indexrelid is not null then 'invalid' end)
  ) as p (property, value)

  union all
  select r.kind, r.identity, 'inherits from', string_agg(h.inhparent::regclass::text, ', ' order by h.inhseqno)
  from relation as r
  join pg_inherits as h on h.inhrelid = r.oid
  group by r.kind, r.identity

  union all
  select 'column', format('%s.%I', r.identity, a.attname), p.property, p.value
  from relation as r
  join pg_attribute as a on a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped
  left join pg_attrdef as d on d.adrelid = r.oid and d.adnum = a.attnum
  left join pg_collation as l on l.oid = a.attcollation
  cross join lateral (
    values ('position', (select count(*) from pg_attribute as b where b.attrelid = r.oid and b.attnum between 1 and a.attnum and not b.attisdropped)::text),
    ('type', format_type(a.atttypid, a.atttypmod)),
    ('collation', l.collname::text),
    ('not null', a.attnotnull::text),
    ('default', pg_get_expr(d.adbin, d.adrelid)),
    ('generated', nullif(a.attgenerated, '')::text),
    ('identity', nullif(a.attidentity, '')::text),
    ('storage', a.attstorage::text),
    ('compression', nullif(a.attcompression, '')::text),
    -- Minor releases of 2026 stamp columns with a number of their own (pg_attver).
    ('options', (select array_agg(o.option order by o.option) from unnest(a.attoptions) as o (option) where o.option not like 'pg\_%')::text),
    ('grants', a.attacl::text),
    ('comment', col_description(r.oid, a.attnum))
  ) as p (property, value)
  where r.kind <> 'index'

  union all
  select 'sequence', r.identity, p.property, p.value
  from relation as r
  join pg_sequence as q on q.seqrelid = r.oid
  cross join lateral (
    values ('type', format_type(q.seqtypid, null)),
    ('range', format('start %s, increment %s, minimum %s, maximum %s, cache %s', q.seqstart, q.seqincrement, q.seqmin, q.seqmax, q.seqcache)),
    ('cycle', q.seqcycle::text),
    (
      'owned by',
      (
        select format('%s.%I', d.refobjid::regclass, a.attname)
        from pg_depend as d
        join pg_attribute as a on a.attrelid = d.refobjid and a.attnum = d.refobjsubid
        where d.classid = 'pg_class'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i')
      )
    )
  ) as p (property, value)

  union all
  -- The NOT NULL constraints of PostgreSQL 18 are named by their columns.
  select 'constraint', format('%I of %s', c.conname, coalesce(r.identity, t.identity)), p.property, p.value
  from pg_constraint as c
  left join relation as r on r.oid = c.conrelid
  left join plain_type as t on t.oid = c.contypid
  cross join lateral (
    values ('definition', pg_get_constraintdef(c.oid)), ('comment', obj_description(c.oid, 'pg_constraint'))
  ) as p (property, value)
  where c.contype <> 'n' and coalesce(r.oid, t.oid) is not null

  union all
  select 'trigger', format('%I of %s', g.tgname, r.identity), p.property, p.value
  from pg_trigger as g
  join relation as r on r.oid = g.tgrelid
  cross join lateral (
    -- Those of traces are enabled while something is traced.
    values ('definition', pg_get_triggerdef(g.oid)), ('comment', obj_description(g.oid, 'pg_trigger')),
      ('enabled', case when g.tgname not like '\_p\_record%' then g.tgenabled::text end)
  ) as p (property, value)
  where not g.tgisinternal

  union all
  select 'rule', format('%I of %s', w.rulename, r.identity), p.property, p.value
  from pg_rewrite as w
  join relation as r on r.oid = w.ev_class
  cross join lateral (values ('definition', pg_get_ruledef(w.oid)), ('enabled', w.ev_enabled::text)) as p (property, value)
  where w.rulename <> '_RETURN'

  union all
  select 'policy', format('%I of %s', y.polname, r.identity), p.property, p.value
  from pg_policy as y
  join relation as r on r.oid = y.polrelid
  cross join lateral (
    values ('command', y.polcmd::text), ('permissive', y.polpermissive::text),
    ('roles', (select string_agg(case o.role when 0 then 'PUBLIC' else o.role::regrole::text end, ', ' order by 1) from unnest(y.polroles) as o (role))),
    ('using', pg_get_expr(y.polqual, y.polrelid)), ('with check', pg_get_expr(y.polwithcheck, y.polrelid))
  ) as p (property, value)

  union all
  select 'statistics', format('parley.%I', e.stxname), 'definition', pg_get_statisticsobjdef(e.oid)
  from pg_statistic_ext as e
  where e.stxnamespace = 'parley'::regnamespace

  union all
  select r.kind, r.identity, p.property, p.value
  from routine as r
  join pg_language as l on l.oid = r.prolang
  left join pg_aggregate as g on g.aggfnoid = r.oid
  cross join lateral (
    values ('arguments', pg_get_function_arguments(r.oid)),
    ('result', pg_get_function_result(r.oid)),
    ('language', l.lanname::text),
    ('source', case when r.prosqlbody is null then r.prosrc else pg_get_function_sqlbody(r.oid) end),
    ('settings', (select string_agg(o.setting, ', ' order by o.setting collate "C") from unnest(r.proconfig) as o (setting))),
    ('security', case when r.prosecdef then 'definer' else 'invoker' end),
    ('volatility', case r.provolatile when 'i' then 'immutable' when 's' then 'stable' else 'volatile' end),
    ('strict', r.proisstrict::text),
    ('leakproof', r.proleakproof::text),
    ('parallel', case r.proparallel when 's' then 'safe' when 'r' then 'restricted' else 'unsafe' end),
    ('cost', r.procost::text),
    ('rows', r.prorows::text),
    ('support', nullif(r.prosupport::oid, 0)::regproc::text),
    ('aggregate', case when g.aggfnoid is not null then format('%s, %s, %s, initially %s', g.aggtransfn, g.aggfinalfn, format_type(g.aggtranstype, null), g.agginitval) end),
    ('comment', obj_description(r.oid, 'pg_proc'))
  ) as p (property, value)

  union all
  select 'type', t.identity, p.property, p.value
  from plain_type as t
  cross join lateral (
    values ('base', nullif(format_type(t.typbasetype, t.typtypmod), '-')),
    ('not null', t.typnotnull::text),
    ('default', t.typdefault),
    ('labels', (select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum as e where e.enumtypid = t.oid)),
    ('subtype', (select format_type(g.rngsubtype, null) from pg_range as g where g.rngtypid = t.oid)),
    ('comment', obj_description(t.oid, 'pg_type'))
  ) as p (property, value)
)

select d.kind, d.identity, d.property, d.value
from described as d
where d.value is not null
order by d.kind collate "C", d.identity collate "C", d.property collate "C"
