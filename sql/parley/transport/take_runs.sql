-- From the lane of a destination into transit: what the daemon is to transmit next.
--
-- Taking gives each message its number, for good: rows leave the lane and stand in _p_transit under their numbers, in
-- one transaction, which has committed before the daemon sends anything. So a message travels under one number however
-- often it is sent, and a daemon that dies leaves to the next one exactly what it had taken (keeps T2, T5).
-- Order: rows are taken by position. Senders that commit late find their place behind what was taken before; a send
-- that began after another's commit has the higher position and is never taken before it (keeps S19). A row that
-- another session holds is being removed by END CONVERSATION, or moved: it is passed by without a wait. The rows behind
-- it in its conversation are passed by too: END may be half way through them, and what it had not got at yet would
-- arrive without what was sent before (keeps S4).
-- Locks: the leader's row FOR SHARE; the destination's row, so that takes of one destination come one after the other;
-- rows of the lane SKIP LOCKED.
-- Cost for a row: one deletion and one insertion, whatever it holds; one row of _p_send_progress for a conversation and
-- call. Plans are nested loops over indexes: a plan made while tables were empty must do when they are not.

create type parley._p_run as (
  endpoint_id bigint,
  conversation_id uuid,
  is_initiator boolean,
  first_sequence bigint,
  message_type_name text,
  bodies bytea[],
  body_size bigint,
  from_service text,
  to_service text,
  contract text,
  to_broker uuid,
  priority smallint,
  enqueued_at timestamptz,
  ends_at timestamptz,
  trace_context text,
  owner text,
  is_encrypted boolean,
  is_bound boolean
);

comment on type parley._p_run is
'Messages of one conversation with numbers that follow each other, as they travel between brokers; Run in Go.';

create view parley._p_run_in_transit as
select
  t.endpoint_id,
  e.conversation_id,
  e.is_initiator,
  t.first_sequence,
  y.name as message_type_name,
  case
    when t.frame is not null then t.frame
    when octet_length(t.body) > 262144 then '{}'::bytea[]
    else array[t.body]
  end as bodies,
  case when octet_length(t.body) > 262144 then octet_length(t.body) else 0 end::bigint as body_size,
  e.service_name as from_service,
  e.far_service as to_service,
  e.service_contract_name as contract,
  e.far_broker_instance::uuid as to_broker,
  e.priority,
  t.enqueued_at,
  case when e.lifetime < e.begun_at + '68 years'::interval then e.lifetime end as ends_at,
  t.trace_context,
  pg_get_userbyid(e.owner)::text as owner,
  e.is_encrypted,
  e.remote_service_binding_id is not null as is_bound,
  t.destination_id
from parley._p_transit as t
join parley._p_endpoint as e on e.endpoint_id = t.endpoint_id
join parley._p_message_type as y on y.message_type_id = abs(t.message_type_id);

comment on view parley._p_run_in_transit is
'Messages in transit as they travel. A body of more than 256 KiB stays behind and goes in fragments, so that nothing has
to wait for it.';

create function parley._p_runs(endpoint_ids bigint[], first_sequences bigint[]) returns setof parley._p_run
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
begin
  return query
  select r.endpoint_id, r.conversation_id, r.is_initiator, r.first_sequence, r.message_type_name, r.bodies, r.body_size,
    r.from_service, r.to_service,
    r.contract, r.to_broker, r.priority, r.enqueued_at, r.ends_at, r.trace_context, r.owner, r.is_encrypted, r.is_bound
  from unnest(endpoint_ids, first_sequences) with ordinality as k (endpoint_id, first_sequence, ordinal)
  join parley._p_run_in_transit as r on r.endpoint_id = k.endpoint_id and r.first_sequence = k.first_sequence
  order by k.ordinal;
end
$$;

comment on function parley._p_runs(bigint[], bigint[]) is
'Gives messages in transit as they travel, in the order asked for.';

