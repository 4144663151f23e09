-- Definitions as they were applied: one row an object.
--
-- This is the truth. The tables with which hosts and the box work are derived from it (flow/definitions/derive.sql), in
-- the transaction that applies it.

create table parley_flow._p_definition (
  kind text not null,
  name text not null,
  settings jsonb not null,
  version bigint not null,
  changed_at timestamptz not null default clock_timestamp(),
  changed_by text not null,
  primary key (kind, name)
);

comment on table parley_flow._p_definition is
'Each object that is defined, with the settings that it was given. version: the configuration that it is of.';

create function parley_flow._p_effective(kind text, settings jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(d.setting, d.default_value) filter (where d.default_value is not null), '{}')
    || jsonb_strip_nulls(settings)
  from parley_flow.setting_definitions as d
  where d.kind = $1
$$;

comment on function parley_flow._p_effective(text, jsonb) is 'Gives the settings of an object with its defaults.';

create function parley_flow._p_setting(kind text, name text, setting text) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select parley_flow._p_effective(d.kind, d.settings) -> $3
  from parley_flow._p_definition as d
  where d.kind = $1 and d.name = $2
$$;

comment on function parley_flow._p_setting(text, text, text) is
'Gives a setting of an object, or its default; null when there is no such object.';

create function parley_flow._p_names_after(definitions jsonb, prune boolean)
returns table (kind text, name text, settings jsonb, is_given boolean)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with given as (
    select k.key as kind, o.key as name, coalesce(nullif(o.value, 'null'), '{}') as settings
    from jsonb_each(definitions) as k
    cross join lateral jsonb_each(k.value) as o
  ),

  applications as (
    select g.name from given as g where g.kind = 'application'
  )

  select g.kind, g.name, g.settings, true
  from given as g
  union all
  select d.kind, d.name, d.settings, false
  from parley_flow._p_definition as d
  where not exists (select from given as g where g.kind = d.kind and g.name = d.name)
    and (
      not prune
      or coalesce(
        d.settings ->> 'application',
        (
          select p.settings ->> 'application'
          from parley_flow._p_definition as p
          where d.kind = 'receive location' and p.kind = 'receive port' and p.name = d.settings ->> 'receive_port'
        )
      ) in (select a.name from applications as a) is not true
    )
$$;

comment on function parley_flow._p_names_after(jsonb, boolean) is
'Gives all objects as they would be after definitions were applied, with the settings that they were given.
Arguments: definitions, whose shape was checked; prune, without what the document does not name of the applications that
it names.';
