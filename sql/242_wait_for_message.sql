-- Waiting inside RECEIVE and GET CONVERSATION GROUP.
--
-- A function cannot be notified, so it sleeps for a few milliseconds at a time and looks at the queue's sequence in between: no
-- statement, no snapshot, no lock. It looks at the queue itself when a sender has drawn a position, for as long as that sender may need to
-- commit, and otherwise ten times a second, for groups that were let go of. Clients that hold a connection wait better: they LISTEN
-- (parley.listen_for_messages), and the Go package does.

create function parley._p_last_position(position_sequence regclass) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_last bigint;
begin
  execute format('select case when s.is_called then s.last_value end from %s as s', position_sequence) into v_last;
  return v_last;
end
$$;

comment on function parley._p_last_position(regclass) is
'Gives the last value of a queue''s position sequence.
Unlike pg_sequence_last_value this leaves no lock behind that looks like a sender''s.';

create function parley._p_wait_for_message(position_sequence regclass, last bigint, started timestamptz, timeout integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_look timestamptz := clock_timestamp() + interval '100 ms';
  v_until timestamptz := case when timeout < 0 then 'infinity' else started + make_interval(secs => timeout / 1000.0) end;
  v_now timestamptz := clock_timestamp();
begin
  -- What was sent since we last looked is most likely about to be committed.
  if pg_sequence_last_value(position_sequence) is distinct from last then
    v_look := v_now + interval '1 ms';
  end if;
  if current_setting('transaction_isolation') not in ('read committed', 'read uncommitted') then
    return false;
  end if;
  loop
    if v_now >= v_until then
      return false;
    elsif v_now >= v_look then
      return true;
    elsif pg_sequence_last_value(position_sequence) is distinct from last then
      perform pg_sleep(0.001);
      return true;
    end if;
    perform pg_sleep(case when v_until = 'infinity' then 0.003 else least(0.003, extract(epoch from v_until - v_now)) end);
    v_now := clock_timestamp();
  end loop;
end
$$;

comment on function parley._p_wait_for_message(regclass, bigint, timestamptz, integer) is
'Sleeps until it is worth looking for messages again (true), or the time is over (false).
Arguments: position_sequence of the queue; last, its value before the last look; started, when the wait began; timeout in milliseconds, negative for ever.';

create function parley._p_raise_disabled(queue_id integer) returns void
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name text := (select q.lookup_name from parley._p_queue as q where q.queue_id = _p_raise_disabled.queue_id);
begin
  perform parley._p_raise(
    9617,
    format('queue "%s" is disabled', v_name),
    'Nothing can be received from it or put into it; messages sent meanwhile wait with their senders.',
    format('Switch it on: select parley.alter_queue(%L, status => true); if a message keeps failing, end its conversation first.', v_name)
  );
end
$$;

comment on function parley._p_raise_disabled(integer) is
'Says that a queue is disabled.
Errors: 9617, always.';
