-- RECEIVE: the other hot path.
--
-- 1. Look at the first rows of the lane and lock the first group that is free, in one statement (skip locked).
-- 2. With the lock held, a new statement sees all that earlier holders did: take the group's messages by (endpoint_id, position).
-- A group is locked by its row, which nobody updates, so step 1 may run on a snapshot that is already old: then step 2 finds
-- less or nothing, and we look again. Messages that the snapshot of step 2 does not see were committed later (keeps S19).
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
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue_id integer;
  v_lookup_name text;
  v_owner oid;
  v_position_sequence regclass;
  v_is_enabled boolean;
  v_is_simple boolean;
  v_low bigint;
  v_head record;
  v_rows integer;
  v_left integer;
  v_sequence bigint;
  v_from bigint;
  v_count integer;
  v_total integer := 0;
  v_message_id text;
  v_started timestamptz;
  v_last bigint;
begin
  loop
    select q.queue_id, q.lookup_name, q.owner, q.position_sequence,
      q.is_receive_enabled and (coalesce(pg_sequence_last_value(q.rollback_sequence), 0) = 0 or not parley._p_is_poisoned(q)),
      q.priorities = 32 and not q.is_retention_enabled and coalesce(cardinality(h.blocked_groups), 0) = 0,
      coalesce(h.low_position, 0)
    into v_queue_id, v_lookup_name, v_owner, v_position_sequence, v_is_enabled, v_is_simple, v_low
    from parley._p_queue as q
    left join lateral (
      select s.low_position, s.blocked_groups from parley._p_scan_hint as s where s.lane = q.queue_id * 16 + 6 order by s.hint_id desc limit 1
    ) as h on true
    where q.lookup_name = queue;
    if not found then
      queue := (parley._p_find_queue(queue)).lookup_name;
      continue;
    end if;
    if current_setting('role') <> 'none' or not pg_has_role(session_user, v_owner, 'usage') then
      perform parley._p_require_permission('RECEIVE', 'queue', v_queue_id, v_lookup_name, v_owner);
    end if;
    if not v_is_enabled then
      perform parley._p_raise_disabled(v_queue_id);
    end if;
    if coalesce(pg_sequence_last_value('parley._p_next_alarm'), 0) <= extract(epoch from clock_timestamp()) * 1000000 then
      perform parley._p_fire_alarms(v_queue_id, 1000);
    end if;
    if top < 1 then
      return;
    end if;
    -- Read before we look: a sender that draws its position after this makes us look again while we wait.
    v_last := pg_sequence_last_value(v_position_sequence);

    if conversation_handle is not null or conversation_group_id is not null or not v_is_simple then
      return query
      select * from parley._p_receive_group(v_queue_id, top, receive.conversation_handle, receive.conversation_group_id);
      get diagnostics v_total = row_count;
    else
      select m.position, m.came_back, m.count, e.endpoint_id, e.group_id, e.conversation_handle, e.is_plain, e.priority, e.service_id, e.service_name,
        e.service_contract_id, e.service_contract_name, e.usual_message_type_id, e.usual_message_type_name, g.conversation_group_id
      into v_head
      from (
        select n.position, n.endpoint_id, n.xmax::text <> '0' as came_back, coalesce(cardinality(n.frame), 1) as count
        from parley._p_message as n
        where n.lane = v_queue_id * 16 + 6 and n.position >= v_low
        order by n.position
        limit 32
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
      else
        if v_head.came_back then
          perform parley._p_count_rollback(v_queue_id, v_head.endpoint_id, v_head.position);
        end if;
        if v_head.position - v_low > 262144 then
          perform parley._p_note_scan(v_queue_id, v_queue_id * 16 + 6, v_head.position, '{}', 0);
        end if;
        v_message_id := lpad(to_hex(v_head.endpoint_id), 16, '0');
        v_left := top;
        v_from := v_head.position;
        loop
          -- Rows hold one message or a frame of them; the first row tells how many to expect in each.
          v_rows := v_left / v_head.count + case v_left % v_head.count when 0 then 0 else 1 end;
          select p.sequence into v_sequence
          from parley._p_receive_progress as p
          where p.endpoint_id = v_head.endpoint_id
          order by p.sequence desc
          limit 1;
          return query
          with picked as materialized (
            select m.ctid as row_id, m.position, m.message_type_id, m.enqueued_at, m.body, m.frame, coalesce(cardinality(m.frame), 1) as count
            from parley._p_message as m
            where m.endpoint_id = v_head.endpoint_id and m.position >= v_from
            order by m.position
            limit v_rows
          ), counted as materialized (
            select p.*, (sum(p.count) over (order by p.position rows unbounded preceding))::integer - p.count as before
            from picked as p
          ), gone as (
            delete from parley._p_message as m
            using counted as c
            where m.ctid = c.row_id and (v_left is null or c.before < v_left)
          ), left_over as (
            insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame)
            select c.position + r.skipped, v_head.endpoint_id, c.enqueued_at, v_queue_id * 16 + 6, c.message_type_id, r.body, r.frame_left
            from counted as c
            cross join lateral parley._p_rest_of_frame(c.frame, v_left - c.before) as r
            where c.before < v_left and c.before + c.count > v_left
          ), progress as (
            insert into parley._p_receive_progress (endpoint_id, sequence)
            select v_head.endpoint_id, coalesce(v_sequence, 0) + max(least(c.before + c.count, coalesce(v_left, 2147483647)))
            from counted as c
            having count(*) > 0
          )
          select
            0::smallint,
            v_head.priority,
            c.position + b.ordinal - 1,
            v_head.conversation_group_id,
            v_head.conversation_handle,
            coalesce(v_sequence, 0) + c.before + b.ordinal - 1,
            v_head.service_name,
            v_head.service_id,
            v_head.service_contract_name,
            v_head.service_contract_id,
            case c.message_type_id when v_head.usual_message_type_id then v_head.usual_message_type_name else t.name end,
            c.message_type_id,
            t.validation::text,
            b.body,
            c.enqueued_at,
            (v_message_id || lpad(to_hex(c.position + b.ordinal - 1), 16, '0'))::uuid
          from counted as c
          join parley._p_message_type as t on t.message_type_id = c.message_type_id
          cross join lateral unnest(coalesce(c.frame, array[c.body])) with ordinality as b (body, ordinal)
          where v_left is null or c.before + b.ordinal <= v_left
          order by c.position, b.ordinal;
          get diagnostics v_count = row_count;
          v_total := v_total + v_count;
          v_left := v_left - v_count;
          exit when v_left is null or v_left <= 0 or v_count = 0;
          v_head.count := 1;
        end loop;
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

create function parley._p_rest_of_frame(frame bytea[], taken integer) returns table (skipped integer, body bytea, frame_left bytea[])
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select f.first - 1,
    case when p.size = 1 then $1[f.first] end,
    case when p.size > 1 then $1[f.first : f.first + p.size - 1] end
  from (select least($2, cardinality($1) - $2) as size) as p
  cross join lateral generate_series($2 + 1, cardinality($1), p.size) as f (first)
$$;

comment on function parley._p_rest_of_frame(bytea[], integer) is
'Cuts what a RECEIVE leaves of a frame into pieces of the size it took, so that the next one like it takes a whole row.';
