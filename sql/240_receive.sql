-- RECEIVE: the other hot path.
--
-- 1. Look at the first rows of the lane and lock the first group that is free, in one statement (skip locked).
-- 2. With the lock held, a new statement sees all that earlier holders did: take the group's messages by (endpoint_id, position).
-- A group is locked by its row, which nobody updates, so step 1 may run on a snapshot that is already old: then step 2 finds
-- less or nothing, or that the conversation has moved to another group, and we look again. It may also find more, in front of what step 1
-- found: senders may have committed since, and a group that was locked when we passed its first message may be free when we come to its
-- second. Therefore it begins at the first row of all, and no later than all senders are known to be done (keeps S4, S19).
-- Whatever is unusual (several conversations in the group, an Error or a timer message, retention, other priorities, a named
-- conversation) goes through 241_receive_group.sql.
--
-- Cost of a call: three statements, each an index range; deleting touches no index. See docs/performance.md for what was tried.

create type parley.received_message as (
  status smallint,
  priority smallint,
  queuing_order bigint,
  conversation_group_id uuid,
  conversation_handle uuid,
  message_sequence_number bigint,
  service_name text,
  service_id integer,
  service_contract_name text,
  service_contract_id integer,
  message_type_name text,
  message_type_id integer,
  validation text,
  message_body bytea,
  message_enqueue_time timestamptz,
  message_id uuid
);

comment on type parley.received_message is 'A message as RECEIVE and the view of a queue show it (spec 4.3).';

create function parley.receive(
  queue text,
  top integer default null,
  conversation_handle uuid default null,
  conversation_group_id uuid default null,
  timeout integer default null
) returns setof parley.received_message
language plpgsql security definer rows 100
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set jit = off
as $$
declare
  v_queue_id integer;
  v_lookup_name text;
  v_owner oid;
  v_position_sequence regclass;
  v_is_enabled boolean;
  v_limit integer;
  v_rollbacks bigint;
  v_is_simple boolean;
  v_low bigint;
  v_safe bigint;
  v_from bigint;
  v_head record;
  v_lane integer;
  v_left integer;
  v_sequence bigint;
  v_count integer;
  v_total integer := 0;
  v_started timestamptz;
  v_last bigint;
