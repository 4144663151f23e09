-- Deduplication: a begin, send or put with a key that was used before is not done again, and gets the answer of the
-- first time.
--
-- A key is of the sending service and of what is done, begun or sent. A key of put is of the simple queue and of the
-- role that puts, so that a role that may put there cannot suppress a message of another by using its key first. It
-- counts for the time that the service or queue had set when it was used; the first use after that is a first one
-- again. Bodies are not compared. The rights are asked for before a key: a role that may not send as a service learns
-- nothing of its keys.
--
-- Invariants, and what keeps each:
--   of two sessions with one key at once only one acts   the primary key: the second waits for the commit or rollback
--     of the first, and then is answered, or acts itself; at REPEATABLE READ it fails with 40001
--   a key is there exactly if what it stands for is   both are of one transaction
-- The daemon deletes expired keys, as does an administrator's call of fire_timers: so many at a time, from the oldest
-- on.
-- Locks: the row of the key. Without a key none of this runs.

create table parley._p_deduplication_key (
  -- Of the service or the queue: they have their ids from one sequence.
  object_id integer not null,
  action text not null check (action in ('BEGIN', 'SEND', 'PUT')),
  -- The name of the role that put, as it survives a restore; '' where the key is of a service.
  used_by text collate "C" not null,
  key text collate "C" not null,
  expires_at timestamptz not null,
  used_at timestamptz not null,
  conversation_handle uuid,
  message_id bigint,
  delayed_id bigint,
  -- Whether what the key stands for is done.
  is_answered boolean not null default false,
  primary key (object_id, action, key, used_by)
);

comment on table parley._p_deduplication_key is 'Keys of what was begun, sent or put, and what came of it.';

create index on parley._p_deduplication_key (expires_at);

create type parley.sent_message as (
  is_duplicate boolean,
  conversation_handle uuid,
  message_id bigint,
  delayed_id bigint,
  sent_at timestamptz
);

comment on type parley.sent_message is
'The outcome of a message. is_duplicate: its deduplication key was used before, nothing was sent now, and the rest is of
the first one. message_id is its place in a queue of this database: always known of a message that was put into a simple
queue and is due, of one that was sent with a deduplication key alone. It is null when it went elsewhere or is not due
yet; then delayed_id names it. sent_at is known with a deduplication key alone.';

create function parley._p_use_key(
  object_id integer, action text, key text, seconds integer, used_by text default ''
) returns parley._p_deduplication_key
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_first parley._p_deduplication_key;
begin
  found := parley._p_require_range(
    'the number of characters of deduplication_key', coalesce(length(key), 0), 1, 256
  );
  loop
    select * into v_first
    from parley._p_deduplication_key as k
    where k.object_id = _p_use_key.object_id
      and k.action = _p_use_key.action
      and k.key = _p_use_key.key
      and k.used_by = _p_use_key.used_by
      and k.expires_at > v_now;
    exit when found;
    insert into parley._p_deduplication_key as k (object_id, action, used_by, key, expires_at, used_at)
    values (
      _p_use_key.object_id, _p_use_key.action, _p_use_key.used_by, _p_use_key.key,
      v_now + make_interval(secs => seconds), v_now
    )
    on conflict on constraint _p_deduplication_key_pkey do update
    set expires_at = excluded.expires_at, used_at = excluded.used_at, conversation_handle = null, message_id = null,
      delayed_id = null, is_answered = false
    where k.expires_at <= v_now
    returning * into v_first;
    exit when found;
  end loop;
  return v_first;
end
$$;

comment on function parley._p_use_key(integer, text, text, integer, text) is
'Uses a key: gives what came of it when it was used before; is_answered is false when this is the first use. Waits for
others who use it.
Arguments: object_id of the service or queue; action; key; seconds, for how long it counts; used_by, the name of
the role, where the key is one of it.
Errors: 8402 the key is empty or too long.';

