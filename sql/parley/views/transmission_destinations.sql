-- How much waits for each address that messages are transmitted to: for screens and monitors that poll.
--
-- parley.transmission_queue has a row for each message and works out what number it will have; it is for reading
-- messages. The lane of a destination is counted up to some 10,000 rows and estimated beyond, as the depth of a queue
-- is (views/queue_depth.sql). Nothing is locked. Cost: for each destination one index range of at most 10,000 rows a
-- priority, and the bounded number that is in transit.

create function parley._p_transmission_backlog(
  destination parley._p_destination, out messages bigint, out is_estimated boolean, out oldest timestamptz
)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_lane integer;
  v_seen record;
begin
  messages := 0;
  is_estimated := false;
  for v_lane in
    select parley._p_lane(destination.destination_id, p.n)
    from generate_series(10, 1, -1) as p (n)
    where destination.priorities & (1 << p.n) > 0
  loop
    select count(*) as rows, coalesce(sum(w.messages), 0) as messages, max(w.position) as last,
      min(w.enqueued_at) as oldest
    into v_seen
    from (
      select m.position, coalesce(cardinality(m.frame), 1) as messages, m.enqueued_at
      from parley._p_message as m
      where m.lane = v_lane
        and m.position >= coalesce((select h.low_position from parley._p_newest_hint(v_lane) as h), 0)
      order by m.position
      limit 10000
    ) as w;
    messages := messages + v_seen.messages;
    oldest := least(oldest, v_seen.oldest);
    if v_seen.rows = 10000 then
      is_estimated := true;
      messages := messages + (
        select r.messages
        from parley._p_estimate_messages(
          v_lane, v_seen.last + 1, (coalesce(parley._p_last_position('parley._p_transmission_position'), 0) + 1) * 1024
        ) as r
      );
    end if;
  end loop;
end
$$;

comment on function parley._p_transmission_backlog(parley._p_destination) is
'Gives how many messages wait in the lanes of a destination, and since when.';

create function parley.transmission_destinations(caller parley.caller default parley.current_caller()) returns table (
  address text,
  waiting_messages bigint,
  is_estimated boolean,
  messages_in_transit bigint,
  oldest_enqueue_time timestamptz,
  transmission_status text,
  attempts integer,
  failing_since timestamptz,
  next_attempt_time timestamptz
)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'transmission_destinations');
  return query
  select d.address::text, b.messages, b.is_estimated, t.messages, least(t.oldest, b.oldest), d.status, d.attempts,
    d.failing_since, d.due_at
  from parley._p_destination as d
  cross join lateral parley._p_transmission_backlog(d) as b
  left join (
    select x.destination_id, sum(x.next_sequence - x.first_sequence)::bigint as messages, min(x.enqueued_at) as oldest
    from parley._p_transit as x
    group by x.destination_id
  ) as i on i.destination_id = d.destination_id
  cross join lateral (select coalesce(i.messages, 0) as messages, i.oldest) as t
  order by d.address;
end
$$;

comment on function parley.transmission_destinations(parley.caller) is
'Gives the addresses that messages are transmitted to, with what waits for them, what is on its way and not
acknowledged, and how the last attempts went. Messages without an address yet are only in parley.transmission_queue.
Result: address, tcp://host:port, or broker:GUID for another database that the same daemon serves; waiting_messages,
counted up to 10,000 rows and is_estimated beyond; messages_in_transit, at most some thousands; oldest_enqueue_time of
both; transmission_status, empty when all is well; attempts that failed, failing_since, next_attempt_time.
Errors: 15151 not an administrator.';
