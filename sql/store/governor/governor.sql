-- Pressure: the thresholds of resources, what is done at which level, and what has happened.
--
-- The daemon measures and decides (internal/store/governor); what it goes by and what it has decided stands here. A
-- system names its resources and its actions; those that are the same for all have their thresholds from
-- seed_thresholds.
-- Source: spec hub-transport 14.

create table parley_store._p_threshold (
  system text not null references parley_store._p_system,
  resource text not null,
  unit text not null default '',
  medium_at double precision not null,
  high_at double precision not null,
  medium_below double precision not null,
  normal_below double precision not null,
  floor_at double precision check (floor_at >= high_at),
  reserve_bytes bigint check (reserve_bytes > 0),
  history_polls integer not null default 0 check (history_polls >= 0),
  is_watched boolean not null default true,
  primary key (system, resource),
  check (
    normal_below <= medium_at and medium_below <= high_at and medium_at <= high_at and normal_below <= medium_below
  )
);

comment on table parley_store._p_threshold is 'From which values on a resource is under pressure.';

create view parley_store.thresholds as
select
  t.system, t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.floor_at,
  t.reserve_bytes, t.history_polls, t.is_watched
from parley_store._p_threshold as t;

comment on view parley_store.thresholds is 'From which values on a resource is under pressure.';
comment on column parley_store.thresholds.medium_at is 'Above this value Normal becomes Medium.';
comment on column parley_store.thresholds.high_at is 'Above this value the level becomes High.';
comment on column parley_store.thresholds.medium_below is 'Below this value High becomes Medium.';
comment on column parley_store.thresholds.normal_below is 'Below this value Medium becomes Normal.';
comment on column parley_store.thresholds.floor_at is
'Above this value nobody is excepted from what is done at High, until it is no longer above high_at; null: never.';
comment on column parley_store.thresholds.reserve_bytes is
'Of a volume: how much is to be left free. On a volume where high_at leaves less, all values are lowered; null: never.';
comment on column parley_store.thresholds.history_polls is
'After so many polls above Normal in a row the actions that are kept for later begin; 0: there are none.';

create table parley_store._p_pressure_action (
  system text not null references parley_store._p_system,
  resource text not null,
  action text not null,
  from_level text not null check (from_level in ('MEDIUM', 'HIGH', 'FLOOR')),
  after_history boolean not null default false,
  primary key (system, resource, action)
);

comment on table parley_store._p_pressure_action is 'The actions taken while a resource is at a level or above it.';

create view parley_store.pressure_actions as
select a.system, a.resource, a.action, a.from_level, a.after_history from parley_store._p_pressure_action as a;

comment on view parley_store.pressure_actions is 'The actions taken while a resource is at a level or above it.';
comment on column parley_store.pressure_actions.after_history is
'At Medium only after history_polls polls above Normal; at High at once.';

create table parley_store._p_pressure_change (
  change_id bigint generated always as identity primary key,
  system text not null,
  node text not null,
  resource text not null,
  event_id integer not null,
  from_level text not null,
  to_level text not null,
  measured double precision,
  actions text[] not null default '{}',
  message text not null,
  changed_at timestamptz not null default clock_timestamp()
);

comment on table parley_store._p_pressure_change is 'Each change of a level: append-only.';

create index on parley_store._p_pressure_change (system, node, resource, change_id);
create index on parley_store._p_pressure_change (changed_at);

create view parley_store.pressure_changes as
select
  c.change_id, c.system, c.node, c.resource, c.event_id, c.from_level, c.to_level, c.measured as value, c.actions,
  c.message, c.changed_at
from parley_store._p_pressure_change as c;

comment on view parley_store.pressure_changes is 'Each change of a level, with the event that was written.';
comment on column parley_store.pressure_changes.event_id is
'15004 rose, 15005 fell, 15006 and 15007 work is refused because of a volume or of memory.';

