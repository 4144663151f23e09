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

create function parley._p_wait_for_message(
  position_sequence regclass, last bigint, sent timestamptz, scanned_at timestamptz, started timestamptz,
  timeout integer, lost integer
) returns timestamptz
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := clock_timestamp();
  -- A sender that has drawn a position commits at once as a rule; if it does not, poll for its
  -- message ever more seldom.
  v_scan timestamptz := v_now + least(
    greatest((v_now - sent) / 2, interval '1 ms'), greatest((v_now - sent) / 10, interval '100 ms'), interval '500 ms'
  );
  -- Where everything belongs to others, or messages come faster than they can be received, polling takes a
  -- third of the time at most.
  v_rested timestamptz := v_now + least(2 * (v_now - scanned_at), interval '100 ms');
  v_until timestamptz := case
    when timeout < 0 then 'infinity'
    else started + make_interval(secs => timeout / 1000.0)
  end;
  v_next timestamptz := least(greatest(v_scan, v_rested), v_until);
  v_least float8 := 0.0005 * (1 << least(lost, 3));
  v_quiet float8;
begin
  if parley._p_keeps_snapshot() then
    return null;
  end if;
  if current_setting('client_connection_check_interval') = '0' then
    perform parley._p_check_client();
  end if;
  loop
    if v_now >= v_until then
      perform set_config('parley.unwatched', '', true);
      return null;
    elsif pg_sequence_last_value(position_sequence) is distinct from last then
      perform pg_sleep(greatest(0.001, extract(epoch from least(v_rested, v_until) - v_now)));
      return v_now;
    elsif v_now >= v_next then
      return sent;
    end if;
    v_quiet := date_part('epoch', v_now - sent);
    perform pg_sleep(
      greatest(v_least, least(date_part('epoch', v_next - v_now), v_quiet / 16, greatest(v_quiet / 200, 0.01), 0.025))
    );
    v_now := clock_timestamp();
  end loop;
end
$$;

comment on function parley._p_wait_for_message(
  regclass, bigint, timestamptz, timestamptz, timestamptz, integer, integer
) is
'Sleeps until it is worth scanning for messages again and gives what to give as sent next time,
or null when the time is over.
Arguments: position_sequence of the queue; last, its value before the last scan; sent, when somebody last drew a
position, or when the wait began; scanned_at, when that scan began; started, when the wait began; timeout in
milliseconds, negative for ever; lost, how often nothing was found after somebody had drawn a position: the message
was gone, or not committed yet.';

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
