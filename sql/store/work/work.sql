-- Work: items that wait in lanes, and how they get there.
--
-- An item is what has to be done: a number of the system's own, a few bytes of data. Those that wait stand in _p_item,
-- in the order of their transactions and, within one, of item_id. Those that are claimed stand in _p_in_flight under a
-- lease, those that are tried again later in _p_delayed_item, those that are suspended in _p_suspended_item.
--
-- Where in a lane to scan for the first of them is said by its mark (lane_marks.sql).
--
-- Locks: rows of _p_lane for key share; items by who claims, skip locked.
-- Cost of put_work: five statements for a batch.

create sequence parley_store._p_item_id cache 64;

create table parley_store._p_item (
  lane_id bigint not null,
  priority smallint not null,
  put_by xid8 not null default pg_current_xact_id(),
  item_id bigint not null,
  subject bigint not null,
  attempts integer not null default 0,
  since timestamptz not null,
  expires_at timestamptz,
  data bytea,
  last_error text,
  primary key (lane_id, priority, put_by, item_id)
);

comment on table parley_store._p_item is 'Items that wait to be claimed.';

create table parley_store._p_in_flight (
  lease_id bigint not null,
  item_id bigint not null,
  lane_id bigint not null,
  priority smallint not null,
  put_by xid8 not null,
  subject bigint not null,
  attempts integer not null,
  since timestamptz not null,
  expires_at timestamptz,
  data bytea,
  last_error text,
  is_to_suspend boolean,
  reason text,
  primary key (lease_id, item_id)
);

comment on table parley_store._p_in_flight is 'Items that somebody works on.';
comment on column parley_store._p_in_flight.is_to_suspend is
'The operator''s wish for it when it does not succeed: true suspend it, false remove it, null nothing.';

create table parley_store._p_delayed_item (
  item_id bigint primary key,
  lane_id bigint not null,
  due_at timestamptz not null,
  priority smallint not null,
  subject bigint not null,
  attempts integer not null,
  since timestamptz not null,
  expires_at timestamptz,
  data bytea,
  last_error text
);

comment on table parley_store._p_delayed_item is 'Items that are not due yet.';

create index on parley_store._p_delayed_item (lane_id, item_id);
create index on parley_store._p_delayed_item (due_at);

create table parley_store._p_suspended_item (
  item_id bigint primary key,
  lane_id bigint not null,
  priority smallint not null,
  subject bigint not null,
  attempts integer not null,
  since timestamptz not null,
  expires_at timestamptz,
  data bytea,
  last_error text,
  reason text,
  suspended_at timestamptz not null default clock_timestamp()
);

comment on table parley_store._p_suspended_item is 'Items that are not worked on until somebody resumes them.';

create index on parley_store._p_suspended_item (lane_id);

create table parley_store._p_lease (
  lease_id bigint generated always as identity primary key,
  lane_id bigint not null,
  holder text not null,
  priority smallint,
  claimed_at timestamptz not null default clock_timestamp(),
  until timestamptz not null
);

comment on table parley_store._p_lease is
'The holders of items, and until when the items are theirs. lease_id grows: it is the fencing number. priority: that
of the first of its items, where the lane has shares.';

create index on parley_store._p_lease (lane_id);
create index on parley_store._p_lease (until);

create function parley_store._p_newest_activation(lane_id bigint) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
  return (
    select a.activation_id
    from parley_store._p_activation as a
    where a.lane_id = _p_newest_activation.lane_id
    order by a.activation_id desc
    limit 1
  );
end
$$;

comment on function parley_store._p_newest_activation(bigint) is
'Gives the newest activation of a lane; null without any.';

