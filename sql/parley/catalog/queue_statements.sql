-- The statements that create a queue and change it: who may, which name, and its settings (catalog/alter_queue.sql,
-- catalog/retry_policies.sql).
--
-- Of two who create one name the second waits for the first, by the entry of the name in an index.
-- Locks: the queue's row.

create function parley.create_queue(
  queue text,
  status boolean default true,
  retention boolean default false,
  poison_message_handling boolean default true,
  activation_procedure text default null,
  max_queue_readers integer default null,
  execute_as text default null,
  activation boolean default null,
  "authorization" text default null,
  poison_action text default null,
  poison_rollbacks integer default null,
  kind text default 'DIALOG',
  deduplication_seconds integer default 300,
  retry jsonb default null,
  if_not_exists boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_id integer;
  v_owner oid;
  v_name record := parley._p_queue_name(queue);
begin
  found := parley._p_require_permission(v_caller, 'CREATE QUEUE', 'database', 0, null, null);
  select q.queue_id into v_id
  from parley._p_queue as q
  where q.lookup_name = parley._p_lookup_name(v_name.schema_name, v_name.name);
  if found and if_not_exists then
    return v_id;
  elsif found then
    found := parley._p_raise(2714, 'object', 'queue', queue, 'alter_queue');
  end if;
  v_owner := parley._p_new_owner(v_caller, "authorization");
  if coalesce(upper(kind collate "C"), '') not in ('DIALOG', 'SIMPLE') then
    found := parley._p_raise(8402, 'kind of a queue', coalesce(kind, 'null'));
  end if;
  found := parley._p_require_range('deduplication_seconds', deduplication_seconds, 1, 604800);
  if upper(kind collate "C") <> 'SIMPLE' and deduplication_seconds <> 300 then
    found := parley._p_raise(8402, 'deduplication of a queue of conversations', queue);
  elsif poison_rollbacks is not null and coalesce(retry, 'null') not in ('null', 'false') then
    found := parley._p_raise(8402, 'rollbacks beside a retry policy', queue);
  end if;
  v_id := nextval('parley._p_object_id');
  -- Of two who create the same name, the second waits here, for the entry in the index.
  if not parley._p_add_queue(v_id, v_name.schema_name, v_name.name, v_owner) then
    if if_not_exists then
      return parley.create_queue(queue, if_not_exists => true, caller => caller);
    end if;
    found := parley._p_raise(2714, 'object', 'queue', queue, 'alter_queue');
  end if;
  update parley._p_queue as q
  set is_simple = upper(kind collate "C") = 'SIMPLE', deduplication_seconds = create_queue.deduplication_seconds
  where q.queue_id = v_id;
  perform parley._p_create_queue_view(v_id);
  found := parley._p_alter_queue(
    v_caller, v_id, status, retention, poison_message_handling, activation_procedure, max_queue_readers, execute_as,
    coalesce(activation, activation_procedure is not null), poison_action, poison_rollbacks
  );
  -- An owner who says how many rollbacks there may be wants them to come back at once.
  if coalesce(jsonb_typeof(retry), 'null') = 'null' and upper(kind collate "C") = 'SIMPLE'
    and poison_rollbacks is null and upper(poison_action collate "C") is distinct from 'DISABLE_QUEUE' then
    retry := '{}';
  end if;
  if coalesce(retry, 'null') not in ('null', 'false') then
    found := parley._p_set_retry_policy(parley._p_read_policy(v_id, retry));
  end if;
  return v_id;
end
$$;

comment on function parley.create_queue(
  text, boolean, boolean, boolean, text, integer, text, boolean, text, text, integer, text, integer, jsonb, boolean,
  parley.caller
) is
'Creates a queue, and a view of it in schema parley_queue, and returns its id.
Arguments: queue, its name in one or two parts; status, off means that nothing can be received or enqueued; retention,
keep copies until the conversation ends; poison_message_handling, count the rollbacks of a message;
activation_procedure, a procedure without arguments; max_queue_readers, 0 to 32767; execute_as, SELF, OWNER or a role
that the caller may act as; activation, whether it is on (default: when a procedure is given); authorization, the owner
(default: the caller); poison_action, what becomes of a message that has come back too often: SET_ASIDE (the default),
its conversation is passed by until parley.retry_poison or parley.discard_poison, or DISABLE_QUEUE, as SQL Server does;
poison_rollbacks, 1 to 15, how often is too often (default 5); kind, DIALOG for messages of conversations, or SIMPLE
for messages that parley.put puts in and parley.take takes out, without services; deduplication_seconds, 1 to 604800,
for how long a deduplication key of put counts in a simple queue; retry, for how long a message waits after a failure,
the arguments of parley.set_retry_policy as an object, false for no policy (default: that of set_retry_policy for a
simple queue for which poison_rollbacks and DISABLE_QUEUE are not given, otherwise none); if_not_exists, returns the id
of the queue of that name, whatever its settings, where there is one.
Errors: 229 not allowed, 2714 exists, 8402 kind, poison_action, poison_rollbacks, max_queue_readers,
deduplication_seconds or retry out of range, deduplication_seconds of a queue of conversations, poison_rollbacks with
retry,
9609 bad name, 9613 no execute_as, 9614 no valid procedure, 9620 a function, 9653 arguments, 9742 temporary,
15151 unknown owner or role, 15517 the caller may not act as the role that the procedure would run as.
Source: spec 2.4.';

create function parley.alter_queue(
  queue text,
  status boolean default null,
  retention boolean default null,
  poison_message_handling boolean default null,
  activation_procedure text default null,
  max_queue_readers integer default null,
  execute_as text default null,
  activation boolean default null,
  poison_action text default null,
  poison_rollbacks integer default null,
  deduplication_seconds integer default null,
  retry jsonb default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
begin
  found := parley._p_alter_queue(
    v_caller, v_queue.queue_id, status, retention, poison_message_handling, activation_procedure, max_queue_readers,
    execute_as, activation, poison_action, poison_rollbacks
  );
  if deduplication_seconds is not null and not v_queue.is_simple then
    found := parley._p_raise(8402, 'deduplication of a queue of conversations', v_queue.lookup_name);
  elsif deduplication_seconds is not null then
    found := parley._p_require_range('deduplication_seconds', deduplication_seconds, 1, 604800);
    update parley._p_queue as q
    set deduplication_seconds = alter_queue.deduplication_seconds
    where q.queue_id = v_queue.queue_id;
  end if;
  if retry = 'false' then
    delete from parley._p_retry_policy as p where p.queue_id = v_queue.queue_id;
  elsif coalesce(retry, 'null') <> 'null' then
    found := parley._p_set_retry_policy(parley._p_read_policy(v_queue.queue_id, retry));
  end if;
  if poison_rollbacks is not null and (parley._p_retry_policy_of(v_queue)).queue_id is not null then
    found := parley._p_raise(8402, 'rollbacks beside a retry policy', v_queue.lookup_name);
  end if;
end
$$;

comment on function parley.alter_queue(
  text, boolean, boolean, boolean, text, integer, text, boolean, text, integer, integer, jsonb, parley.caller
) is
'Changes what is given of a queue; what is null stays as it is. Switching status on forgets the rollbacks counted so
far. A conversation that is set aside stays so, whatever becomes of the settings. A message that waits
for another attempt keeps its time when retry is changed.
Arguments: as create_queue.
Errors: 208 not found, 229 not allowed, 8402 out of range, deduplication_seconds of a queue of conversations,
poison_rollbacks of a queue with a retry policy, 9613, 9614, 9620, 9653, 9742 activation, 9663 system object,
9717 and 9718 the queue is activated in another way, 15151 unknown role,
15517 the caller may not act as the role that the procedure would run as.
Source: spec 2.4, 5.1.';

create function parley.drop_activation(queue text, caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
begin
  update parley._p_queue as q
  set activation_procedure = null, max_readers = 0, execute_as = null, procedure_set_by = null,
    procedure_owner = null, execute_as_set_by = null,
    is_activation_enabled = false, modify_date = now()
  where q.queue_id = v_queue.queue_id;
end
$$;

comment on function parley.drop_activation(text, parley.caller) is
'Removes all activation settings of a queue.
Errors: 208 not found, 229 not allowed, 9663 system object.
Source: spec 2.4, ACTIVATION (DROP).';
