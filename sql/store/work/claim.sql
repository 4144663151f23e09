-- Claiming: a daemon takes a batch of items under a lease, for a term.
--
-- claim_work takes a token, claims from its lane and puts the token back, all in one short transaction. Nothing is
-- locked while the daemon works on the items. claim_lane claims from one lane that the caller has chosen.
--
-- Invariants, and what keeps each:
--   an item is in one place   claiming deletes it from _p_item and inserts it into _p_in_flight in one statement
--   it is claimed once   the lock of its row
--   nothing waits before a mark   _p_renew_mark (lane_marks.sql)
-- Locks: the state of a lane, items, both skip locked; the lane itself when it seems to be empty, skip locked.

create type parley_store.claimed_item as (
  lease_id bigint,
  lane text,
  item_id bigint,
  subject bigint,
  priority smallint,
  attempts integer,
  since timestamptz,
  expires_at timestamptz,
  data bytea,
  last_error text
);

comment on type parley_store.claimed_item is
'An item of work under a lease. attempts is the number of attempts that failed.';

create function parley_store._p_claim_range(
  lane_id bigint, priority integer, from_xact xid8, from_item bigint, to_xact xid8, items integer, lease_id bigint
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_claimed integer;
begin
  with picked as materialized (
    select i.ctid as row_id
    from parley_store._p_item as i
    where i.lane_id = _p_claim_range.lane_id
      and i.priority = _p_claim_range.priority
      and (i.put_by, i.item_id) >= (from_xact, from_item)
      and i.put_by <= to_xact
    order by i.put_by, i.item_id
    limit items
    for update skip locked
  ),

  taken as (
    delete from parley_store._p_item as i
    using picked as p
    where i.ctid = p.row_id
    returning i.put_by, i.item_id, i.subject, i.attempts, i.since, i.expires_at, i.data, i.last_error
  )

  insert into parley_store._p_in_flight (
    lease_id, item_id, lane_id, priority, put_by, subject, attempts, since, expires_at, data, last_error
  )
  select
    _p_claim_range.lease_id, t.item_id, _p_claim_range.lane_id, _p_claim_range.priority, t.put_by, t.subject,
    t.attempts, t.since, t.expires_at, t.data, t.last_error
  from taken as t;
  get diagnostics v_claimed = row_count;
  return v_claimed;
end
$$;

comment on function parley_store._p_claim_range(bigint, integer, xid8, bigint, xid8, integer, bigint) is
'Claims the first free items of a lane that were put by transactions of a range; gives how many.';

create function parley_store._p_has_share(lane_id bigint, priority integer) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (
      select count(*)
      from parley_store._p_lease as e
      where e.lane_id = _p_has_share.lane_id and e.priority = (_p_has_share.priority - 1) % 10 + 1
    ) < greatest(
      ceil(parley_store._p_leases_allowed(s) * s.priority_shares[(_p_has_share.priority - 1) % 10 + 1] / 100.0), 1
    ), true
  )
  from parley_store._p_lane_state as s
  where s.lane_id = _p_has_share.lane_id
$$;

comment on function parley_store._p_has_share(bigint, integer) is
'Reports whether one lease more of a lane may begin with a priority.
Source: spec hub-transport 10.';

