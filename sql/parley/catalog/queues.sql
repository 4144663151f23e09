-- Queues: where messages wait. This file holds the objects; what waits is in conversation/messages.sql.
--
-- Each queue owns four sequences. Its position sequence numbers messages in the order of arrival; senders hold a lock
-- on it to the end of their transaction, which shows readers the senders under way (docs/internals/message-store.md).
-- Its wake-up sequence shows senders until when a reader sleeps on the queue, so that no notification is in vain. Its
-- rollback sequence remembers, outside any transaction, how often a message came back (spec 5.6); its counter
-- sequence, who counted that.

create table parley._p_queue (
  queue_id integer primary key,
  lookup_name text collate "C" not null unique,
  schema_name text not null,
  name text not null,
  owner parley._p_role_oid not null,
  position_sequence regclass not null,
  wakeup_sequence regclass not null,
  rollback_sequence regclass not null,
  counter_sequence regclass not null,
  is_receive_enabled boolean not null,
  is_enqueue_enabled boolean not null,
  is_retention_enabled boolean not null,
  is_poison_message_handling_enabled boolean not null,
  rollbacks_before_disable integer not null default 5 check (rollbacks_before_disable between 1 and 15),
  poison_action text not null default 'SET_ASIDE' check (poison_action in ('SET_ASIDE', 'DISABLE_QUEUE')),
  is_activation_enabled boolean not null default false,
  activation_procedure text,
  max_readers integer not null default 0 check (max_readers between 0 and 32767),
  execute_as text,
  -- The roles that set these two; each of them must be able to act as the role that the procedure runs as, whenever it
  -- is called.
  procedure_set_by parley._p_role_oid,
  -- To whom the procedure belonged then, null when there was none: who takes its name gets no role by it.
  procedure_owner parley._p_role_oid,
  execute_as_set_by parley._p_role_oid,
  -- Bit n is set when an endpoint of priority n has existed here; a queue that only knows priority 5 is the fast case.
  priorities integer not null default 32,
  -- Messages that arrived while the queue was off stand at or after this position; they are still the sender's.
  disabled_position bigint,
  -- Since when its readers are paused (receive/pause.sql); null when they are not.
  readers_paused_at timestamptz,
  -- Messages of it have been claimed for a delivery (activation/delivery_claims.sql), so its readers ask for claims.
  has_deliveries boolean not null default false,
  -- Its messages belong to no conversation (simple/messages.sql).
  is_simple boolean not null default false,
  -- Messages of it have waited for another attempt (simple/waits.sql), so TAKE asks for those that are due.
  has_waits boolean not null default false,
  -- For how long it keeps what was done (simple/finished.sql).
  keep_finished interval,
  -- It has limits (simple/limits.sql).
  is_limited boolean not null default false,
  -- For how long a deduplication key of a simple queue counts (conversation/deduplication.sql).
  deduplication_seconds integer not null default 300,
  -- How much it may hold (conversation/quotas.sql); all null when that is not limited.
  quota_messages bigint, quota_bytes bigint, quota_sequence regclass,
  create_date timestamptz not null default now(),
  modify_date timestamptz not null default now()
);

comment on table parley._p_queue is 'Queues (spec 2.4).';

create trigger _p_number_roles after insert or update of owner, procedure_set_by, procedure_owner, execute_as_set_by
on parley._p_queue
for each row execute function parley._p_number_roles(
  'owner', 'procedure_set_by', 'procedure_owner', 'execute_as_set_by'
);

create function parley._p_queue_name(queue text, of_service text default null, out schema_name text, out name text)
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := '{}'::text[];
  v_part text;
begin
  -- A name that does not parse to its end must not be taken for the queue that a part of it names.
  if queue <> '' and queue !~ (
    E'^(\\[([^\\]]|\\]\\])*\\]|"([^"]|"")*"|[^.\\["]+)'
    || E'(\\.(\\[([^\\]]|\\]\\])*\\]|"([^"]|"")*"|[^.\\["]+))*$'
  ) then
    found := parley._p_raise(9609, 'malformed queue', queue, replace(queue, ']', ']]'));
  end if;
  for v_part in
    select coalesce(replace(m[2], ']]', ']'), replace(m[3], '""', '"'), m[4])
    from regexp_matches(
      coalesce(queue, ''), E'(\\[((?:[^\\]]|\\]\\])*)\\]|"((?:[^"]|"")*)"|([^.\\["]+))(?:\\.|$)', 'g'
    ) as m
  loop
    v_parts := v_parts || v_part;
  end loop;
  if cardinality(v_parts) > 3 or (cardinality(v_parts) = 3 and v_parts[1] <> current_database()) then
    if of_service is not null then
      found := parley._p_raise(9609, 'service', queue, of_service);
    end if;
    found := parley._p_raise(9609, 'parts of a queue', queue);
  end if;
  name := v_parts[cardinality(v_parts)];
  schema_name := coalesce(nullif(v_parts[cardinality(v_parts) - 1], ''), 'dbo');
  if name is null or name = '' or length(name) > 128 or length(schema_name) > 128 or left(name, 1) = '#' then
    found := parley._p_raise(9609, 'queue', queue);
  end if;
end
$$;

comment on function parley._p_queue_name(text, text) is
'Takes a queue name of one to three parts apart; parts may be in brackets or double quotes, the default schema is dbo.
Arguments: queue; of_service, the queue of the service that has this name, null when there is none.
Errors: 9609.';

