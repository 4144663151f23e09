-- Checks of destinations: what is to be transmitted to other databases, and is not.
--
-- A message without a destination is in the transmission queue with its own reason, and is found there
-- (diagnosis/find_conversation_faults.sql). Here are links that fail, and messages that wait although nothing fails.
-- Cost: one row of each destination; the oldest row of its lanes and of what is in transit.

create function parley._p_find_unreachable_destinations(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'destination-unreachable', 'destination', d.address,
    format(
      'Messages cannot be transmitted to it: %s (%s attempts, the next one %s)', d.status, d.attempts,
      case
        when d.due_at > clock_timestamp()
          then format('in %s seconds', ceil(extract(epoch from d.due_at - clock_timestamp())))
        else 'is due'
      end
    ),
    d.failing_since,
    case
      when d.status like '%(9666)'
        then 'parley serve --listen :4022 -- the daemon of this database has no broker endpoint'
      when d.address like 'broker:%' then 'parley serve -- with one --dsn more, that of the other database'
      else coalesce(
        (
          select format(
            'select parley.alter_route(%L, ''tcp://<host>:4022'');  -- if it has moved; otherwise see that a daemon '
              || 'listens there',
            r.name
          )
          from parley._p_route as r
          where r.next_hop = d.address and not r.is_inbound
          order by r.route_id
          limit 1
        ),
        '-- see that a daemon listens there'
      )
    end
  from parley._p_destination as d
  where d.attempts > 0
    and d.failing_since < clock_timestamp() - scope.patience
    and d.destination_id in (select w.destination_id from parley._p_destinations() as w)
    and (
      scope.endpoint_ids is null
      or exists (
        select from parley._p_endpoint as e
        where e.destination_id = d.destination_id and e.endpoint_id = any (scope.endpoint_ids)
      )
    )
$$;

comment on function parley._p_find_unreachable_destinations(parley._p_scope) is
'Finds destinations that something waits for, and to which every attempt has failed for longer than scope.patience.';

create function parley._p_find_transmission_backlog(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'transmission-backlog', 'destination', d.address,
    case
      when parley._p_current_term() is null then 'Messages wait to be transmitted to it, and no daemon runs.'
      when w.is_transit then 'Messages were transmitted to it, and the other side has not acknowledged them.'
      else 'Messages wait longer and longer to be transmitted to it: they are sent faster than they are taken in there.'
    end,
    w.since,
    case
      when parley._p_current_term() is null then 'parley serve'
      else format('select * from parley.transmission_queue as t where t.transmission_status <> %L limit 100;', '')
    end
  from parley._p_destination as d
  cross join lateral (
    select o.since, o.is_transit
    from (
      (
        select t.enqueued_at as since, true as is_transit
        from parley._p_transit as t
        where t.destination_id = d.destination_id
          and not exists (select from parley._p_parked as k where k.endpoint_id = t.endpoint_id)
        order by t.enqueued_at
        limit 1
      )
      union all
      select f.enqueued_at, false
      from generate_series(1, 10) as p (priority)
      cross join lateral (
        select m.enqueued_at
        from parley._p_message as m
        where m.lane = parley._p_lane(d.destination_id, p.priority)
        order by m.lane, m.position
        limit 1
      ) as f
      where d.priorities & (1 << p.priority) <> 0
    ) as o
    order by o.since
    limit 1
  ) as w
  where d.attempts = 0
    and w.since < clock_timestamp() - scope.patience
    and (
      scope.endpoint_ids is null
      or exists (
        select from parley._p_endpoint as e
        where e.destination_id = d.destination_id and e.endpoint_id = any (scope.endpoint_ids)
      )
    )
$$;

comment on function parley._p_find_transmission_backlog(parley._p_scope) is
'Finds destinations that are well, and for which messages have waited for longer than scope.patience.';
