-- Conversations that are used again: a pool for each role, pair of services, contract, broker instance, encryption and
-- key.
--
-- Invariants, and what keeps each:
--   nobody ends a conversation between get_conversation and the end of its transaction   the row lock: KEY SHARE, as
--   SEND takes it, so that
--     sessions that have the same conversation do not wait for one another, and END waits for them
--   two that were given a conversation cannot wait for each other in its first send, which locks FOR UPDATE   one on
--   which nothing was sent is
--     given FOR UPDATE, to one transaction at a time
--   who asks waits for nobody   rows that others hold are skipped; the row of an old conversation in the pool, which
--   only functions of the broker can lock, lets one session at a time replace it; the others go on with the old one.
--     Where there is none, two sessions may each begin one: the older one is given from then on
--   a send is not counted   a conversation's messages are counted by what its far side has received, or this database
--   has transmitted
--   what is replaced or forgotten is ended   an alarm of kind 'pooled', which is set when the conversation begins
-- Locks: one endpoint row, after that what BEGIN DIALOG takes. The alarm: as the others of conversation/timers.sql,
-- then the group if it is free.
-- Cost: one statement and a row lock that SEND would take anyway: some 80 microseconds, where a dialog with its first
-- SEND takes 750. In several statements, with functions that set a search_path, it was 500.

create table parley._p_pooled_conversation (
  endpoint_id bigint primary key,
  service_id integer not null,
  to_service text collate "C" not null,
  -- Empty, with a slot from 0 on, for conversations without a key; a key of the caller's has slot -1.
  key text collate "C" not null,
  slot integer not null,
  service_contract_id integer not null,
  broker_instance text not null,
  is_encrypted boolean not null,
  begun_by parley._p_role_oid not null,
  retire_at timestamptz not null
);

comment on table parley._p_pooled_conversation is
'Conversations that get_conversation gives. Rows of conversations that are gone are removed, some with each new one:
those of its key, and others after retire_at.';

create trigger _p_number_roles after insert or update of begun_by on parley._p_pooled_conversation
for each row execute function parley._p_number_roles('begun_by');

create index on parley._p_pooled_conversation (service_id, to_service, key, slot);
create index on parley._p_pooled_conversation (retire_at);

create function parley._p_messages_taken(endpoint_id bigint, far_endpoint_id bigint) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select p.sequence from parley._p_receive_progress as p where p.endpoint_id = $2 order by p.sequence desc limit 1),
    (select p.sequence from parley._p_send_progress as p where p.endpoint_id = $1 order by p.sequence desc limit 1),
    0
  )
$$;

comment on function parley._p_messages_taken(bigint, bigint) is
'Counts the messages of one side of a conversation that its far side has received, or that were transmitted to another
database.';

create function parley._p_find_pooled(
  caller oid, wanted parley._p_pooled_conversation, max_age integer, max_messages integer,
  out handle uuid, out is_fresh boolean
)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  select e.conversation_handle,
    e.begun_at > clock_timestamp() - make_interval(secs => max_age)
      and parley._p_messages_taken(e.endpoint_id, e.far_endpoint_id) < max_messages
  into handle, is_fresh
  from parley._p_pooled_conversation as p
  join parley._p_endpoint as e using (endpoint_id)
  where p.service_id = wanted.service_id
    and p.to_service = wanted.to_service
    and p.key = wanted.key
    and p.slot = wanted.slot
    and p.service_contract_id = wanted.service_contract_id
    and p.broker_instance = wanted.broker_instance
    and p.is_encrypted = wanted.is_encrypted
    and p.begun_by = caller
    and e.state = 'CO'
  order by 2 desc, e.endpoint_id
  limit 1
  for key share of e skip locked;
  if found then
    return;
  end if;
  select e.conversation_handle, true into handle, is_fresh
  from parley._p_pooled_conversation as p
  join parley._p_endpoint as e using (endpoint_id)
  where p.service_id = wanted.service_id
    and p.to_service = wanted.to_service
    and p.key = wanted.key
    and p.slot = wanted.slot
    and p.service_contract_id = wanted.service_contract_id
    and p.broker_instance = wanted.broker_instance
    and p.is_encrypted = wanted.is_encrypted
    and p.begun_by = caller
    and e.state = 'SO'
    and e.begun_at > clock_timestamp() - make_interval(secs => max_age)
  order by e.endpoint_id
  limit 1
  for update of e skip locked;
end
$$;

comment on function parley._p_find_pooled(oid, parley._p_pooled_conversation, integer, integer) is
'Finds and locks a conversation that may be given, and says whether it is neither too old nor used up. Waits for nobody.
Arguments: caller; wanted, whose first eight columns but endpoint_id name the pool; max_age in seconds; max_messages.';