create function parley_store._p_forget_pressure(retention interval) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley_store._p_pressure_change as c
  where c.ctid = any (array(
    select p.ctid
    from parley_store._p_pressure_change as p
    where p.changed_at < clock_timestamp() - retention
    order by p.changed_at
    limit 10000
    for update skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_store._p_forget_pressure(interval) is
'Removes changes of levels before a time, some of them; gives how many.
Arguments: retention, how long they are kept.';

create view parley_store.pressure_history as
select
  w.system, w.node, w.resource, w.to_level as level, count(*) as transitions, sum(w.lasted) as total_time,
  max(w.lasted) as longest_time, max(w.changed_at) as last_entered_at
from (
  select
    c.system, c.node, c.resource, c.to_level, c.changed_at,
    coalesce(lead(c.changed_at) over each_resource, clock_timestamp()) - c.changed_at as lasted
  from parley_store._p_pressure_change as c
  where c.from_level <> c.to_level
  window each_resource as (partition by c.system, c.node, c.resource order by c.change_id)
) as w
group by w.system, w.node, w.resource, w.to_level;

comment on view parley_store.pressure_history is
'How often a resource has come to a level, how long it was there in all, and how long at most.';

create function parley_store.set_threshold(
  system text, resource text, medium_at double precision, high_at double precision, medium_below double precision,
  normal_below double precision, history_polls integer default 0, unit text default '', is_watched boolean default true,
  floor_at double precision default null, reserve_bytes bigint default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_queue_of(system) is not null;
  if coalesce(resource, '') = '' then
    found := parley_store._p_raise('missing', 'resource');
  end if;
  found := parley_store._p_require_range('history_polls', history_polls, 0, 1000000);
  if (
    normal_below <= medium_at and medium_below <= high_at and medium_at <= high_at and normal_below <= medium_below
    and coalesce(floor_at >= high_at, true) and coalesce(reserve_bytes > 0, true)
  ) is not true then
    found := parley_store._p_raise(
      'threshold', resource,
      format(
        'normal_below %s, medium_at %s, medium_below %s, high_at %s, floor_at %s, reserve_bytes %s',
        normal_below, medium_at, medium_below, high_at, floor_at, reserve_bytes
      )
    );
  end if;
  insert into parley_store._p_threshold as t (
    system, resource, unit, medium_at, high_at, medium_below, normal_below, history_polls, is_watched, floor_at,
    reserve_bytes
  )
  values ($1, $2, coalesce($8, ''), $3, $4, $5, $6, $7, coalesce($9, true), $10, $11)
  on conflict on constraint _p_threshold_pkey do update set
    unit = excluded.unit, medium_at = excluded.medium_at, high_at = excluded.high_at,
    medium_below = excluded.medium_below, normal_below = excluded.normal_below,
    history_polls = excluded.history_polls, is_watched = excluded.is_watched, floor_at = excluded.floor_at,
    reserve_bytes = excluded.reserve_bytes;
end
$$;

comment on function parley_store.set_threshold(
  text, text, double precision, double precision, double precision, double precision, integer, text, boolean,
  double precision, bigint
) is
'Says from which values on a resource is under pressure; a daemon reads it within ten seconds.
Arguments: system; resource; medium_at and high_at, above which the level rises; medium_below and normal_below, below
which it falls; history_polls, after how many polls above Normal later actions begin; unit; is_watched; floor_at, above
which nobody is excepted; reserve_bytes, of a volume, how much is to be left free.
Errors: PS001, PS002, PS008.
Source: spec hub-transport 14.2.';

create function parley_store.set_pressure_action(
  system text, resource text, action text, from_level text, after_history boolean default false
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_queue_of(system) is not null;
  if from_level is null then
    delete from parley_store._p_pressure_action as a
    where a.system = $1 and a.resource = $2 and a.action = $3;
    return;
  end if;
  insert into parley_store._p_pressure_action as a (system, resource, action, from_level, after_history)
  values ($1, $2, $3, upper($4 collate "C"), coalesce($5, false))
  on conflict on constraint _p_pressure_action_pkey do update set
    from_level = excluded.from_level, after_history = excluded.after_history;
end
$$;

comment on function parley_store.set_pressure_action(text, text, text, text, boolean) is
'Says what is done while a resource is at a level or above it.
Arguments: system; resource; action, a name of the system''s own; from_level, MEDIUM, HIGH or FLOOR (null: never);
after_history, at Medium only when it has lasted.
Errors: PS001, 23514 another level.
Source: spec hub-transport 14.3.';

create function parley_store.seed_thresholds(system text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_store._p_queue_of(system) is not null;
  insert into parley_store._p_threshold (
    system, resource, unit, medium_at, high_at, medium_below, normal_below, history_polls, floor_at, reserve_bytes
  )
  select seed_thresholds.system, t.resource, t.unit, t.medium_at, t.high_at, t.medium_below, t.normal_below, t.polls,
    t.floor_at, t.reserve_bytes
  from (values
    ('uncommitted', 'units', 999, 1500, 1000, 800, 10, null::double precision, null::bigint),
    ('work waiting', 'items', 9999, 15000, 10000, 2000, 300, null, null),
    ('process memory', '%', 72, 75, 73, 71, 30, null, null),
    ('system memory', '%', 88, 94, 89, 84, 0, null, null),
    ('memory stalls', '%', 20, 60, 50, 10, 10, null, null),
    ('data volume', '%', 96, 99, 97, 94, 0, 99.9, 524288000),
    ('log volume', '%', 89, 99, 90, 80, 0, 99.9, 5368709120),
    ('temporary volume', '%', 89, 99, 90, 80, 0, null, 524288000),
    ('commit latency', 'ms', 50, 250, 200, 40, 30, null, null),
    ('oldest transaction', 's', 900, 3600, 3000, 600, 30, null, null),
    ('connections', '%', 85, 95, 90, 80, 10, null, null),
    ('replica lag', 's', 10, 60, 30, 5, 30, null, null),
    ('retained log', 'MB', 5120, 20480, 10240, 4096, 30, null, null),
    ('vacuum debt', 'times', 5, 20, 15, 4, 150, null, null)
  ) as t (resource, unit, medium_at, high_at, medium_below, normal_below, polls, floor_at, reserve_bytes)
  on conflict do nothing;
end
$$;

comment on function parley_store.seed_thresholds(text) is
'Gives a system the thresholds of the resources that the store can measure, where it has none.
Arguments: system.
Errors: PS001.
Source: spec hub-transport 14.2.';

create function parley_store.record_pressure(
  system text, node text, resource text, event_id integer, from_level text, to_level text, measured double precision,
  actions text[], message text
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_change_id bigint;
begin
  found := parley_store._p_queue_of(system) is not null;
  insert into parley_store._p_pressure_change as c (
    system, node, resource, event_id, from_level, to_level, measured, actions, message
  )
  values ($1, coalesce($2, ''), $3, $4, $5, $6, $7, coalesce($8, '{}'), $9)
  returning c.change_id into v_change_id;
  perform parley_store.notify('parley_store_pressure', json_build_object(
    'system', system, 'node', node, 'resource', resource, 'event_id', event_id, 'from', from_level, 'to', to_level,
    'value', measured
  )::text);
  return v_change_id;
end
$$;

comment on function parley_store.record_pressure(
  text, text, text, integer, text, text, double precision, text[], text
) is
'Records a change of a level and notifies channel parley_store_pressure of it.
Arguments: system; node, which daemon; resource; event_id, 15004 to 15007; from_level and to_level; measured, the value;
actions, what is done from now on; message, the text of the event.
Errors: PS001.
Source: spec hub-transport 14.4.';

create function parley_store.measure(system text) returns table (resource text, value double precision)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  -- The sessions, standbys and slots that keep vacuum from removing dead rows: in this database, in others, on
  -- standbys, for replication.
  select 'oldest transaction', coalesce(max(extract(epoch from clock_timestamp() - a.xact_start)), 0)::double precision
  from pg_stat_activity as a
  where (a.backend_xid is not null or a.backend_xmin is not null)
    and a.backend_type in ('client backend', 'parallel worker', 'walsender')
  union all
  -- The kind of a session of somebody else is null for who may not read it.
  select 'connections', 100.0 * count(*)
    / greatest(
      current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer, 1
    )
  from pg_stat_activity as a
  where a.datid is not null and coalesce(a.backend_type, 'client backend') = 'client backend'
  union all
  select 'vacuum debt', coalesce(max(
    t.n_dead_tup / greatest(
      -- Tables that are emptied all the time have few live rows, and many dead ones between two vacuums.
      100000, current_setting('autovacuum_vacuum_threshold')::double precision
      + current_setting('autovacuum_vacuum_scale_factor')::double precision * t.n_live_tup
    )
  ), 0)
  from pg_stat_user_tables as t
  where t.schemaname in ('parley', 'parley_store', 'parley_' || system)
    and t.n_dead_tup > current_setting('autovacuum_vacuum_threshold')::double precision
  union all
  -- Null, and not measured, for who may not read it, or where nobody waits for a standby.
  select 'replica lag', l.seconds
  from (
    select max(extract(epoch from r.replay_lag))::double precision as seconds
    from pg_stat_replication as r
    where r.sync_state in ('sync', 'quorum')
  ) as l
  where l.seconds is not null
  union all
  select 'work waiting', (
    select count(*)
    from (
      select
      from parley_store._p_item as i
      join parley_store._p_lane as l using (lane_id)
      where l.system = measure.system
      limit 100000
    ) as o
  )
  where exists (
    select
    from parley_store._p_threshold as t
    where t.system = measure.system and t.resource = 'work waiting' and t.is_watched
  );
  if not pg_is_in_recovery() then
    return query
    select 'retained log',
      coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)), 0)::double precision / 1048576
    from pg_replication_slots as s
    where s.restart_lsn is not null;
  end if;
end
$$;

comment on function parley_store.measure(text) is
'Gives what the database itself knows of its pressure: the age of the oldest transaction that vacuum has to wait for,
in seconds; connections in percent of those that there may be; dead rows in multiples of what autovacuum begins at or
of 100,000; how far the slowest synchronous standby is behind, in seconds; what replication slots retain of the log,
in MB; and how many items wait in the lanes of a system, up to 100,000, where that is watched. Sessions of others and
standbys count where the owner of the store may read pg_stat_activity of all: grant it pg_read_all_stats.
Arguments: system.
Source: spec hub-transport 14.2.';
