-- WAIT: a wait that holds nothing back.
--
-- A statement keeps one snapshot for as long as it runs, so a RECEIVE that waits keeps dead rows of all tables of the
-- server from being removed. A procedure may commit: this one reads the queue, sleeps for half a second at most, and
-- commits, again and again, so that its snapshot is never older than that. It takes nothing, locks nothing and writes
-- nothing: RECEIVE or TAKE behind it, without a time-out, has what it found, unless another reader was quicker.
--
-- A procedure that commits can neither pin its search_path nor run with its owner's rights. So it spells every name in
-- full and does nothing itself: _p_watch_queue, which pins and asks for rights, reads the queue and sleeps.
-- Invariants, and what keeps each:
--   nobody's work is committed by it   it refuses to begin in a transaction block, and in one that has written
--   it returns when there is something to receive   what it asks is what the daemon asks before it starts a reader
--     (activation/receivable_work.sql), and what is due (timers, messages put for later); of messages in the hands of
--     others none counts, so that who calls again at once does not spin
-- Cost of a poll: four statements and a commit without a number. It polls when and as often as RECEIVE does.

create function parley._p_commit_refusal() returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  commit;
  return null;
exception
  when invalid_transaction_termination then
    return sqlerrm;
end
$$;

comment on function parley._p_commit_refusal() is
'Gives what PostgreSQL says, in the language of the session, to a COMMIT where none is possible: in a function, and in a
procedure that was called inside a transaction.';

create function parley._p_is_worth_receiving(queue parley._p_queue) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_found record;
begin
  select r.groups, r.is_partial into v_found
  from parley._p_receivable(array[queue.queue_id], array[1], 1000) as r;
  if v_found.groups > 0 then
    return true;
  elsif queue.is_simple and parley._p_has_due_message(queue.queue_id)
    or not queue.is_simple and parley._p_has_due_alarm(queue.queue_id) then
    return true;
  end if;
  if v_found.is_partial then
    -- A thousand rows are in the hands of others, and more stand behind them: RECEIVE finds out.
    perform pg_sleep(0.1);
  end if;
  return coalesce(v_found.is_partial, false);
end
$$;

comment on function parley._p_is_worth_receiving(parley._p_queue) is
'Reports whether there is something in a queue that nobody has in his hands, or something to fire or to deliver. It
reads only.';

create function parley._p_watch_queue(
  queue text, timeout integer, wait parley._p_wait, caller parley.caller
) returns parley._p_wait
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue;
begin
  -- Nothing is ever later than a time that is not given.
  timeout := coalesce(timeout, 0);
  -- As RECEIVE does, because each poll does it.
  select * into v_queue from parley._p_queue as q where q.lookup_name = _p_watch_queue.queue;
  if pg_has_role(v_caller, v_queue.owner, 'usage') is not true then
    v_queue := parley._p_find_queue(v_caller, queue, 'RECEIVE');
  end if;
  if not v_queue.is_receive_enabled or parley._p_is_poisoned(v_queue.queue_id) then
    found := parley._p_raise(9617, 'disabled', v_queue.lookup_name);
  end if;
  wait := parley._p_begin_scan(v_queue.position_sequence, timeout, wait);
  if v_queue.readers_paused_at is not null and parley._p_is_paused(v_queue, 500) then
    wait.started_at := coalesce(wait.started_at, wait.scanned_at);
    wait.is_over := timeout >= 0
      and wait.started_at + make_interval(secs => timeout / 1000.0) <= clock_timestamp();
    return wait;
  end if;
  if parley._p_is_worth_receiving(v_queue) then
    wait.is_over := true;
    return wait;
  end if;
  return parley._p_wait_for_message(v_queue.position_sequence, timeout, wait);
exception
  -- Its sequence is gone: nothing of the queue was locked from the last poll to this one.
  when internal_error or undefined_table then
    perform from parley._p_queue as q where q.queue_id = v_queue.queue_id;
    if not found then
      found := parley._p_raise(208, 'queue', v_queue.lookup_name, '');
    end if;
    raise;
end
$$;

comment on function parley._p_watch_queue(text, integer, parley._p_wait, parley.caller) is
'One poll of parley.wait_for_message: reads a queue and, when nothing is to be received, sleeps for half a second at
most. is_over says that there is something, or that the time is over.
Arguments: those of wait_for_message; wait, as the poll before gave it, null at first. A caller that makes one up only
makes its own wait differ.
Errors: those of wait_for_message.';

create procedure parley.wait_for_message(queue text, timeout integer default -1)
language plpgsql
as $$
declare
  v_wait parley._p_wait;
begin
  -- Inside the block every COMMIT is refused, in a transaction for that reason and otherwise for the block's.
  begin
    commit;
  exception
    when invalid_transaction_termination then
      if sqlerrm operator(pg_catalog.=) parley._p_commit_refusal() then
        perform parley._p_raise(574, 'transaction');
      end if;
  end;
  if pg_catalog.pg_current_xact_id_if_assigned() is not null then
    perform parley._p_raise(574, 'transaction has written');
  end if;
  loop
    commit;
    -- A session whose default is another level sees its own polls only.
    set transaction isolation level read committed;
    v_wait := parley._p_watch_queue(queue, timeout, v_wait, parley.current_caller());
    exit when v_wait.is_over;
  end loop;
  commit;
end
$$;

comment on procedure parley.wait_for_message(text, integer) is
'Waits until it is worth calling receive, take or get_conversation_group on a queue, or the time is over. It keeps
nothing back meanwhile: it holds no lock, no transaction number, and no snapshot for longer than half a second. Call it
by itself, outside of a transaction, then receive without a time-out; when that finds nothing, another reader was
quicker or the time was over. Calling receive first and waiting when it finds nothing costs least. Messages that other
readers have in their hands do not end the wait; that they are given back, and that a timer or a delayed message is due,
does. Where the readers of the queue are paused it waits for a session with the setting parley.reader = on.
Arguments: queue, of either kind; timeout in milliseconds (-1: for ever; 0 or null: do not wait).
Errors: 208 no such queue, 229 not allowed to RECEIVE from it, 574 inside a transaction, 8402 timeout negative and not
-1, 9609 malformed name, 9617 the queue is disabled.
It commits between its polls, so a procedure that calls it must have committed what it has written before.';
