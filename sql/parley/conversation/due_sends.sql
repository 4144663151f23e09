-- Messages of conversations that were sent for later and are due now: who sends them, and when the next is due.
--
-- Each endpoint has a subtransaction: one that cannot be sent is put off, alone. When the next message is due stands in
-- a sequence, which the daemon reads in place of the table.
-- Locks: as _p_send_due_of, which waits for nobody.

create function parley._p_set_next_due_send() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_next timestamptz;
begin
  -- A message that an uncommitted transaction has sent is not seen here: look again within a second.
  select d.try_at into v_next from parley._p_delayed_send as d order by d.try_at limit 1;
  v_next := greatest(
    least(v_next, clock_timestamp() + interval '1 second'), clock_timestamp() + interval '1 millisecond'
  );
  perform setval('parley._p_next_due_send', (extract(epoch from v_next) * 1000000)::bigint);
end
$$;

comment on function parley._p_set_next_due_send() is
'Notes when the next message of a conversation is due, in a second at most.';

create function parley._p_send_due(only_queues integer[], top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_endpoint_id bigint;
  v_sent integer := 0;
begin
  for v_endpoint_id in
    select o.endpoint_id
    from (
      select d.endpoint_id, d.try_at
      from parley._p_delayed_send as d
      where d.try_at <= v_now
        and (
          only_queues is null or exists (
            select
            from parley._p_endpoint as e
            join parley._p_service as s using (service_id)
            where e.endpoint_id = d.endpoint_id and s.queue_id = any (only_queues)
          )
        )
      order by d.try_at
      limit 10::bigint * top
    ) as o
    group by o.endpoint_id
    order by min(o.try_at)
  loop
    begin
      v_sent := v_sent + parley._p_send_due_of(v_endpoint_id, v_now, top - v_sent);
    exception
      when others then
        -- One that cannot be sent must not keep the others.
        raise warning using
          message = format('delayed messages of endpoint %s could not be sent', v_endpoint_id),
          detail = sqlerrm,
          hint = 'They are tried again after 10 seconds.';
        perform parley._p_put_off_sends(v_endpoint_id, v_now, interval '10 seconds');
    end;
    exit when v_sent >= top;
  end loop;
  if only_queues is null then
    perform parley._p_set_next_due_send();
  end if;
  return v_sent;
end
$$;

comment on function parley._p_send_due(integer[], integer) is
'Sends messages of conversations that are due, and gives how many. A message that others hold is passed by.
Arguments: only_queues, those of the senders, null for all; top, how many at most.';
