-- RECEIVE: the other hot path.
--
-- 1. Find and lock: _p_lock_first_group locks the first group of the lane that is free, in one statement (skip locked).
-- 2. With the lock held, a new statement sees all that earlier holders did: is the conversation still in this group,
--    how far has it been received, what is its first message? No other reader takes from it now.
-- 3. Take: one message by its position, a frame by its own, or many rows (receive/take_messages.sql). _p_received
--    alone makes the rows of the answer.
-- 4. Record how far it has been received.
-- A group is locked by its row, in which nothing changes, so step 1 may run on a snapshot that is old. Then step 2
-- finds nothing, or a message in front of the one that step 1 found. Therefore steps 2 and 3 begin where the hint says,
-- before which nothing is left but of conversations that it names as blocked (keeps S4, S19); those are tried first, in
-- a statement of their own. Where a scan can end is said as well: an index scan reads all of a page that is in bounds,
-- for one row.
-- Unusual groups (several conversations in the group, an Error or a timer message, retention, other priorities, a
-- blocked conversation, a queue from which a webhook delivers) go through receive/receive_group.sql; a RECEIVE by name
-- goes through receive/receive_named.sql first; many groups, through receive/receive_groups.sql.
-- A waiting RECEIVE holds nothing: after a scan that has locked, fired or set aside something in vain RECEIVE returns,
-- so that its caller commits.
--
-- Cost of a call: what starting a statement costs, five times, six beside a blocked conversation; see
-- docs/internals/measurements.md. Several small ones are cheaper than few large ones, and leave the planner no second
-- choice when statistics are stale. A call of a function that gives a record costs 2 microseconds, 4 when it sets its
-- search_path. The statements that take rows stand here because a function that returned them would have them copied
-- once more.

create function parley._p_require_receivable(caller oid, queue parley._p_queue) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_has_role(caller, queue.owner, 'usage') is not true then
    found := parley._p_require_permission(caller, 'RECEIVE', 'queue', queue.queue_id, queue.lookup_name, queue.owner);
  end if;
  if not queue.is_receive_enabled or queue.is_simple or parley._p_is_poisoned(queue.queue_id) then
    found := parley._p_raise_disabled(queue.queue_id);
  end if;
  return true;
end
$$;

comment on function parley._p_require_receivable(oid, parley._p_queue) is
'Gives true when somebody may receive from a queue, and it is on.
Errors: 229 not allowed, 8402 a simple queue, 9617 disabled.';

create function parley.receive(
  queue text,
  top integer default null,
  conversation_handle uuid default 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  conversation_group_id uuid default 'ffffffff-ffff-ffff-ffff-ffffffffffff',
  timeout integer default null,
  groups integer default null,
  caller parley.caller default current_user
) returns setof parley.received_message
language plpgsql security definer rows 100
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_scan record;
  v_queue parley._p_queue;
  v_hint parley._p_scan_hint;
  v_low bigint;
  v_is_blocked boolean;
  v_found record;
  v_endpoint parley._p_endpoint;
  v_message parley._p_message;
  v_type_name text;
  v_validation text;
  v_counted bigint;
  v_sequence bigint;
  v_left integer := coalesce(top, 2147483647);
  v_size integer;
  v_count integer;
  v_is_last boolean;
  -- Null was given too, and is refused.
  v_is_named constant boolean :=
    (conversation_handle, conversation_group_id) is distinct from (parley._p_any(), parley._p_any());
  v_named record;
  v_service_id integer;
  v_scan_past boolean := false;
  v_is_holding boolean := false;
  v_wait parley._p_wait;
