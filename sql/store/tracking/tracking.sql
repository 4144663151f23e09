-- Tracking: what has happened to each message, append-only.
--
-- One partition a day (UTC), made some days ahead and dropped when it is older than the retention. A row is one event
-- of one message, with its recipients in an array. Rows are found by message and by time.
-- Locks: making a partition takes the row of _p_tracking_maker, first of all, and then a lock on the parent that lets
-- everybody read and append. Dropping one needs the parent to itself for a moment: it is tried without waiting, and
-- again at the next call.

create sequence parley_store._p_tracking_log_id cache 32;

create table parley_store._p_tracking (
  at timestamptz not null default clock_timestamp(),
  system text not null,
  event text not null,
  source text not null default '',
  message_id text,
  recipients text[] not null default '{}',
  fields jsonb not null default '{}',
  log_id bigint not null default nextval('parley_store._p_tracking_log_id')
) partition by range (at);

comment on table parley_store._p_tracking is
'Events of messages, a partition a day: _p_tracking_YYYYMMDD. log_id: a number of its own for each.';

alter table parley_store._p_tracking replica identity full;

create index on parley_store._p_tracking (message_id, at);
create index on parley_store._p_tracking (at);

create table parley_store._p_tracking_day (
  day date primary key,
  made_at timestamptz not null default clock_timestamp()
);

comment on table parley_store._p_tracking_day is 'The days for which there is a partition.';

create table parley_store._p_tracking_maker (is_only boolean primary key default true check (is_only));

comment on table parley_store._p_tracking_maker is
'One row, and whoever makes a partition locks it. A lock of the row needs a right to the table, while any role could
take an advisory lock.';

insert into parley_store._p_tracking_maker (is_only) values (true);

create view parley_store.tracking as
select t.at, t.system, t.event, t.source, t.message_id, t.recipients, t.fields, t.log_id
from parley_store._p_tracking as t;

comment on view parley_store.tracking is 'The events of each message, as far back as the retention.';

create function parley_store._p_make_tracking_day(day date) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := format('_p_tracking_%s', to_char(day, 'YYYYMMDD'));
begin
  perform from parley_store._p_tracking_maker as k for update;
  perform from parley_store._p_tracking_day as d where d.day = _p_make_tracking_day.day;
  if found then
    return;
  end if;
  execute format(
    'create table parley_store.%I (like parley_store._p_tracking including defaults including constraints)', v_name
  );
  perform parley_store.take_back_relation(format('parley_store.%I', v_name)::regclass);
  execute format('alter table parley_store.%I replica identity full', v_name);
  -- To attach it is less of a lock than to create it as a partition.
  execute format(
    'alter table parley_store._p_tracking attach partition parley_store.%I for values from (%L) to (%L)',
    v_name, day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'
  );
  insert into parley_store._p_tracking_day (day) values (_p_make_tracking_day.day);
end
$$;

comment on function parley_store._p_make_tracking_day(date) is 'Makes the partition of a day, if there is none.';

create function parley_store.track(
  system text, events text[], message_ids text[], recipients jsonb default null, fields jsonb default null,
  sources text[] default null, times timestamptz[] default null
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now constant timestamptz := clock_timestamp();
  v_day date;
  v_rows integer;
begin
  found := parley_store._p_queue_of(system) is not null;
  if events is null or array_position(events, null) is not null then
    found := parley_store._p_raise('missing', 'event');
  elsif cardinality(events) <> cardinality(message_ids) then
    found := parley_store._p_raise(
      'lengths', 'events', cardinality(events)::text, 'message_ids', cardinality(message_ids)::text
    );
  end if;
  for v_day in
    select distinct (coalesce(t.at, v_now) at time zone 'UTC')::date
    from unnest(coalesce(times, array[v_now])) as t (at)
  loop
    if not exists (select from parley_store._p_tracking_day as d where d.day = v_day) then
      perform parley_store._p_make_tracking_day(v_day);
    end if;
  end loop;
  insert into parley_store._p_tracking (at, system, event, source, message_id, recipients, fields)
  select
    coalesce(e.at, v_now), track.system, e.event, coalesce(e.source, ''), e.message_id,
    case when jsonb_typeof(recipients -> (e.n::integer - 1)) = 'array'
      then array(select r.address from jsonb_array_elements_text(recipients -> (e.n::integer - 1)) as r (address))
      else '{}'
    end,
    coalesce(fields -> (e.n::integer - 1), '{}')
  from unnest(events, message_ids, sources, times) with ordinality as e (event, message_id, source, at, n)
  where e.event is not null;
  get diagnostics v_rows = row_count;
  return v_rows;
end
$$;

comment on function parley_store.track(text, text[], text[], jsonb, jsonb, text[], timestamptz[]) is
'Appends events; gives how many. Append many in one call, and with synchronous_commit = off where they may be lost with
the server.
Arguments: system; events and message_ids, one for each; recipients, an array of arrays of addresses; fields, an array
of objects; sources, what of the system saw it; times, null for now.
Errors: PS001, PS002.
Source: spec hub-transport 16.';

create function parley_store.maintain_tracking(days_ahead integer default 3, retention interval default '30 days')
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_today constant date := (clock_timestamp() at time zone 'UTC')::date;
  v_day date;
  v_dropped integer := 0;
begin
  found := parley_store._p_require_range('days_ahead', days_ahead, 0, 100);
  found := parley_store._p_require_range('retention', retention, '1 day', '100 years');
  for v_day in select v_today + g.n from generate_series(0, days_ahead) as g (n) loop
    if not exists (select from parley_store._p_tracking_day as d where d.day = v_day) then
      perform parley_store._p_make_tracking_day(v_day);
    end if;
  end loop;
  for v_day in
    select d.day
    from parley_store._p_tracking_day as d
    where (d.day + 1)::timestamp at time zone 'UTC' < clock_timestamp() - retention
    order by d.day
  loop
    begin
      lock table parley_store._p_tracking in access exclusive mode nowait;
      execute format('drop table if exists parley_store.%I', format('_p_tracking_%s', to_char(v_day, 'YYYYMMDD')));
      delete from parley_store._p_tracking_day as d where d.day = v_day;
      v_dropped := v_dropped + 1;
    exception
      when lock_not_available then
        exit;
    end;
  end loop;
  return v_dropped;
end
$$;

comment on function parley_store.maintain_tracking(integer, interval) is
'Makes the partitions of the next days, and drops those that are older than the retention, when nobody reads or appends
at that moment; gives how many were dropped. Call it every minute or so.
Arguments: days_ahead, 0 to 100; retention, from 1 day on.
Errors: PS002.
Source: spec hub-transport 16.';