create function parley_store._p_claim_items(
  lane_id bigint, items integer, lease_id bigint, is_turned boolean default false
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_priority integer;
  v_mark parley_store._p_lane_mark;
  v_other record;
  v_before integer;
  v_claimed integer := 0;
  v_has_shares boolean;
begin
  select s.priority_shares is not null into v_has_shares
  from parley_store._p_lane_state as s
  where s.lane_id = _p_claim_items.lane_id;
  for v_priority in
    select o.priority
    from (
      select distinct p.priority, (p.priority - 1) % 10 as class
      from parley_store._p_lane_priority as p
      where p.lane_id = _p_claim_items.lane_id
    ) as o
    order by case when is_turned then o.class else -o.class end, o.priority desc
  loop
    continue when v_claimed = 0 and v_has_shares and not parley_store._p_has_share(lane_id, v_priority);
    v_before := v_claimed;
    v_mark := parley_store._p_newest_mark(lane_id, v_priority);
    for v_other in
      select o.put_by, o.item_id
      from unnest(v_mark.other_xacts, v_mark.other_items) as o (put_by, item_id)
      order by o.put_by
    loop
      exit when v_claimed = items;
      v_claimed := v_claimed + parley_store._p_claim_range(
        lane_id, v_priority, v_other.put_by, v_other.item_id, v_other.put_by, items - v_claimed, lease_id
      );
    end loop;
    if v_claimed < items then
      v_claimed := v_claimed + parley_store._p_claim_range(
        lane_id, v_priority, v_mark.from_xact, v_mark.from_item, '18446744073709551615', items - v_claimed, lease_id
      );
    end if;
    -- Often enough that a claim passes by a few hundred dead rows at most, as a rule.
    if random() < (v_claimed - v_before) / 256.0 or v_claimed = v_before and random() < 0.1 then
      perform parley_store._p_renew_mark(lane_id, v_priority, v_mark);
    end if;
    if v_has_shares and v_before = 0 and v_claimed > 0 then
      update parley_store._p_lease as e
      set priority = (v_priority - 1) % 10 + 1
      where e.lease_id = _p_claim_items.lease_id;
    end if;
    exit when v_claimed = items;
  end loop;
  return v_claimed;
end
$$;

comment on function parley_store._p_claim_items(bigint, integer, bigint, boolean) is
'Claims items of a lane, the highest priority first, and within it in their order, those that were given back before
others; gives how many.
Arguments: lane_id; items, how many at most; lease_id; is_turned, begin with the lowest priority.';

create function parley_store._p_open_lease(lane_id bigint, lease interval, holder text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease_id bigint;
begin
  insert into parley_store._p_lease as e (lane_id, holder, until)
  values (_p_open_lease.lane_id, _p_open_lease.holder, clock_timestamp() + lease)
  returning e.lease_id into v_lease_id;
  return v_lease_id;
end
$$;

comment on function parley_store._p_open_lease(bigint, interval, text) is 'Begins a lease on items of a lane.';

create function parley_store._p_claimed(lease_ids bigint[]) returns setof parley_store.claimed_item
language plpgsql stable
set search_path = pg_catalog, pg_temp
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query
  select
    f.lease_id, l.lane, f.item_id, f.subject, ((f.priority - 1) % 10 + 1)::smallint, f.attempts, f.since, f.expires_at,
    f.data, f.last_error
  from parley_store._p_in_flight as f
  join parley_store._p_lane as l using (lane_id)
  where f.lease_id = any (lease_ids)
  order by f.lease_id, (f.priority - 1) % 10 desc, f.priority desc, f.put_by, f.item_id;
end
$$;

comment on function parley_store._p_claimed(bigint[]) is 'Gives the items of some leases.';

create function parley_store.claim_lane(
  system text, lane text, items integer default 100, lease interval default '1 minute', holder text default ''
) returns setof parley_store.claimed_item
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane_id bigint := parley_store._p_lane_id(system, lane);
  v_lease_id bigint;
  v_state parley_store._p_lane_state;
begin
  found := parley_store._p_require_range('items', items, 1, 10000);
  found := parley_store._p_require_range('lease', lease, '1 second', '1 day');
  -- Where the number of leases is limited, claims of a lane count them one after the other, under this lock.
  select * into v_state from parley_store._p_lane_state as s where s.lane_id = v_lane_id;
  if parley_store._p_leases_allowed(v_state) is not null then
    perform from parley_store._p_lane_state as s where s.lane_id = v_lane_id for update;
  end if;
  if v_state.suspended_at is not null
    or v_state.next_attempt_at > clock_timestamp()
    or parley_store._p_leases_allowed(v_state)
    <= (select count(*) from parley_store._p_lease as e where e.lane_id = v_lane_id) then
    return;
  end if;
  v_lease_id := parley_store._p_open_lease(v_lane_id, lease, coalesce(holder, ''));
  if parley_store._p_claim_items(v_lane_id, items, v_lease_id) = 0 then
    delete from parley_store._p_lease as e where e.lease_id = v_lease_id;
    return;
  end if;
  return query select c.* from parley_store._p_claimed(array[v_lease_id]) as c;
end
$$;

comment on function parley_store.claim_lane(text, text, integer, interval, text) is
'Claims items of one lane under a lease, without waiting. Gives nothing when the lane is suspended, in retry, or has as
many leases as it may. Commit before you begin the work.
Arguments: system; lane; items, 1 to 10,000; lease, 1 second to 1 day; holder, a name for who works on them.
Errors: PS001, PS002, PS006.';

create function parley_store._p_due_work(body text) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_words text[] := string_to_array(body, ' ');
  v_lane_id bigint := v_words[2]::bigint;
begin
  perform parley_store._p_make_ready(v_words[3:]::bigint[]);
  return v_lane_id;
end
$$;

comment on function parley_store._p_due_work(text) is
'Puts the due items that a token names at the end of their lane, and gives the lane.';

create function parley_store._p_wait_for_share(lane_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform
  from parley_store._p_lane_state as s
  where s.lane_id = _p_wait_for_share.lane_id and s.is_scheduled
    and exists (select from parley_store._p_lease as e where e.lane_id = s.lane_id);
  if found then
    perform parley_store._p_schedule(lane_id, clock_timestamp() + interval '250 milliseconds');
    update parley_store._p_lane_state as s set is_blocked = true where s.lane_id = _p_wait_for_share.lane_id;
  end if;
end
$$;

comment on function parley_store._p_wait_for_share(bigint) is
'Has a lane wait whose priorities have all the leases of their shares: until a lease ends, or work comes of a priority
that may still have one.';

create function parley_store._p_is_passed_by(lane_id bigint, beginnings text[]) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley_store._p_lane as l
    cross join unnest(beginnings) as b (beginning)
    where l.lane_id = _p_is_passed_by.lane_id
      and (starts_with(l.lane || '#', b.beginning) or l.lane || '##' = b.beginning)
  )
$$;

comment on function parley_store._p_is_passed_by(bigint, text[]) is
'Reports whether the name of a lane, with # at its end, begins with one of some texts, or is one of them, with ## at its
end, itself.';

create function parley_store.claim_work(
  system text, items integer default 100, lanes integer default 1, lease interval default '1 minute',
  holder text default '', timeout integer default 0, each integer default null, passed_by text[] default null
) returns setof parley_store.claimed_item
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue text := parley_store._p_queue_of(system);
  v_token text;
  v_state parley_store._p_lane_state;
  v_lease_id bigint;
  v_leases bigint[] := '{}'::bigint[];
  v_timeout integer := timeout;
  v_tokens integer;
  v_left integer := items;
  v_wanted integer;
  v_claimed integer;
begin
  found := parley_store._p_require_range('items', items, 1, 10000);
  found := parley_store._p_require_range('lanes', lanes, 1, 1000);
  found := parley_store._p_require_range('each', coalesce(each, items), 1, 10000);
  found := parley_store._p_require_range('lease', lease, '1 second', '1 day');
  found := parley_store._p_require_read_committed();
  loop
    v_tokens := 0;
    for v_token in
      select convert_from(t.body, 'UTF8')
      from parley.take(v_queue, lanes, timeout => v_timeout, caller => parley.current_caller()) as t
    loop
      v_tokens := v_tokens + 1;
      if v_token like 'due %' then
        perform parley_store._p_due_work(v_token);
        continue;
      end if;
      v_state := parley_store._p_take_token(split_part(v_token, ' ', 2)::bigint, split_part(v_token, ' ', 3)::bigint);
      continue when v_state.lane_id is null;
      if passed_by is not null and parley_store._p_is_passed_by(v_state.lane_id, passed_by) then
        perform parley_store._p_schedule(
          v_state.lane_id, clock_timestamp() + (0.1 + 0.2 * random()) * interval '1 second'
        );
        continue;
      end if;
      v_wanted := least(v_left, each);
      v_claimed := 0;
      if v_wanted > 0 then
        v_lease_id := parley_store._p_open_lease(v_state.lane_id, lease, coalesce(holder, ''));
        -- One of ten claims of a lane begins with the lowest priority, so that this never starves.
        v_claimed := parley_store._p_claim_items(
          v_state.lane_id, v_wanted, v_lease_id, v_state.token_number % 10 = 9 and v_state.lease_max is distinct from 1
        );
        v_left := v_left - v_claimed;
        if v_claimed > 0 then
          v_leases := v_leases || v_lease_id;
        else
          delete from parley_store._p_lease as e where e.lease_id = v_lease_id;
        end if;
      end if;
      perform parley_store._p_return_token(v_state.lane_id, v_claimed > 0, v_claimed < v_wanted);
      if v_claimed = 0 and v_wanted > 0 and v_state.priority_shares is not null then
        perform parley_store._p_wait_for_share(v_state.lane_id);
      end if;
    end loop;
    -- The tokens may have led to no item, so others are taken while there are any. It no longer waits for new ones:
    -- this transaction holds locks now.
    exit when v_tokens = 0 or cardinality(v_leases) > 0;
    v_timeout := 0;
  end loop;
  return query select c.* from parley_store._p_claimed(v_leases) as c;
end
$$;

comment on function parley_store.claim_work(text, integer, integer, interval, text, integer, integer, text[]) is
'Claims items of the lanes whose turn it is, each lane under a lease of its own. Commit before you begin the work. It
may give nothing although items wait, when a lane was left or is being changed: call it again.
Arguments: system; items, the most of all lanes, 1 to 10,000; lanes, the most in one call, 1 to 1,000; lease, how long
the items are the caller''s, 1 second to 1 day; holder, a name for the caller; timeout, milliseconds to wait for work
(0: do not wait); each, the most of one lane (null: as many as of all); passed_by, beginnings of the names of lanes that
are left to other callers for now, where # stands behind each name too.
Errors: PS001, PS002, PS009 not READ COMMITTED, and those of parley.take.';
