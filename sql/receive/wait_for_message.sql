-- Waiting inside RECEIVE and GET CONVERSATION GROUP.
--
-- A function cannot be notified, so it sleeps for a few milliseconds at a time and reads the queue's sequence in
-- between: no statement, no snapshot, no lock. It sleeps for a sixteenth of the time that nothing has come, half a
-- millisecond to ten, and 25 after some seconds: a queue that is busy wakes its reader at once, and a reader that waits
-- for nothing costs some 50 rounds a second and not 330 (on a virtual machine each is 100 microseconds of the
-- processor, most of it the kernel's).
-- Each message wakes all who wait, and one gets it. Who finds nothing after that sleeps twice as long from then on, 4
-- ms at most, until its RECEIVE has something: so as many readers are alert as there is work for.
-- It polls the queue itself when a sender has drawn a position, for as long as that sender may need to commit,
-- and otherwise ten times a second at first and twice a second later, for groups that were let go of; the longer
-- a poll takes the more seldom. Clients that hold a connection wait better: they LISTEN
-- (parley.listen_for_messages), and the Go package does.

-- How a call has waited so far. All null before it has.
create type parley._p_wait as (
  scanned_at timestamptz,
  last_position bigint,
  started_at timestamptz,
  sent_at timestamptz,
  seen_at timestamptz,
  lost integer,
  is_over boolean
);

comment on type parley._p_wait is
'How a RECEIVE has waited so far: scanned_at, when its last scan began, and last_position, what the sequence of the
queue stood at then; started_at, when its first scan began; sent_at, when somebody was last seen to draw a position, and
seen_at, what that was at the scan before; lost, how often nothing was found after that: the message was gone, or not
committed yet; is_over, whether the time is.';

create function parley._p_begin_scan(position_sequence regclass, timeout integer, wait parley._p_wait)
returns parley._p_wait
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_timeout(timeout);
  wait.scanned_at := clock_timestamp();
  wait.last_position := parley._p_last_position(position_sequence);
  return wait;
end
$$;

comment on function parley._p_begin_scan(regclass, integer, parley._p_wait) is
'Records, before a scan, what it will have seen: a sender that draws its position after this makes us scan again.
Arguments: position_sequence of the queue; timeout; wait, as it was.
Errors: 8402 timeout negative and not -1.';

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
begin
  wait.is_over := true;
  if parley._p_keeps_snapshot() then
    return wait;
  end if;
  if current_setting('client_connection_check_interval') = '0' then
    perform parley._p_check_client();
  end if;
  wait.started_at := coalesce(wait.started_at, wait.scanned_at);
  wait.lost := coalesce(wait.lost, 0) + case when wait.sent_at > wait.seen_at then 1 else 0 end;
  wait.seen_at := coalesce(wait.sent_at, wait.started_at);
  v_until := case
    when timeout < 0 then 'infinity'
    else wait.started_at + make_interval(secs => timeout / 1000.0)
  end;
  -- A sender that has drawn a position commits at once as a rule; if it does not, poll for its
  -- message ever more seldom.
  v_scan := v_now + least(
    greatest((v_now - wait.seen_at) / 2, interval '1 ms'), greatest((v_now - wait.seen_at) / 10, interval '100 ms'),
    interval '500 ms'
  );
  -- Where everything belongs to others, or messages come faster than they can be received, polling takes a
  -- third of the time at most.
  v_rested := v_now + least(2 * (v_now - wait.scanned_at), interval '100 ms');
  v_next := least(greatest(v_scan, v_rested), v_until);
  v_least := 0.0005 * (1 << least(wait.lost, 3));
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
    perform pg_sleep(
      greatest(v_least, least(date_part('epoch', v_next - v_now), v_quiet / 16, greatest(v_quiet / 200, 0.01), 0.025))
    );
    v_now := clock_timestamp();
  end loop;
end
$$;

comment on function parley._p_wait_for_message(regclass, integer, parley._p_wait) is
'Sleeps until it is worth scanning for messages again, or the time is over, and gives how it has waited.
Arguments: position_sequence of the queue; timeout in milliseconds, negative for ever; wait, as it was.';

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