create function parley._p_record_key(
  first parley._p_deduplication_key, conversation_handle uuid, message_id bigint default null,
  delayed_id bigint default null
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  update parley._p_deduplication_key as k
  set conversation_handle = $2, message_id = $3, delayed_id = $4, is_answered = true
  where k.object_id = first.object_id and k.action = first.action and k.key = first.key and k.used_by = first.used_by;
  return row(false, $2, $3, $4, first.used_at)::parley.sent_message;
end
$$;

comment on function parley._p_record_key(parley._p_deduplication_key, uuid, bigint, bigint) is
'Records what came of the first use of a key, and gives it.';

create function parley._p_forget_keys(top integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  delete from parley._p_deduplication_key as k
  where k.ctid = any (array(
    select o.ctid
    from parley._p_deduplication_key as o
    where o.expires_at <= v_now
    order by o.expires_at
    limit top
    for update skip locked
  ));
end
$$;

comment on function parley._p_forget_keys(integer) is
'Deletes keys that do not count any more, the oldest first, up to a number. Waits for nobody.';

create function parley._p_use_key_to_begin(
  caller oid, from_service text, to_service text, contract text, key text
) returns parley._p_deduplication_key
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service_id integer := (parley._p_parts_of_dialog(caller, from_service, to_service, contract)).service_id;
begin
  -- Before any row, as SEND does: who waits for a key may have sent, and keeps the switch from being thrown.
  perform pg_sequence_last_value('parley._p_broker_switch');
  return parley._p_use_key(
    v_service_id, 'BEGIN', key,
    (select s.deduplication_seconds from parley._p_service as s where s.service_id = v_service_id)
  );
end
$$;

comment on function parley._p_use_key_to_begin(oid, text, text, text, text) is
'Uses a key of a service for a dialog to be begun, after asking whether the caller may begin it.
Errors: 229, 8402, 8423, 8425.';

create function parley._p_begin_dialog_once(
  caller oid, from_service text, to_service text, deduplication_key text, contract text, broker_instance text,
  lifetime integer, encryption boolean, related_conversation uuid, related_conversation_group uuid,
  allow_unknown_target boolean
) returns parley.sent_message
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first parley._p_deduplication_key := parley._p_use_key_to_begin(
    caller, from_service, to_service, contract, deduplication_key
  );
begin
  if v_first.is_answered then
    return row(true, v_first.conversation_handle, null, null, v_first.used_at)::parley.sent_message;
  end if;
  return parley._p_record_key(
    v_first,
    (parley._p_begin_dialog(
      caller, from_service, to_service, contract, broker_instance, lifetime, encryption, related_conversation,
      related_conversation_group, allow_unknown_target
    )).conversation_handle
  );
end
$$;

comment on function parley._p_begin_dialog_once(
  oid, text, text, text, text, text, integer, boolean, uuid, uuid, boolean
) is
'Begins a dialog with a deduplication key, in the name of the caller.
Errors: those of begin_dialog_once.';

create function parley.begin_dialog_once(
  from_service text,
  to_service text,
  deduplication_key text,
  contract text default 'DEFAULT',
  broker_instance text default null,
  lifetime integer default 2147483647,
  encryption boolean default true,
  related_conversation uuid default null,
  related_conversation_group uuid default null,
  allow_unknown_target boolean default null,
  caller parley.caller default parley.current_caller()
) returns parley.sent_message
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley._p_begin_dialog_once(
    parley._p_caller(caller), from_service, to_service, deduplication_key, contract, broker_instance, lifetime,
    encryption, related_conversation, related_conversation_group, allow_unknown_target
  );
end
$$;

comment on function parley.begin_dialog_once(
  text, text, text, text, text, integer, boolean, uuid, uuid, boolean, parley.caller
) is
'Begins a dialog with a deduplication key, as begin_dialog does, and says whether it was begun before: is_duplicate;
conversation_handle is that of the first dialog with this key; sent_at is the time when the key was used.
Arguments: as begin_dialog; deduplication_key has to be given.
Errors: those of begin_dialog, 8402 deduplication_key null, empty or too long.
Source: spec 4.1.';

create view parley.deduplication_keys with (security_barrier) as
select
  s.name as service_name,
  q.lookup_name as queue_name,
  k.action,
  k.key,
  k.used_at,
  k.expires_at,
  k.conversation_handle,
  k.message_id,
  k.delayed_id
from parley._p_deduplication_key as k
left join parley._p_service as s on s.service_id = k.object_id
join parley._p_queue as q on q.queue_id = coalesce(s.queue_id, k.object_id)
where k.is_answered
  and k.expires_at > clock_timestamp()
  and q.queue_id = any ((select parley._p_ids_of_queues_to_receive_from())::integer[]);

comment on view parley.deduplication_keys is
'Deduplication keys that still count, and what came of their first use. action is BEGIN, SEND or PUT; service_name is
null where the key is of a simple queue. Of services and simple queues whose queue the role may receive from.';
