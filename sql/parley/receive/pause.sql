-- Pause and resume of the readers of a queue: those that the daemon starts, those of programs that say of themselves
-- that they are readers, and deliveries to web addresses. Senders go on, and so does a RECEIVE by hand.
--
-- A session says that it is a reader by its setting parley.reader = on; the daemon and the Go package's Consumer set
-- it. A reader finishes the messages that it has received: pausing waits for nothing and ends nothing.
-- Locks: the queue's row. Cost for RECEIVE: a column of the row that it has read anyway.

create function parley._p_is_paused(queue parley._p_queue, timeout integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if queue.readers_paused_at is null or current_setting('parley.reader', true) is distinct from 'on' then
    return false;
  end if;
  -- A session that waits is not to ask again at once.
  if timeout <> 0 then
    perform pg_sleep(case when timeout between 1 and 1000 then timeout / 1000.0 else 1 end);
  end if;
  return true;
end
$$;

comment on function parley._p_is_paused(parley._p_queue, integer) is
'Reports whether this session is a reader and the readers of a queue are paused: then it receives nothing. It waits for
a
second at most, if it was asked to wait.';

create function parley._p_set_pause(caller oid, queue text, is_paused boolean) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, 'ALTER');
begin
  update parley._p_queue as q
  set readers_paused_at = case when is_paused then clock_timestamp() end
  where q.queue_id = v_queue.queue_id and (q.readers_paused_at is not null) <> is_paused;
  if found and not is_paused then
    perform parley._p_wake_readers(v_queue.queue_id, v_queue.wakeup_sequence);
  end if;
  return found;
end
$$;

comment on function parley._p_set_pause(oid, text, boolean) is
'Pauses or resumes the readers of a queue; false when they were so already.
Errors: 208, 229, 9609, 9663.';

create function parley.pause_readers(
  queue text,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_set_pause(v_caller, queue, true);
end
$$;

comment on function parley.pause_readers(text, parley.caller) is
'Pauses the readers of a queue, from the commit on. The daemon starts none and delivers nothing to web addresses.
RECEIVE gives nothing to sessions with the setting parley.reader = on, as those of the daemon''s procedures and of the
Go package''s Consumer are. They finish the messages that they have received. Senders go on, and RECEIVE by hand does.
Gives false when they were paused already.
Errors: 208 not found, 229 not allowed to ALTER it, 9609 malformed name, 9663 system object.';

create function parley.resume_readers(
  queue text,
  caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  return parley._p_set_pause(v_caller, queue, false);
end
$$;

comment on function parley.resume_readers(text, parley.caller) is
'Lets the readers of a queue go on, and wakes them. Gives false when they were not paused.
Errors: those of pause_readers.';