create function parley._p_begin_pooled(
  caller parley.caller, wanted parley._p_pooled_conversation, from_service text, contract text, max_age integer
) returns parley._p_endpoint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- With no side of the target yet: one on which nothing was sent is given to one transaction at a time.
  v_endpoint parley._p_endpoint := parley._p_begin_dialog(
    parley._p_caller(caller), from_service, wanted.to_service, contract, nullif(wanted.broker_instance, ''), 2147483647,
    wanted.is_encrypted, null, null, null
  );
  v_retire_at timestamptz := clock_timestamp() + make_interval(secs => max_age);
begin
  delete from parley._p_pooled_conversation as p
  where p.endpoint_id = any (array(
    select o.endpoint_id
    from parley._p_pooled_conversation as o
    where o.retire_at < clock_timestamp()
      and not exists (select from parley._p_endpoint as e where e.endpoint_id = o.endpoint_id)
    order by o.retire_at
    limit 10
    for update skip locked
  ) || array(
    -- Of a key whose conversations the far side ends one after the other there would be many.
    select o.endpoint_id
    from parley._p_pooled_conversation as o
    where o.service_id = wanted.service_id and o.to_service = wanted.to_service and o.key = wanted.key
      and o.slot = wanted.slot
      and not exists (select from parley._p_endpoint as e where e.endpoint_id = o.endpoint_id)
    limit 10
    for update skip locked
  ));
  insert into parley._p_pooled_conversation (
    endpoint_id, service_id, to_service, key, slot, service_contract_id, broker_instance, is_encrypted, begun_by,
    retire_at
  )
  values (
    v_endpoint.endpoint_id, v_endpoint.service_id, wanted.to_service, wanted.key, wanted.slot,
    v_endpoint.service_contract_id, wanted.broker_instance, wanted.is_encrypted, parley._p_caller(caller), v_retire_at
  );
  perform parley._p_set_alarm(v_endpoint.endpoint_id, 'pooled', v_retire_at + interval '1 minute');
  return v_endpoint;
end
$$;

comment on function parley._p_begin_pooled(parley.caller, parley._p_pooled_conversation, text, text, integer) is
'Begins a conversation for a pool, and sets the alarm that ends it.
Errors: those of begin_dialog.';

