-- Waiting alone: inside RECEIVE from a named conversation or group, and in wait_for_message.
--
-- The others wait by turns (receive/turns.sql). One who waits for what he has named finds nothing in what others come
-- for. One who waits outside of RECEIVE gives the turn back before he has taken anything, and the next in line would
-- find the same message.
-- A function cannot be notified, so it sleeps for a few milliseconds at a time and reads the queue's sequence in
-- between: no statement, no snapshot, no lock. It sleeps for a sixteenth of the time that nothing has come, half a
-- millisecond to ten, and 25 after some seconds. A queue that is busy wakes its reader at once. A reader that waits for
-- nothing costs some 50 rounds a second and not 330 (on a virtual machine each is 100 microseconds of the processor,
-- most of it the kernel's).
-- Each message wakes all who are alert, and one gets it. A session that finds nothing after that sleeps twice as long
-- from then on, up to 64 ms, and half as long again after each call that has ended. The session remembers that from
-- call to call (parley.lost): so as many readers are alert as there is work for, and the others, which wake at
-- different times, see what those leave. With eight readers a message costs half the processor that it costs when all
-- are alert, at 200 a second, and a third at 20 a second.
-- It polls the queue itself when a sender has drawn a position, for as long as that sender may need to commit.
-- Otherwise it polls ten times a second at first and twice a second later, for groups that were let go of. The longer a
-- poll takes, the more seldom it polls. Clients that hold a connection wait better: they LISTEN
-- (parley.listen_for_messages), and the Go package does.

-- How a call has waited so far. All null before it has.
create type parley._p_wait as (
  scanned_at timestamptz,
  last_position bigint,
  started_at timestamptz,
  sent_at timestamptz,
  seen_at timestamptz,
  lost integer,
  has_written boolean,
  is_over boolean
);

comment on type parley._p_wait is
'How a RECEIVE has waited so far: scanned_at, when its last scan began, and last_position, what the sequence of the
queue stood at then; started_at, when its first scan began; sent_at, when somebody was last seen to draw a position, and
seen_at, what that was at the scan before; lost, how often nothing was found after that: the message was gone, or not
committed yet; has_written, whether the transaction had a number before; is_over, whether the time is.';

create function parley._p_begin_scan(position_sequence regclass, timeout integer, wait parley._p_wait)
returns parley._p_wait
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_timeout(timeout);
  wait.has_written := coalesce(wait.has_written, pg_current_xact_id_if_assigned() is not null);
  wait.scanned_at := clock_timestamp();
  if position_sequence is not null then
    wait.last_position := parley._p_last_position(position_sequence);
  end if;
  return wait;
end
$$;

comment on function parley._p_begin_scan(regclass, integer, parley._p_wait) is
'Records, before a scan, what it will have seen: a sender that draws its position after this makes us scan again.
Arguments: position_sequence of the queue, null for who waits by turns and does not read it; timeout; wait, as it was.
Errors: 8402 timeout negative and not -1.';

create function parley._p_lost(wait parley._p_wait) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Any other value that somebody has set does not count: only one of these digits does.
  v_kept constant integer := coalesce(strpos('1234567', nullif(current_setting('parley.lost', true), '')), 0);
  v_lost integer;
begin
  if wait.started_at is null then
    v_lost := greatest(v_kept - 1, 0);
  else
    v_lost := greatest(0, least(wait.lost + case when wait.sent_at > wait.seen_at then 1 else 0 end, 7));
  end if;
  if v_lost <> v_kept then
    perform set_config('parley.lost', v_lost::text, false);
  end if;
  return v_lost;
end
$$;

comment on function parley._p_lost(parley._p_wait) is
'Counts, up to 7, how often this session was woken and found nothing, and keeps that for its next call; the first wait
of a call takes one off.
Arguments: wait, as it was.';

create function parley._p_wait_for_message(position_sequence regclass, timeout integer, wait parley._p_wait)
returns parley._p_wait
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_scan timestamptz;
  v_until timestamptz;
  v_next timestamptz;
  v_rested timestamptz;
  v_least float8;
  v_quiet float8;
  v_sleep float8;
begin
  wait.is_over := true;
  -- A transaction that has a number now and had none before has something to commit: it would keep dead rows of the
  -- whole server from being removed for as long as it waits.
  if parley._p_keeps_snapshot() or not wait.has_written and pg_current_xact_id_if_assigned() is not null then
    return wait;
  end if;
  if current_setting('client_connection_check_interval') = '0' then
    perform parley._p_check_client();
  end if;
  wait.lost := parley._p_lost(wait);
  wait.started_at := coalesce(wait.started_at, wait.scanned_at);
  wait.seen_at := coalesce(wait.sent_at, wait.started_at);
  v_until := case
    when timeout < 0 then 'infinity'
    else wait.started_at + make_interval(secs => timeout / 1000.0)
  end;
  v_least := 0.0005 * (1 << wait.lost);
  -- A sender that has drawn a position commits at once as a rule; if it does not, poll for its message ever more
  -- seldom.
  -- A session that was woken for nothing leaves that to the others at first.
  v_scan := v_now + greatest(
    least(
      greatest((v_now - wait.seen_at) / 2, interval '1 ms'), greatest((v_now - wait.seen_at) / 10, interval '100 ms'),
      interval '500 ms'
    ),
    case when wait.lost > 0 then make_interval(secs => 4 * v_least) end
  );
  -- Where everything belongs to others, or messages come faster than they can be received, polling takes a
  -- third of the time at most.
  v_rested := v_now + least(2 * (v_now - wait.scanned_at), interval '100 ms');
  v_next := least(greatest(v_scan, v_rested), v_until);
  wait.is_over := false;
  loop
    if v_now >= v_until then
      perform set_config('parley.unwatched', '', true);
      wait.is_over := true;
      return wait;
    elsif pg_sequence_last_value(position_sequence) is distinct from wait.last_position then
      perform pg_sleep(greatest(0.001, extract(epoch from least(v_rested, v_until) - v_now)));
      wait.sent_at := v_now;
      return wait;
    elsif v_now >= v_next then
      wait.sent_at := wait.seen_at;
      return wait;
    end if;
    v_quiet := date_part('epoch', v_now - wait.seen_at);
    v_sleep := greatest(
      v_least, least(date_part('epoch', v_next - v_now), v_quiet / 16, greatest(v_quiet / 200, 0.01), 0.025)
    );
    if timeout >= 0 then
      v_sleep := least(v_sleep, timeout / 1000.0 - date_part('epoch', v_now - wait.started_at));
    end if;
    found := pg_sleep(v_sleep) is null;
    v_now := clock_timestamp();
  end loop;
end
$$;

comment on function parley._p_wait_for_message(regclass, integer, parley._p_wait) is
'Sleeps until it is worth scanning for messages again, or the time is over, and gives how it has waited.
Arguments: position_sequence of the queue; timeout in milliseconds, negative for ever; wait, as it was.';

create function parley._p_end_wait(has_slept boolean) returns boolean
language plpgsql
as $$
begin
  if coalesce(pg_catalog.pg_sequence_last_value('parley._p_next_alarm'), 0::pg_catalog.int8)
    operator(pg_catalog.<=)
      (extract(epoch from pg_catalog.clock_timestamp()) operator(pg_catalog.*) 1000000::pg_catalog.numeric) then
    found := parley._p_renew_next_alarm();
  end if;
  return has_slept and parley._p_reach_client();
end
$$;

comment on function parley._p_end_wait(boolean) is
'The rest of the work of a RECEIVE that was ready to wait: to record when to scan for alarms next, if it has taken
something, and to make sure of its client, if it has slept.
Arguments: has_slept.';

create function parley._p_has_unseen() returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('parley.unseen', true) is distinct from 'on' then
    return false;
  end if;
  -- Once: who does not commit then waits the next time, and does not spin.
  perform set_config('parley.unseen', '', true);
  return true;
end
$$;

comment on function parley._p_has_unseen() is
'Reports, once, whether the transaction had better end than wait, by _p_record_unseen.';
