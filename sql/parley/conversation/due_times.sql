-- When something is due next, known to all without a statement.
--
-- A sequence holds microseconds since 1970, outside any transaction: who would scan asks it first. It may be early,
-- never later than a second too late. The daemon sleeps until what is due next, for a second at most, and is notified
-- (payload 0) of what is due before.

create function parley._p_expect_due(next_due regclass, due_at timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due bigint := greatest(0, least(coalesce(extract(epoch from due_at), 0) * 1000000, 9000000000000000))::bigint;
begin
  if v_due < coalesce(pg_sequence_last_value(next_due), 0) then
    perform setval(next_due, v_due);
  end if;
  -- Later ones the daemon finds by itself.
  if (due_at < clock_timestamp() + interval '2 seconds') is not false then
    perform parley._p_wake_readers(0, 'parley._p_alarm_wakeup');
  end if;
end
$$;

comment on function parley._p_expect_due(regclass, timestamptz) is
'Has the next scan be no later than a time, and wakes the daemon when that is soon.
Arguments: next_due, the sequence that is asked before a scan; due_at, null for now.';

create function parley._p_renew_next_alarm() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_next timestamptz;
begin
  if pg_current_xact_id_if_assigned() is null then
    return false;
  end if;
  select a.due_at into v_next from parley._p_alarm as a order by a.due_at limit 1;
  if v_next <= v_now then
    return false;
  end if;
  v_next := least(v_next, v_now + interval '1 second');
  perform setval('parley._p_next_alarm', (extract(epoch from v_next) * 1000000)::bigint);
  return true;
end
$$;

comment on function parley._p_renew_next_alarm() is
'Records when to scan for alarms next, when nothing is due and this transaction has a number already: recording it takes
one, and who waits for a message takes none. Reports whether it did.';