begin
  <<scanning>>
  loop
    -- A column of its own costs more than a whole row.
    select q as queue, (select h from parley._p_newest_hint(parley._p_lane(q.queue_id, 5)) as h) as hint into v_scan
    from parley._p_queue as q where q.lookup_name = queue;
    if not found then
      queue := (parley._p_find_queue(v_caller, queue)).lookup_name;
      continue;
    end if;
    v_queue := v_scan.queue;
    v_hint := v_scan.hint;
    v_low := coalesce(v_hint.low_position, 0);
    v_is_blocked := cardinality(v_hint.blocked_endpoints) > 0;
    -- Asked for together, because an expression costs a thirtieth of a bare INSERT, and a function in it as much again.
    if pg_has_role(v_caller, v_queue.owner, 'usage') is not true or not v_queue.is_receive_enabled or v_queue.is_simple
      or v_queue.poison_action = 'DISABLE_QUEUE' or v_queue.readers_paused_at is not null or top < 1
      or groups is not null then
      found := parley._p_require_receivable(v_caller, v_queue);
      groups := nullif(groups, 1);
      if top < 1 and parley._p_require_top(top) or parley._p_is_paused(v_queue, timeout) then
        return;
      end if;
    end if;
    if timeout <> 0 then
      v_wait := parley._p_begin_scan(case when v_is_named then v_queue.position_sequence end, timeout, v_wait);
    end if;
    if coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) <= extract(epoch from clock_timestamp()) * 1000000
      and (coalesce(timeout, 0) = 0 or parley._p_has_due_alarm(v_queue.queue_id)) then
      v_is_holding := parley._p_fire_alarms(v_queue.queue_id, 8) > 0 or v_is_holding;
    end if;
    if v_is_blocked and v_queue.priorities = 32 and not v_queue.is_retention_enabled and not v_queue.has_deliveries
      and not v_scan_past and not v_is_named then
      v_scan_past := parley._p_lock_blocked_group(v_hint);
      v_is_holding := v_is_holding or v_scan_past;
      v_low := greatest(v_low, case when not v_scan_past then v_hint.resume_position end);
    end if;
    if v_is_named and groups is null then
      v_named := parley._p_poll_named(
        v_queue.queue_id, conversation_handle, conversation_group_id, v_service_id, timeout
      );
      v_service_id := v_named.service_id;
      if v_named.is_ready then
        return query select * from parley._p_receive_group(
          v_queue.queue_id, top, receive.conversation_handle, receive.conversation_group_id
        );
        exit scanning when found;
      end if;
      v_is_holding := v_is_holding or v_named.is_ready or v_named.has_locked;
    elsif v_queue.priorities <> 32 or v_queue.is_retention_enabled or v_queue.has_deliveries or v_scan_past
      or groups is not null then
      if groups is not null and parley._p_require_groups(groups, v_is_named) and not v_queue.is_retention_enabled
        and not v_queue.has_deliveries and not v_scan_past then
        return query select * from parley._p_receive_groups(v_queue, top, groups);
        exit scanning when found;
      end if;
      v_scan_past := false;
      return query select * from parley._p_receive_group(v_queue.queue_id, top, null, null, true);
      exit scanning when found;
    else
      v_found := parley._p_lock_first_group(parley._p_lane(v_queue.queue_id, 5), v_low, 32);
      if v_found.position is null then
        -- All that the scan saw is locked. If nothing is there there is nothing to search.
        if not v_found.is_lane_over then
          return query select * from parley._p_receive_group(v_queue.queue_id, top, null, null, true);
          exit scanning when found;
        end if;
      else
        -- The hint is 64 rows old: renew it, but not all readers at once.
        if v_found.position - v_low > 65536
          and (v_found.position - v_low > 262144 or (v_found.position >> 10) % 16 = pg_backend_pid() % 16) then
          perform parley._p_renew_hint(v_queue.queue_id, parley._p_lane(v_queue.queue_id, 5), v_found.position, v_hint);
        end if;
        select e as endpoint, m.message, m.taker,
          coalesce((
            select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id
            order by p.sequence desc limit 1
          ), 0) as sequence
        into v_scan
        from parley._p_endpoint as e
        cross join lateral (
          select n as message, n.xmax as taker
          from parley._p_message as n
          where n.endpoint_id = e.endpoint_id and n.position >= v_low and n.position < v_found.bound
          order by n.position limit 1
        ) as m
        where e.endpoint_id = v_found.endpoint_id and e.group_id = v_found.group_id and e.state <> 'DO';
        v_is_holding := true;
        continue when not found;
        v_endpoint := v_scan.endpoint;
        v_message := v_scan.message;
        v_sequence := v_scan.sequence;
        if not v_endpoint.is_plain or v_message.message_type_id in (1, 5)
          or v_is_blocked and v_endpoint.endpoint_id = any (v_hint.blocked_endpoints) then
          return query
          select * from parley._p_receive_group(v_queue.queue_id, top, null, v_found.conversation_group_id, true);
          exit scanning when found;
          -- It is set aside, and more of it may stand in front of the others.
          v_scan_past := true;
          continue;
        elsif v_message.lane <> parley._p_lane(v_queue.queue_id, 5)
          or v_scan.taker <> '0' and v_counted is distinct from v_message.position then
          -- ALTER SERVICE may have given its messages to another queue between the scan and the lock.
          continue when v_message.lane <> parley._p_lane(v_queue.queue_id, 5);
          v_scan_past := parley._p_keeper(v_scan.taker, v_queue.queue_id) is not null;
          continue when v_scan_past;
          -- Counting may have waited, or have set the conversation aside, so scan again.
          if parley._p_count_rollback(v_queue.queue_id, v_endpoint.endpoint_id, v_message.position, true) is null then
            return;
          end if;
          v_counted := v_message.position;
          continue;
        end if;
        loop
          v_size := cardinality(v_message.frame);
          if v_message.message_type_id = v_endpoint.usual_message_type_id then
            v_type_name := v_endpoint.usual_message_type_name;
            v_validation := 'N';
          else
            select t.name, t.validation into v_type_name, v_validation
            from parley._p_message_type as t where t.message_type_id = v_message.message_type_id;
          end if;
          if v_size is null and v_left > 1 then
            -- Most conversations are short: one message is taken as by TOP (1), for half of what taking many costs.
            v_is_last := not exists (
              select from parley._p_message as n
              where n.endpoint_id = v_endpoint.endpoint_id and n.position > v_message.position
                and n.message_type_id not in (1, 5)
            );
          end if;
          if v_size is null and not v_is_last then
            -- An Error or timer message that has come since is for the next RECEIVE.
            return query
            delete from parley._p_message as m
            using parley._p_rows_sent_alone(
              v_endpoint.endpoint_id, v_low, v_left, v_message.message_type_id, v_type_name, v_validation
            ) as p
            where m.ctid = p.row_id
            returning (parley._p_received(
              0::smallint, v_endpoint.priority, m.position, v_found.conversation_group_id,
              v_endpoint.conversation_handle, v_sequence + p.before, v_endpoint.service_name, v_endpoint.service_id,
              v_endpoint.service_contract_name, v_endpoint.service_contract_id, m.message_type_id, p.type_name,
              p.validation, m.body, m.enqueued_at, null, m.trace_context
            )).*;
            get diagnostics v_count = row_count;
          elsif v_size <= v_left / 8 then
            -- Many frames, and what stands between them, as far as whole rows go; a few are cheaper one by one.
            return query
            with gone as (
              delete from parley._p_message as m
              using parley._p_whole_rows(
                v_endpoint.endpoint_id, v_low, v_left::bigint / v_size + 1, v_left, v_message.message_type_id,
                v_type_name, v_validation
              ) as p
              where m.ctid = p.row_id
              returning m.position, m.message_type_id, m.enqueued_at, coalesce(m.frame, array[m.body]) as frame,
                m.trace_context, v_sequence + p.before as sequence, p.type_name, p.validation
            ), opened as (
              select g.position, g.message_type_id, g.enqueued_at, g.trace_context, g.sequence, g.type_name,
                g.validation, unnest(g.frame) as body, generate_series(0, cardinality(g.frame) - 1) as ordinal
              from gone as g
            )
            select (parley._p_received(
              0::smallint, v_endpoint.priority, p.position + p.ordinal, v_found.conversation_group_id,
              v_endpoint.conversation_handle, p.sequence + p.ordinal, v_endpoint.service_name, v_endpoint.service_id,
              v_endpoint.service_contract_name, v_endpoint.service_contract_id, p.message_type_id, p.type_name,
              p.validation, p.body, p.enqueued_at, null, p.trace_context
            )).*
            from opened as p;
            get diagnostics v_count = row_count;
          else
            delete from parley._p_message as m
            where m.endpoint_id = v_endpoint.endpoint_id and m.position = v_message.position;
            if not found then
              -- No reader takes from a group that we hold, but one with a snapshot from before a MOVE (keeps S3).
              v_count := 0;
            elsif v_size is null then
              return next parley._p_received(
                0::smallint, v_endpoint.priority, v_message.position, v_found.conversation_group_id,
                v_endpoint.conversation_handle, v_sequence, v_endpoint.service_name, v_endpoint.service_id,
                v_endpoint.service_contract_name, v_endpoint.service_contract_id, v_message.message_type_id,
                v_type_name, v_validation, v_message.body, v_message.enqueued_at, null, v_message.trace_context
              );
              v_count := 1;
            else
              v_count := least(v_size, v_left);
              return query
              select (parley._p_received(
                0::smallint, v_endpoint.priority, v_message.position + f.ordinal, v_found.conversation_group_id,
                v_endpoint.conversation_handle, v_sequence + f.ordinal, v_endpoint.service_name,
                v_endpoint.service_id, v_endpoint.service_contract_name, v_endpoint.service_contract_id,
                v_message.message_type_id, v_type_name, v_validation, f.body, v_message.enqueued_at, null,
                v_message.trace_context
              )).*
              from (select unnest(v_message.frame[:v_count]) as body, generate_series(0, v_count - 1) as ordinal) as f;
              if v_count < v_size then
                perform parley._p_put_rest_back(v_message, v_count, top);
              end if;
            end if;
          end if;
          v_left := v_left - v_count;
          v_sequence := v_sequence + v_count;
          exit when v_left = 0 or v_is_last;
          select n as message into v_scan
          from parley._p_message as n
          where n.endpoint_id = v_endpoint.endpoint_id and n.position >= v_low and n.message_type_id not in (1, 5)
          order by n.position limit 1;
          exit when not found;
          v_message := v_scan.message;
        end loop;
        found := parley._p_record_received(
          v_endpoint.endpoint_id, v_sequence, greatest(coalesce(top, 2147483647) - v_left, 1)
        );
        exit scanning;
      end if;
    end if;
    exit when coalesce(timeout, 0) = 0 or parley._p_has_unseen() or v_is_holding;
    v_wait := parley._p_wait_in_receive(v_queue, v_is_named, timeout, v_wait);
    exit when v_wait.is_over;
  end loop;
  if v_wait.scanned_at is not null then
    found := parley._p_end_wait(v_wait.started_at is not null);
  end if;