create function parley._p_lookup_name(schema_name text, name text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select string_agg(
      case
        when p.part ~ E'[.\\["]' then '[' || replace(p.part, ']', ']]') || ']'
        else p.part
      end, '.' order by p.ordinal
    )
    from unnest(array[nullif(schema_name, 'dbo'), name]) with ordinality as p (part, ordinal)
    where p.part is not null
  );
end
$$;

comment on function parley._p_lookup_name(text, text) is
'Gives the name under which a queue is found, which no other queue can have: its own, with the schema in front unless
that is dbo; in brackets where that is needed.';

create function parley._p_find_queue(caller oid, queue text) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_name record;
  v_of_service text;
begin
  select * into v_queue from parley._p_queue as q where q.lookup_name = queue;
  if not found then
    -- With fewer points the name parses, and the service is searched when there is no such queue.
    v_name := parley._p_queue_name(
      queue, case when queue like '%.%.%' then parley._p_queue_of_service(caller, queue) end
    );
    select * into v_queue
    from parley._p_queue as q
    where q.lookup_name = parley._p_lookup_name(v_name.schema_name, v_name.name);
  end if;
  if not found then
    v_of_service := parley._p_queue_of_service(caller, queue);
    if v_of_service is not null then
      found := parley._p_raise(208, 'service', queue, parley._p_did_you_mean(caller, 'queue', queue), v_of_service);
    end if;
    found := parley._p_raise(208, 'queue', queue, parley._p_did_you_mean(caller, 'queue', queue));
  end if;
  return v_queue;
end
$$;

comment on function parley._p_find_queue(oid, text) is
'Finds a queue by its name in one to three parts. Asks for no right.
Arguments: caller, to whom the error suggests names; queue.
Errors: 208 not found, 9609 malformed name.';

create function parley._p_find_queue(caller oid, queue text, permission text) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  v_queue := parley._p_find_queue(caller, queue);
  if v_queue.queue_id < 65536 and permission in ('ALTER', 'CONTROL') then
    found := parley._p_raise(9663, 'object', 'queue', queue);
  end if;
  found := parley._p_require_permission(
    caller, permission, 'queue', v_queue.queue_id, v_queue.lookup_name, v_queue.owner
  );
  return v_queue;
end
$$;

comment on function parley._p_find_queue(oid, text, text) is
'Finds a queue the caller may use for something.
Errors: 208, 229, 9609, 9663 when a system object would be changed.';

create function parley._p_find_dialog_queue(caller oid, queue text) returns parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, 'REFERENCES');
begin
  if v_queue.is_simple then
    found := parley._p_raise(8402, 'service on a simple queue', v_queue.lookup_name);
  end if;
  return v_queue;
end
$$;

comment on function parley._p_find_dialog_queue(oid, text) is
'Finds a queue that the caller may give to a service.
Errors: 208, 229, 8402 a simple queue, 9609.';

create function parley._p_add_queue(queue_id integer, schema_name text, name text, owner oid) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_what text;
begin
  foreach v_what in array array['position', 'wakeup', 'rollback', 'counter'] loop
    execute format('create sequence parley.%I minvalue 0 start 1', format('_p_queue_%s_%s', queue_id, v_what));
    perform parley._p_take_back_relation(format('parley.%I', format('_p_queue_%s_%s', queue_id, v_what))::regclass);
  end loop;
  insert into parley._p_queue (
    queue_id, lookup_name, schema_name, name, owner, position_sequence, wakeup_sequence, rollback_sequence,
    counter_sequence, is_receive_enabled, is_enqueue_enabled, is_retention_enabled, is_poison_message_handling_enabled
  )
  values (
    queue_id, parley._p_lookup_name(schema_name, name), schema_name, name, owner,
    format('parley._p_queue_%s_position', queue_id)::regclass,
    format('parley._p_queue_%s_wakeup', queue_id)::regclass,
    format('parley._p_queue_%s_rollback', queue_id)::regclass,
    format('parley._p_queue_%s_counter', queue_id)::regclass,
    true, true, false, true
  )
  on conflict on constraint _p_queue_lookup_name_key do nothing;
  return found;
end
$$;

comment on function parley._p_add_queue(integer, text, text, oid) is
'Creates a queue with its sequences and the settings every new queue has; gives false when there is one of that name,
after a wait for the end of a transaction that has just created one.';

create function parley._p_raise_disabled(queue_id integer) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_raise_disabled.queue_id;
  if v_queue.is_simple then
    return parley._p_raise(8402, 'simple queue', v_queue.lookup_name);
  end if;
  return parley._p_raise(9617, 'disabled', v_queue.lookup_name);
end
$$;

comment on function parley._p_raise_disabled(integer) is
'Says that a queue is disabled, or of a simple one that nothing can be received from it.
Errors: 8402 or 9617, always.';

create function parley._p_queues_to_receive_from(caller oid) returns setof parley._p_queue
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sees_all boolean := parley._p_is_administrator(caller);
begin
  return query
  select *
  from parley._p_queue as q
  where v_sees_all or parley._p_has_permission(caller, 'RECEIVE', 'queue', q.queue_id, q.owner);
end
$$;

comment on function parley._p_queues_to_receive_from(oid) is 'Gives the queues that the caller may receive from.';

create function parley._p_ids_of_queues_to_receive_from(caller parley.caller default parley.current_caller())
returns integer[]
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(q.queue_id), '{}') from parley._p_queues_to_receive_from(parley._p_caller(caller)) as q
$$;

comment on function parley._p_ids_of_queues_to_receive_from(parley.caller) is
'Gives the queues that the caller may receive from, for the conditions of views: a view of a plain query uses indexes
where it is filtered or cut short, which one of the rows of a function does not.';
