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
