-- Messages of simple queues that somebody mends while they are set aside: the new body stands in the message, the old
-- one is kept with the role and the reason.
--
-- To edit a message is to take it and to put another: so it needs the rights of both.
-- Locks: the row of _p_set_aside_message, as those who put it back or give it up take it. Of two who edit a message
-- the second one edits what the first one wrote.

create table parley._p_edited_message (
  edit_id bigint generated always as identity primary key,
  queue_id integer not null references parley._p_queue on delete cascade,
  position bigint not null,
  message_key text,
  edited_at timestamptz not null default clock_timestamp(),
  role_name name not null,
  reason text not null,
  body bytea
);

comment on table parley._p_edited_message is
'Bodies of messages of simple queues as they were before somebody edited them. They are kept for 30 days, at most 1,000
of a queue.';

create index _p_edited_message_queue on parley._p_edited_message (queue_id, edit_id);
create index _p_edited_message_age on parley._p_edited_message (edited_at);

create function parley.edit_message(
  queue text, message_id bigint, body bytea, reason text, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_simple_queue(v_caller, queue, 'RECEIVE');
  v_old record;
begin
  v_queue := parley._p_find_simple_queue(v_caller, queue, 'SEND');
  found := parley._p_require_range('the number of characters of reason', coalesce(length(reason), 0), 1, 1000);
  perform
  from parley._p_set_aside_message as s
  where s.queue_id = v_queue.queue_id and s.position = message_id
  for update;
  if not found then
    found := parley._p_raise(8426, 'message not set aside', message_id::text, v_queue.lookup_name);
  end if;
  select m.body, m.message_key into v_old
  from parley._p_message as m
  where m.lane = parley._p_set_aside_lane(v_queue.queue_id) and m.position = message_id;
  insert into parley._p_edited_message (queue_id, position, message_key, role_name, reason, body)
  values (v_queue.queue_id, message_id, v_old.message_key, pg_get_userbyid(v_caller), edit_message.reason, v_old.body);
  update parley._p_message as m
  set body = nullif(edit_message.body, '')
  where m.lane = parley._p_set_aside_lane(v_queue.queue_id) and m.position = message_id;
  delete from parley._p_edited_message as e
  where e.queue_id = v_queue.queue_id
    and e.edit_id <= (
      select n.edit_id
      from parley._p_edited_message as n
      where n.queue_id = v_queue.queue_id
      order by n.edit_id desc
      offset 1000
      limit 1
    );
end
$$;

comment on function parley.edit_message(text, bigint, bytea, text, parley.caller) is
'Gives a message of a simple queue that is set aside another body. Its old one stays in parley.edited_messages. Needs
RECEIVE and SEND on the queue: it is to take one message and to put another.
Arguments: queue; message_id, as parley.set_aside_messages shows it; body, null or empty for none; reason, 1 to 1,000
characters.
Errors: 208 no such queue, 229 not allowed, 8402 no simple queue, reason, 8426 not set aside, 9609 malformed name.';

create function parley._p_forget_edits(only_queues integer[]) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley._p_edited_message as e
  where e.edit_id in (
    select o.edit_id
    from parley._p_edited_message as o
    where o.edited_at < clock_timestamp() - interval '30 days' and ($1 is null or o.queue_id = any ($1))
    order by o.edited_at
    limit 10000
    for update skip locked
  )
$$;

comment on function parley._p_forget_edits(integer[]) is
'Removes old bodies of messages that were edited more than 30 days ago, up to 10,000.
Arguments: only_queues, null for all.';

create view parley.edited_messages with (security_barrier) as
select
  e.edit_id,
  q.lookup_name as queue_name,
  e.position as message_id,
  e.message_key as key,
  e.edited_at,
  e.role_name,
  e.reason,
  e.body
from parley._p_edited_message as e
join parley._p_queue as q using (queue_id)
where e.edited_at >= clock_timestamp() - interval '30 days'
  and e.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[]);

comment on view parley.edited_messages is
'Messages of simple queues that were edited while they were set aside, as they were before: of queues that the role may
take from, for 30 days and at most 1,000 of a queue.';

comment on column parley.edited_messages.edit_id is 'Number of the edit; the later one is larger.';
comment on column parley.edited_messages.queue_name is 'Its queue, as statements take it.';
comment on column parley.edited_messages.message_id is 'Its number then: putting it back gives it another.';
comment on column parley.edited_messages.key is 'Its key, or null.';
comment on column parley.edited_messages.edited_at is 'When it was edited.';
comment on column parley.edited_messages.role_name is 'Role that did it.';
comment on column parley.edited_messages.reason is 'Why, in the words of whoever did it.';
comment on column parley.edited_messages.body is 'Body that it had before; null for none.';