create function parley_store._p_wake_lanes(lane_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_tokens record;
begin
  for v_tokens in
    with activated as (
      insert into parley_store._p_activation (lane_id)
      select s.lane_id
      from parley_store._p_lane_state as s
      where s.lane_id = any (lane_ids)
        -- An old snapshot may not see that the lane has been left since; a token too many is dropped.
        and not (
          parley_store._p_sees_all()
          and (s.is_scheduled or coalesce(parley_store._p_newest_activation(s.lane_id) > s.activated_to, false))
        )
      returning lane_id
    )
    select y.queue_name, array_agg(format('lane %s 0', l.lane_id)) as bodies
    from activated as a
    join parley_store._p_lane as l using (lane_id)
    join parley_store._p_system as y using (system)
    group by y.queue_name
  loop
    perform parley.put_batch(v_tokens.queue_name, v_tokens.bodies);
  end loop;
end
$$;

comment on function parley_store._p_wake_lanes(bigint[]) is
'Puts tokens of those of some lanes that are not scheduled and for which none waits. The caller has locked the lanes
and put work there.';

create function parley_store._p_lock_lanes(system text, names text[], priority integer) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  -- A lane may be removed between the making and the locking.
  for i in 1..10 loop
    select array_agg(l.lane_id order by l.n) into v_ids
    from (
      select o.lane_id, n.n
      from unnest(names) with ordinality as n (name, n)
      left join parley_store._p_lane as o on o.system = _p_lock_lanes.system and o.lane = n.name
    ) as l;
    perform
    from parley_store._p_lane as l
    where l.lane_id = any (v_ids)
    order by l.lane_id
    for key share;
    exit when array_position(v_ids, null) is null
      and not exists (
        select from unnest(v_ids) as u (lane_id)
        where not exists (select from parley_store._p_lane as l where l.lane_id = u.lane_id)
      );
    perform parley_store._p_make_lanes(system, names);
  end loop;
  insert into parley_store._p_lane_priority (lane_id, priority)
  select u.lane_id, _p_lock_lanes.priority
  from unnest(v_ids) as u (lane_id)
  where not exists (
    select from parley_store._p_lane_priority as p
    where p.lane_id = u.lane_id and p.priority = _p_lock_lanes.priority
  );
  return v_ids;
end
$$;

comment on function parley_store._p_lock_lanes(text, text[], integer) is
'Gives the lanes of some names, in their order, and locks them against being removed; makes those that there are not.';

create function parley_store.put_work(
  system text, lanes text[], subjects bigint[], data bytea[] default null, priority integer default 5,
  deliver_at timestamptz default null, expires_at timestamptz default null, weights bigint[] default null
) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_names text[];
  v_ids bigint[];
  v_lanes bigint[];
  v_items bigint[];
begin
  found := parley_store._p_queue_of(system) is not null;
  found := parley_store._p_require_range('priority', priority, 1, 10);
  found := parley_store._p_require_work(lanes, subjects, data);
  if cardinality(lanes) = 0 then
    return '{}'::bigint[];
  end if;
  select array_agg(distinct u.name) into v_names from unnest(lanes) as u (name);
  v_ids := parley_store._p_lock_lanes(system, v_names, priority);
  select array_agg(i.lane_id order by u.n), array_agg(nextval('parley_store._p_item_id') order by u.n)
  into v_lanes, v_items
  from unnest(lanes) with ordinality as u (name, n)
  join unnest(v_names, v_ids) as i (name, lane_id) on i.name = u.name;
  insert into parley_store._p_lane_change (lane_id, priority, came, weight)
  select i.lane_id, put_work.priority, count(*), coalesce(sum(i.weight), 0)
  from unnest(v_lanes, weights) as i (lane_id, weight)
  group by i.lane_id;
  if deliver_at > clock_timestamp() then
    insert into parley_store._p_delayed_item (
      item_id, lane_id, due_at, priority, subject, attempts, since, expires_at, data
    )
    select
      i.item_id, i.lane_id, deliver_at, put_work.priority, i.subject, 0, clock_timestamp(), put_work.expires_at,
      i.data
    from unnest(v_items, v_lanes, subjects, data) as i (item_id, lane_id, subject, data);
    perform parley_store._p_put_due_token(system, d.lane_id, d.items, deliver_at)
    from (
      select i.lane_id, array_agg(i.item_id) as items
      from unnest(v_items, v_lanes) as i (item_id, lane_id)
      group by i.lane_id
    ) as d;
    return v_items;
  end if;
  insert into parley_store._p_item (lane_id, priority, item_id, subject, since, expires_at, data)
  select i.lane_id, put_work.priority, i.item_id, i.subject, clock_timestamp(), put_work.expires_at, i.data
  from unnest(v_items, v_lanes, subjects, data) as i (item_id, lane_id, subject, data);
  perform parley_store._p_wake_lanes(v_ids);
  return v_items;
end
$$;

comment on function parley_store.put_work(
  text, text[], bigint[], bytea[], integer, timestamptz, timestamptz, bigint[]
) is
'Puts items of work into lanes, in this transaction, and gives their numbers in the order of the arrays. A lane that
does not exist is made. It waits for nobody who puts or claims.
Arguments: system; lanes, one for each item; subjects, numbers of the system''s own; data, null or one for each item, up
to a few hundred bytes; priority, 10 first, 1 last; deliver_at, not before that time (null: now); expires_at, after
which they are given up (null: never); weights, null or one for each item, such as bytes: for the counts alone.
Errors: PS001, PS002, and those of parley.put when the system''s queue is disabled.';

create function parley_store._p_require_work(lanes text[], subjects bigint[], data bytea[]) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if lanes is null or array_position(lanes, null) is not null then
    found := parley_store._p_raise('missing', 'lane');
  elsif subjects is null or array_position(subjects, null) is not null then
    found := parley_store._p_raise('missing', 'subject');
  elsif cardinality(subjects) <> cardinality(lanes) then
    found := parley_store._p_raise(
      'lengths', 'lanes', cardinality(lanes)::text, 'subjects', cardinality(subjects)::text
    );
  elsif cardinality(data) <> cardinality(lanes) then
    found := parley_store._p_raise('lengths', 'lanes', cardinality(lanes)::text, 'data', cardinality(data)::text);
  end if;
  return true;
end
$$;

comment on function parley_store._p_require_work(text[], bigint[], bytea[]) is
'Refuses arrays that do not fit.
Errors: PS002.';

create function parley_store._p_put_due_token(system text, lane_id bigint, items bigint[], due_at timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley.put(
    parley_store._p_queue_of(system),
    convert_to(format('due %s %s', lane_id, array_to_string(items, ' ')), 'UTF8'),
    deliver_at => due_at, caller => parley.current_caller()
  );
end
$$;

comment on function parley_store._p_put_due_token(text, bigint, bigint[], timestamptz) is
'Puts a token that says that delayed items are due, to be taken at that time.';