begin
  loop
    select q.queue_id, q.lookup_name, q.owner, q.position_sequence,
      q.is_receive_enabled, case when q.is_poison_message_handling_enabled then q.rollbacks_before_disable else 16 end,
      coalesce(pg_sequence_last_value(q.rollback_sequence), 0),
      q.priorities = 32 and not q.is_retention_enabled and coalesce(cardinality(h.blocked_groups), 0) = 0,
      coalesce(h.low_position, 0), coalesce(h.safe_position, 0)
    into v_queue_id, v_lookup_name, v_owner, v_position_sequence, v_is_enabled, v_limit, v_rollbacks, v_is_simple, v_low, v_safe
    from parley._p_queue as q
    left join lateral (
      select s.low_position, s.safe_position, s.blocked_groups
      from parley._p_scan_hint as s
      where s.lane = q.queue_id * 16 + 6
      order by s.lane desc, s.hint_id desc
      limit 1
    ) as h on true
    where q.lookup_name = queue;
    if not found then
      queue := (parley._p_find_queue(queue)).lookup_name;
      continue;
    end if;
    if current_setting('role') <> 'none' or not pg_has_role(session_user, v_owner, 'usage') then
      perform parley._p_require_permission('RECEIVE', 'queue', v_queue_id, v_lookup_name, v_owner);
    end if;
    if not v_is_enabled or (v_rollbacks <> 0 and greatest(v_rollbacks & 15, v_rollbacks >> 31 & 15) >= v_limit) then
      perform parley._p_raise_disabled(v_queue_id);
    end if;
    if coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) <= extract(epoch from clock_timestamp()) * 1000000 then
      perform parley._p_fire_alarms(v_queue_id, 1000);
    end if;
    if top < 1 then
      return;
    end if;
    v_lane := v_queue_id * 16 + 6;
    -- Read before we look: a sender that draws its position after this makes us look again while we wait.
    if coalesce(timeout, 0) <> 0 then
      v_last := parley._p_last_position(v_position_sequence);
    end if;

    if conversation_handle is not null or conversation_group_id is not null or not v_is_simple then
      return query
      select * from parley._p_receive_group(v_queue_id, top, receive.conversation_handle, receive.conversation_group_id);
      get diagnostics v_total = row_count;
    else
      select m.position, m.first_position, m.came_back, m.frame_size, e.endpoint_id, e.group_id, e.conversation_handle, e.is_plain, e.priority,
        e.service_id, e.service_name, e.service_contract_id, e.service_contract_name, e.usual_message_type_id, e.usual_message_type_name,
        g.conversation_group_id
      into v_head
      from (
        select o.position, o.endpoint_id, o.came_back, o.frame_size,
          first_value(o.position) over (order by o.position rows unbounded preceding) as first_position
        from (
          select n.position, n.endpoint_id, n.xmax::text <> '0' as came_back, coalesce(cardinality(n.frame), 0) as frame_size
          from parley._p_message as n
          where n.lane = v_lane and n.position >= v_low
          order by n.position
          limit 32
        ) as o
      ) as m
      join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id and e.state <> 'DO'
      join parley._p_conversation_group as g on g.group_id = e.group_id
      order by m.position
      limit 1
      for update of g skip locked;
      if not found then
        return query select * from parley._p_receive_group(v_queue_id, top, null, null);
        get diagnostics v_total = row_count;
      elsif not v_head.is_plain then
        return query select * from parley._p_receive_group(v_queue_id, top, null, v_head.conversation_group_id);
        get diagnostics v_total = row_count;
        continue when v_total = 0;
      else
        if v_head.came_back then
          perform parley._p_count_rollback(v_queue_id, v_head.endpoint_id, v_head.position);
        end if;
        -- The hint is 64 rows old: renew it, but not all readers at once.
        if v_head.position - v_low > 65536 and (v_head.position - v_low > 262144 or (v_head.position >> 10) % 4 = pg_backend_pid() % 4) then
          perform parley._p_note_scan(v_queue_id, v_lane, v_head.position, '{}', 0);
        end if;
        select coalesce(
          (select p.sequence from parley._p_receive_progress as p where p.endpoint_id = e.endpoint_id order by p.sequence desc limit 1),
          0
        )
        into v_sequence
        from parley._p_endpoint as e
        where e.endpoint_id = v_head.endpoint_id and e.group_id = v_head.group_id and e.is_plain;
        continue when not found;
        v_from := least(v_head.first_position, v_safe);
        v_left := coalesce(top, 2147483647);
        while v_left > 0 loop
          if v_left = 1 and v_head.frame_size = 0 then
            -- One message, the commonest RECEIVE of all: the same as below, without what only many need.
            return query
            with gone as (
              delete from parley._p_message as m
              where m.ctid = any (array(
                  select n.ctid
                  from parley._p_message as n
                  where n.endpoint_id = v_head.endpoint_id and n.position >= v_from
                  order by n.position
                  limit 1
                ))
                and m.frame is null
              returning m.position, m.message_type_id, m.enqueued_at, m.body
            ), progress as (
              insert into parley._p_receive_progress (endpoint_id, sequence) select v_head.endpoint_id, v_sequence + 1 from gone
            )
            select
              0::smallint,
              v_head.priority,
              g.position,
              v_head.conversation_group_id,
              v_head.conversation_handle,
              v_sequence,
              v_head.service_name,
              v_head.service_id,
              v_head.service_contract_name,
              v_head.service_contract_id,
              case
                when g.message_type_id = v_head.usual_message_type_id then v_head.usual_message_type_name
                else (select t.name from parley._p_message_type as t where t.message_type_id = g.message_type_id)
              end,
              g.message_type_id,
              case
                when g.message_type_id = v_head.usual_message_type_id then 'N'
                else (select t.validation::text from parley._p_message_type as t where t.message_type_id = g.message_type_id)
              end,
              g.body,
              g.enqueued_at,
              null::uuid
            from gone as g;
          elsif v_head.frame_size = 0 then
            return query
            with picked as materialized (
              select p.row_id, p.position, p.message_type_id, p.enqueued_at, p.body, p.number
              from (
                select m.ctid as row_id, m.position, m.message_type_id, m.enqueued_at, m.body,
                  row_number() over (order by m.position rows unbounded preceding) as number,
                  count(m.frame) over (order by m.position rows unbounded preceding) as frames
                from (
                  select n.ctid, n.position, n.message_type_id, n.enqueued_at, n.body, n.frame
                  from parley._p_message as n
                  where n.endpoint_id = v_head.endpoint_id and n.position >= v_from
                  order by n.position
                  limit v_left
                ) as m
              ) as p
              where p.frames = 0
            ), gone as (
              delete from parley._p_message as m where m.ctid = any (array(select p.row_id from picked as p))
            ), progress as (
              insert into parley._p_receive_progress (endpoint_id, sequence)
              select v_head.endpoint_id, v_sequence + max(p.number) from picked as p having count(*) > 0
            )
            select
              0::smallint,
              v_head.priority,
              p.position,
              v_head.conversation_group_id,
              v_head.conversation_handle,
              v_sequence + p.number - 1,
              v_head.service_name,
              v_head.service_id,
              v_head.service_contract_name,
              v_head.service_contract_id,
              case
                when p.message_type_id = v_head.usual_message_type_id then v_head.usual_message_type_name
                else (select t.name from parley._p_message_type as t where t.message_type_id = p.message_type_id)
              end,
              p.message_type_id,
              case
                when p.message_type_id = v_head.usual_message_type_id then 'N'
                else (select t.validation::text from parley._p_message_type as t where t.message_type_id = p.message_type_id)
              end,
              p.body,
              p.enqueued_at,
              null::uuid
            from picked as p;
          else
            return query
            with picked as materialized (
              select m.ctid as row_id, m.position, m.message_type_id, m.enqueued_at, m.frame, m.count,
                sum(m.count) over (order by m.position rows unbounded preceding) - m.count as before
              from (
                select n.ctid, n.position, n.message_type_id, n.enqueued_at, coalesce(n.frame, array[n.body]) as frame,
                  coalesce(cardinality(n.frame), 1) as count
                from parley._p_message as n
                where n.endpoint_id = v_head.endpoint_id and n.position >= v_from
                order by n.position
                limit v_left::bigint / v_head.frame_size + 1
              ) as m
            ), gone as (
              delete from parley._p_message as m where m.ctid = any (array(select p.row_id from picked as p where p.before < v_left))
            ), left_over as (
              -- What is left of a frame goes back in pieces no larger than this reader may take: the next one like it takes whole rows.
              insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame)
              select p.position + f.first - 1, v_head.endpoint_id, p.enqueued_at, v_lane, p.message_type_id,
                case when top = 1 then p.frame[f.first] end,
                case when top > 1 then p.frame[f.first : f.first + top - 1] end
              from picked as p
              cross join lateral generate_series((v_left - p.before)::integer + 1, p.count, top) as f (first)
              where p.before < v_left and p.before + p.count > v_left
            ), progress as (
              insert into parley._p_receive_progress (endpoint_id, sequence)
              select v_head.endpoint_id, v_sequence + max(least(p.before + p.count, v_left)) from picked as p having count(*) > 0
            ), opened as (
              select p.position, p.message_type_id, p.enqueued_at, p.before,
                unnest(p.frame) as body, generate_series(1, p.count) as ordinal
              from picked as p
            )
            select
              0::smallint,
              v_head.priority,
              p.position + p.ordinal - 1,
              v_head.conversation_group_id,
              v_head.conversation_handle,
              v_sequence + p.before + p.ordinal - 1,
              v_head.service_name,
              v_head.service_id,
              v_head.service_contract_name,
              v_head.service_contract_id,
              case
                when p.message_type_id = v_head.usual_message_type_id then v_head.usual_message_type_name
                else (select t.name from parley._p_message_type as t where t.message_type_id = p.message_type_id)
              end,
              p.message_type_id,
              case
                when p.message_type_id = v_head.usual_message_type_id then 'N'
                else (select t.validation::text from parley._p_message_type as t where t.message_type_id = p.message_type_id)
              end,
              p.body,
              p.enqueued_at,
              null::uuid
            from opened as p
            where p.before + p.ordinal <= v_left;
          end if;
          get diagnostics v_count = row_count;
          v_total := v_total + v_count;
          v_left := v_left - v_count;
          v_sequence := v_sequence + v_count;
          exit when v_left = 0;
          -- There may be more: rows of the other kind, or frames smaller than the first.
          select m.position, coalesce(cardinality(m.frame), 0) into v_head.position, v_head.frame_size
          from parley._p_message as m
          where m.endpoint_id = v_head.endpoint_id and m.position >= v_from
          order by m.position
          limit 1;
          exit when not found;
        end loop;
        continue when v_total = 0;
        -- Only the newest count is needed; the older ones go now and then.
        if v_sequence >> 8 <> (v_sequence - v_total) >> 8 then
          delete from parley._p_receive_progress as p where p.endpoint_id = v_head.endpoint_id and p.sequence < v_sequence;
        end if;
      end if;
    end if;
    exit when v_total > 0 or coalesce(timeout, 0) = 0;
    v_started := coalesce(v_started, clock_timestamp());
    exit when not parley._p_wait_for_message(v_position_sequence, v_last, v_started, timeout);
  end loop;
end
$$;

comment on function parley.receive(text, integer, uuid, uuid, integer) is
'Receives messages: removes them from the queue, in this transaction, and locks their conversation group to its end.
All messages come from one group, conversation by conversation; the group is the first, by priority and arrival, that nobody else has locked.
Arguments: queue, its name; top, at most so many messages (null: all of the group); conversation_handle or conversation_group_id, receive only from that one,
waiting for its lock; timeout in milliseconds to wait for a message (null or 0: do not wait, -1: for ever).
Errors: 208 no such queue, 229 not allowed, 8426 and 8436 conversation or group not found in this queue, 9609 malformed name, 9617 the queue is disabled.
Call it at READ COMMITTED: an older snapshot does not see what came later, and never waits.
Source: spec 4.3.';
