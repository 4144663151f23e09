-- Lanes: where work waits, one for each next hop, port or host.
--
-- A lane is a row, made by the first work that is put into it and removed when it has been empty for a while. Its
-- items wait in _p_item (work.sql). A lane with work has a token: a message that names the lane, in a simple queue of
-- the broker. A daemon that wants work takes tokens from that queue, claims items of their lanes, and puts each token
-- back at the end while its lane has more. So lanes take turns. A lane that is tried again later has a delayed token.
-- The broker gives the order, the waiting, the wake-ups, delays and pauses.
--
-- Why items do not wait in simple queues themselves: a simple queue is three sequences and a view, and cannot be made
-- for each next hop, and take cannot be asked for the messages of one key. docs/internals/store.md has the figures.
--
-- A lane is two rows. The row of _p_lane never changes, so transactions that put work lock it for key share and hold up
-- no other. The row of _p_lane_state is for claims.
--
-- Invariants, and what keeps each:
--   a lane with work is scheduled, or a token is on its way   a transaction that puts work locks the lane, then
--     reads is_scheduled, and puts a token when that is false, unless the newest activation says that one waits; it
--     becomes false only under a lock on the lane that excludes these, when a statement after that finds no work
--   one token of a lane counts   token_number: others are dropped
--   a token that is lost is made anew   repair_lanes
-- Locks: rows of _p_lane by lane_id, then of _p_lane_state, then items. A claim skips locked rows.

create table parley_store._p_lane (
  lane_id bigint generated always as identity primary key,
  system text not null references parley_store._p_system,
  lane text not null,
  created_at timestamptz not null default clock_timestamp(),
  unique (system, lane)
);

comment on table parley_store._p_lane is 'Lanes: their names, which do not change.';

create table parley_store._p_lane_state (
  lane_id bigint primary key references parley_store._p_lane on delete cascade,
  is_scheduled boolean not null default false,
  token_number bigint not null default 0,
  activated_to bigint not null default 0,
  visited_at timestamptz not null default clock_timestamp(),
  is_permanent boolean not null default false,
  is_blocked boolean not null default false,
  lease_max integer,
  lease_start integer,
  lease_limit integer,
  priority_shares integer[],
  retry_policy text not null default 'default' references parley_store._p_retry_policy,
  suspended_at timestamptz,
  suspended_for text,
  failures integer not null default 0,
  failing_since timestamptz,
  next_attempt_at timestamptz,
  last_error text,
  succeeded_at timestamptz
) with (fillfactor = 50);

comment on table parley_store._p_lane_state is 'How lanes are doing: small rows, updated in place.';
comment on column parley_store._p_lane_state.is_scheduled is
'A token of the lane is in the queue, or the claim that has it will put it back.';
comment on column parley_store._p_lane_state.token_number is 'The number of the token that counts.';
comment on column parley_store._p_lane_state.is_blocked is 'It has no token because lease_max leases are out.';

comment on column parley_store._p_lane_state.lease_start is
'The number of leases that may be out at first, where it adapts to the next hop; null: it does not adapt.';

comment on column parley_store._p_lane_state.lease_limit is
'The number of leases that may be out now, where it adapts; null: lease_start.';

comment on column parley_store._p_lane_state.priority_shares is
'For each priority from 1 to 10 the percentage of the leases that may begin with it; null: all may.';

comment on column parley_store._p_lane_state.activated_to is
'The newest activation when a claim last left the lane: for a newer one a token waits.';

create table parley_store._p_activation (
  lane_id bigint not null,
  activation_id bigint generated always as identity,
  created_at timestamptz not null default clock_timestamp(),
  primary key (lane_id, activation_id)
);

comment on table parley_store._p_activation is
'The tokens of lanes that were put with work. The newest row of a lane stays, so that it is found at the end.';

-- No unique key: two transactions that use a new priority do not wait for each other, and a second row does no harm.
create table parley_store._p_lane_priority (
  lane_id bigint not null references parley_store._p_lane on delete cascade,
  priority smallint not null
);

comment on table parley_store._p_lane_priority is
'Which priorities were used in a lane. Those above 10 are of items that were given back: they stand in front of the
others of the priority that is 10 less.';

alter table parley_store._p_lane_priority replica identity full;

create index on parley_store._p_lane_priority (lane_id, priority);

create function parley_store._p_leases_allowed(state parley_store._p_lane_state) returns integer
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when state.lease_start is null then state.lease_max
    when state.failures > 0 then 1
    else least(state.lease_max, coalesce(state.lease_limit, state.lease_start))
  end
$$;

comment on function parley_store._p_leases_allowed(parley_store._p_lane_state) is
'Gives how many leases of a lane may be out; null: any number. Where it adapts, a next hop that failed is tried by one
until it is reached.';

create view parley_store.lanes as
select
  l.lane_id, l.system, l.lane, l.created_at,
  case
    when s.suspended_at is not null then 'SUSPENDED'
    when s.next_attempt_at > clock_timestamp() and s.failures = 0 then 'POSTPONED'
    when s.next_attempt_at > clock_timestamp() then 'RETRY'
    when s.is_scheduled then 'ACTIVE'
    else 'READY'
  end as status,
  s.is_permanent, s.lease_max, s.retry_policy, s.suspended_at, s.suspended_for, s.failures, s.failing_since,
  s.next_attempt_at, s.last_error, s.succeeded_at, s.visited_at, s.lease_start,
  parley_store._p_leases_allowed(s) as leases_allowed, s.priority_shares
