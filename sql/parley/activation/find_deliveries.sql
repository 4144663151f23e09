-- Which conversations are delivered next: the first of a priority that has a message, need not wait after a failure,
-- and whose group nobody else has locked or claimed; and others to go with it, of which none has failed.
--
-- Locks: group rows, skipping locked ones. Cost: one scan of the first 1000 messages of each lane; when all of these
-- belong to conversations that wait or are locked, one probe for each conversation of the queue.

create function parley._p_lock_delivery(
  queue parley._p_queue, priority integer, out endpoint_id bigint, out group_id bigint
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane integer := parley._p_lane(queue.queue_id, priority);
  v_low bigint;
begin
  select h.low_position into v_low from parley._p_newest_hint(v_lane) as h;
  select e.endpoint_id, e.group_id into endpoint_id, group_id
  from (
    select n.endpoint_id, n.position
    from parley._p_message as n
    where n.lane = v_lane and n.position >= coalesce(v_low, 0)
    order by n.position
    limit 1000
  ) as m
  join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
  join parley._p_conversation_group as g on g.group_id = e.group_id
  where not exists (
    select from parley._p_delivery_failure as f where f.endpoint_id = e.endpoint_id and f.retry_at > clock_timestamp()
  )
    and parley._p_is_receivable(e.endpoint_id, e.group_id)
  order by m.position
  limit 1
  for update of g skip locked;
  if endpoint_id is null and exists (
    select from parley._p_message as n
    where n.lane = v_lane and n.position >= coalesce(v_low, 0)
    order by n.position offset 1000
    limit 1
  ) then
    select e.endpoint_id, e.group_id into endpoint_id, group_id
    from parley._p_service as s
    join parley._p_endpoint as e
      on e.service_id = s.service_id and e.state <> 'DO' and e.priority = _p_lock_delivery.priority
    join parley._p_conversation_group as g on g.group_id = e.group_id
    cross join lateral (
      select n.position
      from parley._p_message as n
      where n.endpoint_id = e.endpoint_id
      order by n.position
      limit 1
    ) as m
    where s.queue_id = queue.queue_id
      and not exists (
        select from parley._p_delivery_failure as f
        where f.endpoint_id = e.endpoint_id and f.retry_at > clock_timestamp()
      )
      and parley._p_is_receivable(e.endpoint_id, e.group_id)
    order by m.position
    limit 1
    for update of g skip locked;
  end if;
end
$$;

comment on function parley._p_lock_delivery(parley._p_queue, integer) is
'Finds and locks the first conversation of a priority that has a message, is not locked, and
need not wait after a failure.';

create function parley._p_lock_more_deliveries(
  lane integer, without bigint, groups_max integer, out endpoints bigint[], out groups bigint[]
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_low bigint;
begin
  select h.low_position into v_low from parley._p_newest_hint(lane) as h;
  select coalesce(array_agg(h.endpoint_id order by h.position), '{}'),
    coalesce(array_agg(h.group_id order by h.position), '{}')
  into endpoints, groups
  from (
    select f.endpoint_id, f.group_id, f.position
    from (
      select distinct on (e.group_id) e.endpoint_id, e.group_id, m.position
      from (
        select n.endpoint_id, n.position
        from parley._p_message as n
        where n.lane = _p_lock_more_deliveries.lane and n.position >= coalesce(v_low, 0)
        order by n.position
        limit 1000
      ) as m
      join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
      where e.group_id <> without
        and not exists (select from parley._p_delivery_failure as f where f.endpoint_id = e.endpoint_id)
        and parley._p_is_receivable(e.endpoint_id, e.group_id)
      order by e.group_id, m.position
    ) as f
    join parley._p_conversation_group as g on g.group_id = f.group_id
    order by f.position
    limit groups_max
    for update of g skip locked
  ) as h;
end
$$;

comment on function parley._p_lock_more_deliveries(integer, bigint, integer) is
'Finds and locks the first conversation of each of some groups that have messages, are not locked, and have not failed.
Arguments: lane; without, the group that is locked already; groups_max, at most so many.';
