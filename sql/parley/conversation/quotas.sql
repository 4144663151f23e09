-- Quotas: how many messages, and how many bytes of them, a queue may hold before senders are refused.
--
-- A send does not count the queue. The last count says up to which position of the queue's sequence senders may go on;
-- that position stands in a sequence of the queue, outside any transaction. The sender that gets there counts again.
-- The step is a twentieth of the quota at most, so that counting costs some twenty rows a send. Waiting messages are
-- counted, not estimated, and no further than to the quota.
-- Exactness: messages that other sessions have sent and not committed are not seen, and a batch is judged as a whole. A
-- quota that was changed counts for all when the step that is under way is used up.
-- Cost without a quota: nothing while no reader listens to the queue, and one comparison when one does. The wake-up
-- sequence of a queue with a quota is never 0, which leads SEND here, and it is odd; that of any other queue is even.
-- EndDialog, Errors and timers are never refused. A message from another server waits there.
-- Locks: none; changing a quota locks the queue's row.

create function parley._p_count_up_to(
  queue parley._p_queue, messages_max bigint, bytes_max bigint,
  out rows bigint, out messages bigint, out bytes bigint
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
set jit = off
as $$
declare
  v_row record;
begin
  rows := 0;
  messages := 0;
  bytes := 0;
  for v_row in
    select coalesce(cardinality(m.frame), 1) as messages,
      coalesce(octet_length(m.body), pg_column_size(m.frame), 0) as bytes
    from generate_series(10, 1, -1) as p (n)
    cross join lateral (select parley._p_lane(queue.queue_id, p.n) as lane) as l
    left join lateral parley._p_newest_hint(l.lane) as h on true
    join parley._p_message as m on m.lane = l.lane and m.position >= coalesce(h.low_position, 0)
    where queue.priorities & (1 << p.n) > 0
    union all
    select 1, coalesce(octet_length(m.body), 0)
    from parley._p_message as m
    where m.lane = parley._p_waiting_lane(queue.queue_id) and queue.has_waits
  loop
    rows := rows + 1;
    messages := messages + v_row.messages;
    bytes := bytes + v_row.bytes;
    exit when messages >= messages_max or bytes >= bytes_max;
  end loop;
end
$$;

comment on function parley._p_count_up_to(parley._p_queue, bigint, bigint) is
'Counts what waits in a queue, rows, messages and bytes of bodies, until one of two limits is reached; null is no limit.
Messages that are set aside are not counted.';

create function parley._p_has_room(
  queue parley._p_queue, pending integer, out room boolean, out messages bigint, out bytes bigint
)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_position bigint := coalesce(pg_sequence_last_value(queue.position_sequence), 0) + pending;
  v_counted record;
  v_rows bigint;
begin
  room := true;
  if queue.quota_sequence is null or v_position <= coalesce(pg_sequence_last_value(queue.quota_sequence), 0) then
    return;
  end if;
  v_counted := parley._p_count_up_to(queue, queue.quota_messages + 1 - pending, queue.quota_bytes + 1 - pending);
  messages := v_counted.messages;
  bytes := v_counted.bytes;
  room := (messages + pending <= queue.quota_messages and bytes + pending <= queue.quota_bytes) is not false;
  if not room then
    return;
  end if;
  -- The step: the rows that have room if they are like those that wait, a twentieth of the quota at most.
  v_rows := least(
    (queue.quota_messages - messages) / greatest(1, messages / greatest(v_counted.rows, 1)),
    queue.quota_messages / 20,
    (queue.quota_bytes - bytes) / greatest(1, bytes / greatest(v_counted.rows, 1), 100),
    queue.quota_bytes / 20 / greatest(1, bytes / greatest(v_counted.rows, 1), 100)
  );
  perform setval(queue.quota_sequence, v_position + greatest(v_rows - 1, 0));
  if messages >= 0.8 * queue.quota_messages or bytes >= 0.8 * queue.quota_bytes then
    raise notice using
      message = format('queue "%s" is nearly full', queue.lookup_name),
      detail = 'Four fifths of its quota are used. parley.queue_quotas shows it to its readers.',
      hint = 'Senders are refused when the quota is used up.';
  end if;
end
$$;

comment on function parley._p_has_room(parley._p_queue, integer) is
'Reports whether a queue has room for so many more messages. When it had to count, it also gives the messages and bytes
that it found, sets how many may follow uncounted, and raises a notice when four fifths of the quota are used.
Arguments: queue; pending, how many are to be appended, 0 when they have been already.';

create function parley._p_require_room(queue_id integer, pending integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_found record;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_require_room.queue_id;
  if v_queue.quota_sequence is not null then
    v_found := parley._p_has_room(v_queue, pending);
    if not v_found.room then
      found := parley._p_raise(10928, 'quota', v_queue.lookup_name);
    end if;
  end if;
  return true;
end
$$;

comment on function parley._p_require_room(integer, integer) is
'Refuses to send to a queue whose quota is used up.
Arguments: queue_id, or the id of a destination, which has no quota; pending, as _p_has_room.
Errors: 10928.';

create function parley._p_admit(lane integer, wakeup regclass, pending integer default 1) returns timestamptz
language plpgsql
as $$
declare
  v_until pg_catalog.int8 := pg_catalog.pg_sequence_last_value(wakeup);
begin
  -- In the first call of a transaction an expression costs a thirtieth of a bare INSERT, and a function in it as much
  -- again, whether it is called or not.
  if v_until operator(pg_catalog.>) extract(epoch from pg_catalog.clock_timestamp())
    or v_until operator(pg_catalog.%) 2::pg_catalog.int8 operator(pg_catalog.=) 1::pg_catalog.int8 then
    if v_until operator(pg_catalog.%) 2::pg_catalog.int8 operator(pg_catalog.=) 1::pg_catalog.int8 then
      if wakeup operator(pg_catalog.<>) 'parley._p_transmission_wakeup'::pg_catalog.regclass
        and pending is not null then
        found := parley._p_require_room(parley._p_owner_of_lane(lane), pending);
      end if;
    end if;
    if v_until operator(pg_catalog.>) extract(epoch from pg_catalog.clock_timestamp()) then
      perform parley._p_notify('parley', parley._p_owner_of_lane(lane)::pg_catalog.text);
    end if;
  end if;
  return pg_catalog.clock_timestamp();
end
$$;

comment on function parley._p_admit(integer, regclass, integer) is
'Refuses what is sent to a queue that is full, notifies the sleepers of a lane''s queue, if their time is not over, and
gives the time.
Arguments: lane; wakeup, the wake-up sequence; pending, as _p_has_room, or null for what is never refused.
Errors: 10928.';

create function parley.set_queue_quota(
  queue text,
  messages bigint default null,
  bytes bigint default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
  v_name text := format('_p_queue_%s_quota', v_queue.queue_id);
begin
  -- The counts that are compared with the quota must fit a bigint.
  if least(messages, bytes) < 1 or greatest(messages, bytes) > 1000000000000000 then
    found := parley._p_raise(8402, 'quota', coalesce(messages::text, 'null'), coalesce(bytes::text, 'null'));
  end if;
  select * into v_queue from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  if v_queue.quota_sequence is null and coalesce(messages, bytes) is not null then
    if to_regclass(format('parley.%I', v_name)) is null then
      execute format('create sequence parley.%I minvalue 0 start 1', v_name);
      perform parley._p_take_back_relation(format('parley.%I', v_name)::regclass);
    end if;
    v_queue.quota_sequence := format('parley.%I', v_name)::regclass;
  end if;
  update parley._p_queue as q
  set quota_messages = set_queue_quota.messages, quota_bytes = set_queue_quota.bytes,
    quota_sequence = case when coalesce(messages, bytes) is not null then v_queue.quota_sequence end
  where q.queue_id = v_queue.queue_id;
  if coalesce(messages, bytes) is not null then
    -- When the quota is removed the odd mark stays until the next reader listens: the removal may be rolled back.
    perform setval(v_queue.quota_sequence, 0),
      setval(
        v_queue.wakeup_sequence,
        parley._p_wakeup_until(v_queue, coalesce(pg_sequence_last_value(v_queue.wakeup_sequence), 0))
      );
  end if;
end
$$;

comment on function parley.set_queue_quota(text, bigint, bigint, parley.caller) is
'Sets how much a queue may hold before senders are refused with 10928; what holds already stays. A sender gets a notice
from four fifths on. Messages from other servers wait there until there is room; EndDialog, Error and DialogTimer are
never refused.
Arguments: queue; messages, how many may wait; bytes, how long their bodies may be in all; null for no limit.
Errors: 208 not found, 229 not allowed to ALTER it, 8402 below 1 or above 10^15,
9609 malformed name, 9663 system object.';