create function parley._p_lock_head(lanes integer[], lows bigint[], rows_max integer, bytes_max bigint) returns tid[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_row_ids tid[];
begin
  with head as (
    select h.row_id, h.position, h.endpoint_id, h.size, l.low
    from unnest(lanes, lows) as l (lane, low)
    cross join lateral (
      select m.ctid as row_id, m.position, m.endpoint_id,
        coalesce(octet_length(m.body), pg_column_size(m.frame), 0) + 100 as size
      from parley._p_message as m
      where m.lane = l.lane
        and m.position >= l.low
        and not exists (select from parley._p_unresumed as u where u.endpoint_id = -m.endpoint_id)
        and not exists (
          select from parley._p_parked as p where p.endpoint_id = -m.endpoint_id and p.due_at < 'infinity'
        )
      order by m.position
      limit rows_max
      for update of m skip locked
    ) as h
    order by h.position
    limit rows_max
  ), followed as (
    -- This statement sees a row that another session holds, though it passes it by.
    select h.row_id, h.position, h.endpoint_id, h.size,
      lag(h.position) over (partition by h.endpoint_id order by h.position) is not distinct from (
        select n.position
        from parley._p_message as n
        where n.endpoint_id = h.endpoint_id and n.position >= h.low and n.position < h.position
        order by n.position desc
        limit 1
      ) as is_next
    from head as h
  ), whole as (
    select f.row_id, f.position, f.size,
      bool_and(f.is_next) over (
        partition by f.endpoint_id order by f.position rows unbounded preceding
      ) as is_in_order
    from followed as f
  )
  select array_agg(f.row_id) into v_row_ids
  from (
    select w.row_id, sum(w.size) over (order by w.position rows unbounded preceding) - w.size as before
    from whole as w
    where w.is_in_order
  ) as f
  where f.before < bytes_max;
  return v_row_ids;
end
$$;

comment on function parley._p_lock_head(integer[], bigint[], integer, bigint) is
'Locks the first rows of lanes, by position, and gives them, but what other sessions hold and what stands behind that in
its conversation; null when that is nothing.
Arguments: lanes of a destination; lows, the positions before which nothing is left in each; rows_max; bytes_max, one
row is given at least.';

create function parley._p_take_runs(
  term bigint, destination_id integer, rows_max integer, bytes_max bigint
) returns setof parley._p_run
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set jit = off
as $$
declare
  v_destination parley._p_destination;
  v_lanes integer[];
  v_lows bigint[];
  v_row_ids tid[];
  v_endpoints bigint[];
  v_sequences bigint[];
  v_rows integer := rows_max;
  v_count integer;
begin
  if not parley._p_holds_term(term)
    or pg_sequence_last_value('parley._p_broker_switch') is not null
    or not parley._p_is_epoch_current() then
    return;
  end if;
  -- Another take may still be at it, whose client was cut off. Passing by what it holds would number later messages
  -- first (keeps S4).
  select * into v_destination
  from parley._p_destination as d
  where d.destination_id = _p_take_runs.destination_id
  for no key update;
  return query select r.* from parley._p_unpark(destination_id, rows_max) as r;
  for v_lanes in select l.lanes from parley._p_lanes_to_take(v_destination) as l loop
    exit when v_rows <= 0;
    v_lows := array(
      select parley._p_low_position(destination_id, l.lane)
      from unnest(v_lanes) with ordinality as l (lane, number)
      order by l.number
    );
    continue when array_remove(v_lows, null) = '{}';
    v_row_ids := parley._p_lock_head(v_lanes, v_lows, v_rows, bytes_max);
    continue when v_row_ids is null;
    with taken as (
      delete from parley._p_message as m
      where m.ctid = any (v_row_ids)
      returning m.position, -m.endpoint_id as endpoint_id, m.enqueued_at, m.message_type_id, m.body, m.frame,
        m.trace_context
    ), counted as (
      -- Joining what was taken with itself would cost its square.
      select t.position, t.endpoint_id, t.enqueued_at, t.message_type_id, t.body, t.frame, t.trace_context, c.count,
        p.sequence as started,
        coalesce(p.sequence, 0) + sum(c.count) over (
          partition by t.endpoint_id order by t.position rows unbounded preceding
        ) as after,
        row_number() over (partition by t.endpoint_id order by t.position desc) as ordinal_from_last
      from taken as t
      cross join lateral (
        select case when t.message_type_id < 0 then 0 else coalesce(cardinality(t.frame), 1) end as count
      ) as c
      left join lateral (
        select s.sequence
        from parley._p_send_progress as s
        where s.endpoint_id = t.endpoint_id
        order by s.sequence desc
        limit 1
      ) as p on true
    ), gone_on as (
      insert into parley._p_send_progress (endpoint_id, sequence)
      select c.endpoint_id, c.after from counted as c where c.ordinal_from_last = 1 and c.after > coalesce(c.started, 0)
    ), forgotten as (
      delete from parley._p_send_progress as p
      using counted as c
      where c.ordinal_from_last = 1 and c.after > c.started and p.endpoint_id = c.endpoint_id and p.sequence = c.started
    ), kept as (
      insert into parley._p_transit (
        endpoint_id, first_sequence, next_sequence, destination_id, enqueued_at, message_type_id, body, frame,
        trace_context
      )
      select c.endpoint_id, case when c.count = 0 then 9223372036854775807 else c.after - c.count end,
        case when c.count = 0 then 9223372036854775807 else c.after end, _p_take_runs.destination_id, c.enqueued_at,
        c.message_type_id, c.body, c.frame, c.trace_context
      from counted as c
      order by c.position
    )
    select array_agg(c.endpoint_id order by c.position),
      array_agg(case when c.count = 0 then 9223372036854775807 else c.after - c.count end order by c.position), count(*)
    into v_endpoints, v_sequences, v_count
    from counted as c;
    return query select r.* from parley._p_runs(v_endpoints, v_sequences) as r;
    v_rows := v_rows - v_count;
  end loop;
end
$$;

comment on function parley._p_take_runs(bigint, integer, integer, bigint) is
'Gives the next messages for a destination their numbers and puts them into transit; gives them in the order in which
they have to be sent.
Nothing when the term is over, the broker is disabled, or conversations have to be compared with their far sides first.
Arguments: term of the daemon that leads; destination_id; rows_max, rows of the lane, each a message or a frame;
bytes_max, bytes of bodies for each priority, at least one row is taken.
Source: spec 6.9, 6.11.';

create function parley._p_low_position(destination_id integer, lane integer) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
set enable_bitmapscan = off
as $$
declare
  v_low bigint := coalesce((select h.low_position from parley._p_newest_hint(_p_low_position.lane) as h), 0);
  v_first bigint;
begin
  select m.position into v_first
  from parley._p_message as m
  where m.lane = _p_low_position.lane and m.position >= v_low
  order by m.position
  limit 1;
  -- Takes are many and small: a hint about fewer rows is made too seldom to be asked for each time.
  if v_first - v_low > 262144 then
    perform parley._p_record_scan(destination_id, lane, v_first, '{}', 0);
  end if;
  -- Not v_first: a sender that commits before the lane is scanned again may have positions on both sides of it (keeps
  -- S4).
  return case when v_first is not null then v_low end;
end
$$;

comment on function parley._p_low_position(integer, integer) is
'Gives a position on a lane of a destination before which nothing is left, null when the lane is empty, and records a
better one now and then.';

create function parley._p_lanes_to_take(destination parley._p_destination) returns table (lanes integer[])
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_is_honored boolean;
  v_direction integer;
begin
  -- The usual case needs no query: one priority, 5.
  if destination.priorities = 32 then
    lanes := array[parley._p_lane(destination.destination_id, 5)];
    return next;
    return;
  end if;
  v_is_honored := (select b.is_priority_honored from parley._p_broker as b);
  -- One call of eight begins at the other end, so that low priorities get out under any load.
  v_direction := case when extract(microseconds from clock_timestamp())::bigint % 8 = 0 then -1 else 1 end;
  return query
  -- Lanes stand from priority 10 down to 1.
  select array_agg(l.lane)
  from (
    select parley._p_lane(destination.destination_id, p.priority) as lane
    from generate_series(1, 10) as p (priority)
    where destination.priorities & (1 << p.priority) <> 0
  ) as l
  group by case when v_is_honored then l.lane * v_direction end
  order by case when v_is_honored then l.lane * v_direction end;
end
$$;

comment on function parley._p_lanes_to_take(parley._p_destination) is
'Gives the lanes of a destination in the order in which to take from them: by priority when that is honored, otherwise
all as one.
Source: spec 6.11.';

create function parley._p_unacknowledged_runs(
  destination_id integer, after_endpoint bigint, after_sequence bigint, rows_max integer, bytes_max bigint
) returns setof parley._p_run
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  -- No daemon takes the rows of an endpoint that is gone.
  delete from parley._p_transit as t
  where t.destination_id = _p_unacknowledged_runs.destination_id
    and after_endpoint = 0
    and not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id);
  return query
  with next as (
    select t.endpoint_id, t.first_sequence, coalesce(octet_length(t.body), pg_column_size(t.frame), 0) + 100 as size
    from parley._p_transit as t
    where t.destination_id = _p_unacknowledged_runs.destination_id
      and (t.endpoint_id, t.first_sequence) > (after_endpoint, after_sequence)
      and not exists (select from parley._p_unresumed as u where u.endpoint_id = t.endpoint_id)
      and not exists (select from parley._p_parked as p where p.endpoint_id = t.endpoint_id and p.due_at < 'infinity')
    order by t.endpoint_id, t.first_sequence
    limit rows_max
  ), fitting as (
    select n.endpoint_id, n.first_sequence,
      sum(n.size) over (order by n.endpoint_id, n.first_sequence rows unbounded preceding) - n.size as before
    from next as n
  ), chosen as (
    select array_agg(f.endpoint_id order by f.endpoint_id, f.first_sequence) as endpoint_ids,
      array_agg(f.first_sequence order by f.endpoint_id, f.first_sequence) as first_sequences
    from fitting as f
    where f.before < bytes_max
  )
  select r.* from chosen as c cross join lateral parley._p_runs(c.endpoint_ids, c.first_sequences) as r;
end
$$;

comment on function parley._p_unacknowledged_runs(integer, bigint, bigint, integer, bigint) is
'Gives what is in transit to a destination and not acknowledged, in the order of conversation and number: a daemon that
begins sends it again.
Arguments: destination_id; after_endpoint and after_sequence, the endpoint_id and first_sequence of the last one seen, 0
and -1 to begin; rows_max; bytes_max.';

create function parley._p_read_body_part(
  endpoint_id bigint, sequence bigint, first_byte bigint, bytes integer
) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select substr(t.body, $3::integer + 1, $4)
  from parley._p_transit as t
  where t.endpoint_id = $1 and t.first_sequence = $2
$$;

comment on function parley._p_read_body_part(bigint, bigint, bigint, integer) is
'Gives a part of a large body in transit; null when it has been acknowledged.
Arguments: endpoint_id and sequence of the message; first_byte, from 0; bytes.';