create function parley._p_claim_pooled(handle uuid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform
  from parley._p_endpoint as e
  join parley._p_pooled_conversation as p using (endpoint_id)
  where e.conversation_handle = handle
  for update of p skip locked;
  return found;
end
$$;

comment on function parley._p_claim_pooled(uuid) is
'Lets this transaction alone replace an old conversation of a pool; false when another one is about to. Waits for
nobody.';

create function parley._p_retire_pooled(handle uuid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due timestamptz := clock_timestamp() + interval '1 minute';
  v_endpoint_id bigint;
begin
  select a.endpoint_id into v_endpoint_id
  from parley._p_endpoint as e
  join parley._p_alarm as a using (endpoint_id)
  where e.conversation_handle = handle and a.kind = 'pooled' and a.due_at > v_due
  for update of a skip locked;
  if found then
    perform parley._p_set_alarm(v_endpoint_id, 'pooled', v_due);
  end if;
end
$$;

comment on function parley._p_retire_pooled(uuid) is
'Has a conversation that was replaced ended in a minute, if that would be later. Waits for nobody.';

create function parley._p_wanted_conversation(
  caller oid, from_service text, to_service text, contract text, broker_instance text, encryption boolean,
  max_age integer, max_messages integer
) returns parley._p_pooled_conversation
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted parley._p_pooled_conversation;
begin
  found := parley._p_check_dialog(to_service, contract, 1, null, null);
  found := parley._p_require_range('max_age', max_age, 1, 2147483647);
  found := parley._p_require_range('max_messages', max_messages, 1, 2147483647);
  -- Null where the caller may not begin such a dialog: then begin_dialog says why.
  select s.service_id, c.service_contract_id into v_wanted.service_id, v_wanted.service_contract_id
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  cross join parley._p_contract as c
  where s.name = from_service
    and c.name = _p_wanted_conversation.contract
    and parley._p_has_permission(caller, 'RECEIVE', 'queue', q.queue_id, q.owner)
    and (
      c.service_contract_id < 65536
      or parley._p_has_permission(caller, 'REFERENCES', 'contract', c.service_contract_id, c.owner)
    );
  v_wanted.to_service := to_service;
  v_wanted.broker_instance := coalesce(parley._p_broker_instance(broker_instance), '');
  v_wanted.is_encrypted := coalesce(encryption, true);
  return v_wanted;
end
$$;

comment on function parley._p_wanted_conversation(oid, text, text, text, text, boolean, integer, integer) is
'Checks the arguments of get_conversation and warm_conversations, and names the pool without its key.
Errors: 8402 max_age or max_messages out of range, 8412 and 8421 to_service malformed or missing, 8413 broker_instance
malformed, 8417 contract missing.';

create function parley.get_conversation(
  from_service text,
  to_service text,
  contract text default 'DEFAULT',
  key text default null,
  broker_instance text default null,
  encryption boolean default true,
  conversations integer default 8,
  max_age integer default 3600,
  max_messages integer default 100000,
  caller parley.caller default parley.current_caller()
) returns uuid
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_key text := coalesce(key, '');
  v_slot integer := case when key is null then pg_backend_pid() % nullif(conversations, 0) else -1 end;
  v_begun_after timestamptz := clock_timestamp() - make_interval(secs => max_age);
  v_handle uuid;
  v_wanted parley._p_pooled_conversation;
  v_found record;
  v_old uuid;
begin
  -- The usual case in one statement: the caller owns what has to be asked for, and there is one. Otherwise, and where
  -- an argument is out of range, nothing is found here.
  select e.conversation_handle into v_handle
  from parley._p_service as s
  join parley._p_queue as q on q.queue_id = s.queue_id
  join parley._p_contract as c on c.name = get_conversation.contract
  join parley._p_pooled_conversation as p
    on p.service_id = s.service_id
    and p.to_service = get_conversation.to_service
    and p.key = v_key
    and p.slot = v_slot
  join parley._p_endpoint as e on e.endpoint_id = p.endpoint_id
  where s.name = from_service
    and pg_has_role(v_caller, q.owner, 'usage')
    and (c.service_contract_id < 65536 or pg_has_role(v_caller, c.owner, 'usage'))
    and p.service_contract_id = c.service_contract_id
    and p.begun_by = v_caller
    and p.broker_instance = ''
    and get_conversation.broker_instance is null
    and p.is_encrypted = encryption
    and conversations between 1 and 1000
    and e.state = 'CO'
    and e.begun_at > v_begun_after
    and coalesce(
      (
        select r.sequence from parley._p_receive_progress as r
        where r.endpoint_id = e.far_endpoint_id order by r.sequence desc limit 1
      ),
      (
        select r.sequence from parley._p_send_progress as r
        where r.endpoint_id = e.endpoint_id order by r.sequence desc limit 1
      ),
      0
    ) < max_messages
  order by e.endpoint_id
  limit 1
  for key share of e skip locked;
  if found then
    return v_handle;
  end if;
  v_wanted := parley._p_wanted_conversation(
    v_caller, from_service, to_service, contract, broker_instance, encryption, max_age, max_messages
  );
  found := parley._p_require_range('conversations', conversations, 1, 1000);
  found := parley._p_require_range('the number of characters of key', length(coalesce(key, '')), 0, 256);
  v_wanted.key := v_key;
  v_wanted.slot := v_slot;
  v_found := parley._p_find_pooled(v_caller, v_wanted, max_age, max_messages);
  if v_found.is_fresh then
    return v_found.handle;
  elsif v_found.handle is not null and not parley._p_claim_pooled(v_found.handle) then
    return v_found.handle;
  end if;
  -- The session that had claimed it may have committed since.
  v_old := v_found.handle;
  v_found := parley._p_find_pooled(v_caller, v_wanted, max_age, max_messages);
  if v_found.is_fresh then
    return v_found.handle;
  end if;
  perform parley._p_retire_pooled(v_old);
  return (parley._p_begin_pooled(caller, v_wanted, from_service, contract, max_age)).conversation_handle;
end
$$;

comment on function parley.get_conversation(
  text, text, text, text, text, boolean, integer, integer, integer, parley.caller
) is
'Gives the handle of a conversation that is open and begins one when there is none: for programs that send one message
now and then to the same service.
It is good for this transaction and a minute longer. Keep it no longer, and do not end the conversation: others have it
too.
Arguments: from_service, to_service, contract, broker_instance and encryption as begin_dialog; key, at most 256
characters: what is sent with the same key
goes over one conversation, in order; conversations, 1 to 1000: without a key the sessions are spread over so many;
max_age in seconds and max_messages,
after which a conversation is replaced by another one and ended. Messages are counted when the far side receives them.
Errors: 8402 conversations, max_age, max_messages or the length of key out of range, and those of begin_dialog.
Source: spec R-PERF-1.';

create function parley._p_end_pooled(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.endpoint_id = _p_end_pooled.endpoint_id and e.state <> 'DO';
  if not found then
    return;
  end if;
  perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update skip locked;
  if not found or exists (
    select from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id and m.message_type_id <> 2
  ) then
    -- A reader holds it, or it has an answer to read.
    perform parley._p_set_alarm(endpoint_id, 'pooled', clock_timestamp() + interval '1 minute');
    return;
  end if;
  v_endpoint := parley._p_lock_to_end(v_endpoint.conversation_handle);
  found := parley._p_end_side(v_endpoint, 2, null);
  delete from parley._p_pooled_conversation as p where p.endpoint_id = _p_end_pooled.endpoint_id;
end
$$;

comment on function parley._p_end_pooled(bigint) is
'Ends a conversation of a pool that is too old or was replaced, unless an answer waits for it: then in a minute. The
caller has claimed its alarm.';
