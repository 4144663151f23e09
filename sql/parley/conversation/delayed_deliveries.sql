-- Messages that wait for a way: how they are delivered, or put on it, when there is one.
--
-- A session that creates what was missing tries all that waited for it. The daemon tries what waits every few seconds,
-- a few endpoints in a transaction, because delivery runs validation functions of others: an endpoint that takes too
-- long is put off, alone (try_at of its first message).
-- Invariant: the messages of an endpoint are delivered together. In between SEND would find the target connected, and
-- pass those that wait.
-- Locks: the endpoint's row FOR UPDATE, skip locked; then those of SEND.

create function parley._p_delayed_senders(only_queues integer[]) returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if pg_sequence_last_value('parley._p_broker_switch') is null then
    return query
    select d.endpoint_id
    from parley._p_delayed_endpoint as d
    where not exists (
        select from parley._p_transmission as t where t.endpoint_id = d.endpoint_id and t.try_at > v_now
      )
      and (
        only_queues is null or exists (
          select
          from parley._p_endpoint as e
          join parley._p_service as s using (service_id)
          where e.endpoint_id = d.endpoint_id and s.queue_id = any (only_queues)
        )
      )
    order by d.endpoint_id;
  end if;
end
$$;

comment on function parley._p_delayed_senders(integer[]) is
'Gives the endpoints of which messages wait for a way and may be tried now, for _p_deliver_delayed_of_each.
Arguments: only_queues, the queues of the senders, null for all.';

create function parley._p_deliver_delayed_of_each(endpoints bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_id bigint;
begin
  -- Before any row, as SEND does.
  if pg_sequence_last_value('parley._p_broker_switch') is not null then
    return;
  end if;
  foreach v_id in array endpoints loop
    perform from parley._p_endpoint as e where e.endpoint_id = v_id for update skip locked;
    if found then
      perform parley._p_deliver_delayed_of(v_id);
    end if;
  end loop;
end
$$;

comment on function parley._p_deliver_delayed_of_each(bigint[]) is
'Finds the way again of what waits for these endpoints, as _p_deliver_delayed; passes by those that somebody holds. It
calls validation functions of others, which may last: so the daemon gives it a few endpoints at a time.';

create function parley._p_put_off_delivery(endpoint_id bigint, delay interval) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley._p_transmission as t
  set try_at = clock_timestamp() + delay
  where t.transmission_id = (
    select o.transmission_id
    from parley._p_transmission as o
    where o.endpoint_id = _p_put_off_delivery.endpoint_id
    order by o.transmission_id
    limit 1
    for update skip locked
  );
end
$$;

comment on function parley._p_put_off_delivery(bigint, interval) is
'Has what an endpoint has in the transmission queue passed by until a delay is over; whoever creates what was missing,
or enables the broker, tries it all the same.';
