-- Timers and delayed messages on time: what the daemon calls when the next of them is due.
--
-- The daemon sleeps until the next alarm, and for a second at most; an alarm that is set for earlier than that
-- notifies (_p_alarm_wakeup). Alarms are fired many in a transaction. When one of them raises an error, nothing
-- of that transaction stays; then the daemon asks for them one by one: each has a subtransaction, and those
-- that fail are put off, alone.
-- Locks: as _p_fire_alarms, which waits for nobody; no other lock is waited for longer than lock_timeout.

create function parley._p_fire_due(term bigint, top integer, one_by_one boolean, out fired integer, out next_ms float8)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '30ms'
as $$
declare
  v_now float8 := extract(epoch from clock_timestamp());
begin
  if not parley._p_holds_term(term) then
    return;
  end if;
  -- An alarm whose work a crash takes back is due again.
  perform set_config('synchronous_commit', 'off', true);
  if coalesce(pg_sequence_last_value('parley._p_alarm_wakeup'), 0) < v_now + 20 then
    perform setval('parley._p_alarm_wakeup', v_now::bigint + 40);
  end if;
  fired := 0;
  if one_by_one then
    fired := parley._p_fire_alarms_one_by_one(top);
  elsif coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) <= v_now * 1000000 then
    fired := parley._p_fire_alarms(null, top);
  end if;
  if coalesce(pg_sequence_last_value('parley._p_next_due'), 0) <= v_now * 1000000 then
    fired := fired + parley._p_deliver_all_due(null);
  end if;
  fired := fired + parley._p_end_batches(null);
  -- A little ahead, so that the time of the next look does not pass between here and the answer.
  if coalesce(pg_sequence_last_value('parley._p_next_due_send'), 0) <= (v_now + 0.1) * 1000000
    and not exists (
      select from parley._p_delayed_send as d where d.try_at <= clock_timestamp() + interval '50 milliseconds'
    ) then
    perform parley._p_set_next_due_send();
  end if;
  next_ms := least(
    pg_sequence_last_value('parley._p_next_alarm'), pg_sequence_last_value('parley._p_next_due'),
    coalesce(pg_sequence_last_value('parley._p_next_due_send'), 0)
  ) / 1000.0 - extract(epoch from clock_timestamp()) * 1000;
end
$$;

comment on function parley._p_fire_due(bigint, integer, boolean) is
'Fires what is due for the leading daemon; gives how many, and in how many milliseconds to call again, also for
_p_send_due_now.
Nulls mean that the term is over.
Arguments: term; top, how many at most; one_by_one, whether those that cannot be fired are put off, each for itself.';

create function parley._p_send_due_now(term bigint, top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
set lock_timeout = '30ms'
as $$
begin
  if not parley._p_holds_term(term)
    or coalesce(pg_sequence_last_value('parley._p_next_due_send'), 0)
      > extract(epoch from clock_timestamp()) * 1000000 then
    return 0;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  return parley._p_send_due(null, top);
end
$$;

comment on function parley._p_send_due_now(bigint, integer) is
'Sends what was sent for later and is due, for the leading daemon; gives how many messages. It calls validation
functions of others, which may last: so it is a statement of its own, beside the timers.
Arguments: term; top, how many at most.';

create function parley._p_due_senders(term bigint, top integer) returns setof bigint
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  if not parley._p_holds_term(term) then
    return;
  end if;
  return query
  select d.endpoint_id
  from parley._p_delayed_send as d
  where d.try_at <= v_now
  group by d.endpoint_id
  order by min(d.try_at)
  limit top;
end
$$;

comment on function parley._p_due_senders(bigint, integer) is
'Gives the endpoints of which something is due, for the leading daemon, which sends for each in a statement of its own
where all together took too long.
Arguments: term; top, how many at most.';

create function parley._p_fire_alarms_one_by_one(top integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alarm record;
  v_fired integer := 0;
  v_now timestamptz := clock_timestamp();
begin
  for v_alarm in
    select a.endpoint_id, a.kind
    from parley._p_alarm as a
    where a.due_at <= v_now
    order by a.due_at
    limit 10::bigint * top
  loop
    begin
      if parley._p_claim_alarm(v_alarm.endpoint_id, v_alarm.kind) then
        perform parley._p_fire_alarm(v_alarm.endpoint_id, v_alarm.kind);
        v_fired := v_fired + 1;
      end if;
      exit when v_fired = top;
    exception
      when lock_not_available or deadlock_detected then
        perform parley._p_put_off_alarm(v_alarm.endpoint_id, v_alarm.kind, 'infinity', interval '1 second');
      when others then
        raise warning using
          message = format('the %s of endpoint %s could not be fired', v_alarm.kind, v_alarm.endpoint_id),
          detail = sqlerrm,
          hint = 'It is tried again after 30 seconds.';
        perform parley._p_put_off_alarm(v_alarm.endpoint_id, v_alarm.kind, 'infinity', interval '30 seconds');
    end;
  end loop;
  return v_fired;
end
$$;

comment on function parley._p_fire_alarms_one_by_one(integer) is
'Handles alarms that are due, each in a subtransaction, and puts off those that fail. Gives how many were handled.';