from parley_store._p_lane as l
join parley_store._p_lane_state as s using (lane_id);

comment on view parley_store.lanes is 'The lanes that there are, and how they are doing.';
comment on column parley_store.lanes.status is
'SUSPENDED by an operator; RETRY: the last attempt failed and the next is not due; POSTPONED: it was put off without a
failure; ACTIVE: it has work; READY: empty.';
comment on column parley_store.lanes.leases_allowed is
'How many leases may be out now, where lease_max is not what counts.';

create function parley_store.add_system(system text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := format('parley_store_%s', system);
begin
  perform from parley_store._p_system as s where s.system = add_system.system;
  if found then
    return;
  end if;
  perform parley.create_queue(
    v_queue, kind => 'SIMPLE', poison_message_handling => false, caller => parley.current_caller()
  );
  insert into parley_store._p_system (system, queue_name) values (add_system.system, v_queue);
end
$$;

comment on function parley_store.add_system(text) is
'Registers a system that uses the store, with the simple queue on which its lanes wait: parley_store_ and its name. It
does nothing when it is registered.
Arguments: system, lower-case letters, digits and underlines, at most 31.
Errors: those of parley.create_queue, 23514 malformed name.';

create function parley_store._p_lane_id(system text, lane text) returns bigint
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint;
begin
  select l.lane_id into v_lane_id
  from parley_store._p_lane as l
  where l.system = _p_lane_id.system and l.lane = _p_lane_id.lane;
  if not found then
    found := parley_store._p_raise('lane', coalesce(lane, 'null'), coalesce(system, 'null'));
  end if;
  return v_lane_id;
end
$$;

comment on function parley_store._p_lane_id(text, text) is
'Finds a lane.
Errors: PS006.';

create function parley_store._p_make_lanes(system text, names text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- In one order, so that two transactions that make the same lanes do not wait for each other.
  with made as (
    insert into parley_store._p_lane (system, lane)
    select _p_make_lanes.system, n.name
    from (select distinct u.name from unnest(names) as u (name) order by u.name) as n
    where not exists (
      select from parley_store._p_lane as o where o.system = _p_make_lanes.system and o.lane = n.name
    )
    on conflict do nothing
    returning lane_id
  )
  insert into parley_store._p_lane_state (lane_id)
  select m.lane_id from made as m;
end
$$;

comment on function parley_store._p_make_lanes(text, text[]) is 'Makes those of some lanes that do not exist.';

create function parley_store.set_lane(
  system text, lane text, is_permanent boolean default null, lease_max integer default null,
  retry_policy text default null, lease_start integer default null, priority_shares integer[] default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint;
begin
  found := parley_store._p_queue_of(system) is not null;
  if lane is null then
    found := parley_store._p_raise('missing', 'lane');
  end if;
  if lease_max is not null then
    found := parley_store._p_require_range('lease_max', lease_max, 0, 100000);
  end if;
  if lease_start is not null then
    found := parley_store._p_require_range('lease_start', lease_start, 0, 100000);
  end if;
  if priority_shares is not null then
    found := parley_store._p_require_range('priority_shares', cardinality(priority_shares), 10, 10);
    perform parley_store._p_require_range('priority_shares', u.share, 1, 100) from unnest(priority_shares) as u (share);
  end if;
  if retry_policy is not null then
    found := (parley_store._p_policy(retry_policy)).policy is not null;
  end if;
  perform parley_store._p_make_lanes(system, array[lane]);
  v_lane_id := parley_store._p_lane_id(system, lane);
  update parley_store._p_lane_state as s
  set
    is_permanent = coalesce(set_lane.is_permanent, s.is_permanent),
    lease_max = case when set_lane.lease_max is null then s.lease_max else nullif(set_lane.lease_max, 0) end,
    retry_policy = coalesce(set_lane.retry_policy, s.retry_policy),
    lease_start = case when set_lane.lease_start is null then s.lease_start else nullif(set_lane.lease_start, 0) end,
    priority_shares = coalesce(set_lane.priority_shares, s.priority_shares)
  where s.lane_id = v_lane_id;
end
$$;

comment on function parley_store.set_lane(text, text, boolean, integer, text, integer, integer[]) is
'Makes a lane, or changes what it is given; null leaves a setting as it is.
Arguments: system; lane; is_permanent, whether it stays when it is empty; lease_max, how many leases of it may be out at
a time (0: any number; 1: its items are worked on in their order); retry_policy, for its failures and those of its
items; lease_start, with how many leases to begin where their number adapts to what the next hop bears (0: it does not):
it grows with successes up to lease_max, is halved by each failure, and is one while the next hop fails;
priority_shares, for each priority from 1 to 10 the percentage of leases that may begin with it, at least one lease.
Errors: PS001, PS002, PS007.';