end
$$;

comment on function parley.receive(text, integer, uuid, uuid, integer, integer, parley.caller) is
'Receives messages: removes them from the queue, in this transaction, and locks their conversation group to its end.
All messages come from one group, conversation by conversation; the group is the first, by priority and arrival, that
nobody else has locked.
Arguments: queue, its name; top, at most so many messages (null: all of the group); conversation_handle,
conversation_group_id: receive only from that one, waiting for its lock (left out: from any; null is refused); timeout
in milliseconds to wait for a message (null or 0: do not wait, -1: for ever); groups, from up to so many groups, 1 to
10,000, all of which stay locked (null: from one). A message that has come back after a rollback is received alone, with
its group; in a queue with a retry policy, unless it is named, not for half a second, for a report (record_failure).
It waits without a lock and without a transaction number, but with its snapshot: a wait of more than some seconds keeps
dead rows of the whole server from being removed. Wait with parley.wait_for_message for longer. When it had to fire a
timer, to set a conversation aside or to lock a group in vain, it returns nothing before its time: commit, and call it
again.
Errors: 127 top negative, 208 no such queue, 229 not allowed, 8402 timeout negative and not -1, groups out of range or
with one named, 8414 the conversation is not in the group, 8418 and 8420 handle or group null, 8426 and 8436
conversation or group not found in this queue, or ended meanwhile, 8468 and 8470 its service was altered or dropped
meanwhile, 9609 malformed name, 9617 the queue is disabled.
Call it at READ COMMITTED: an older snapshot does not see what came later, and never waits.
Source: spec 4.3.';
