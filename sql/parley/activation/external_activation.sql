-- External activation: what the daemon starts for a queue outside of the database, a program or a web address.
--
-- Here stands only what is wanted. Whether a program may run on a host, or an address be called from it, is the
-- decision of whoever operates that host: the daemon starts nothing that its operator has not allowed
-- (docs/guides/activation.md). So no definition is a way onto the host. It is a way to the messages, which go to the
-- program that reads. So the role that chooses the program must be able to act as the queue's owner, or be an
-- administrator, then and whenever the program is started. For numbers and times the right to ALTER the queue is
-- enough.
--
-- A queue has one kind of activation: a procedure that is enabled, an external activation, or QUEUE_ACTIVATION event
-- notifications. Secrets of webhooks and values of environments are shown by no view; only the daemon reads them
-- (_p_external_definition). A daemon with a master key seals the secrets of webhooks (activation/webhook_secrets.sql):
-- until then, or without one, they stand here as they are.
-- Locks: the queue's row, as alter_queue takes it.

create table parley._p_external_activation (
  queue_id integer primary key references parley._p_queue on delete cascade,
  kind text not null check (kind in ('program', 'webhook')),
  is_enabled boolean not null,
  min_instances integer not null,
  max_instances integer not null,
  program text[],
  environment jsonb,
  working_directory text,
  stop_timeout_ms integer,
  url text,
  secret_name text,
  secret text,
  sealed_secret bytea,
  timeout_ms integer,
  batch_size integer,
  groups integer,
  body_format text,
  system_messages boolean,
  max_attempts integer,
  first_retry_ms integer,
  longest_retry_ms integer,
  -- The role that set the reader.
  set_by parley._p_role_oid,
  create_date timestamptz not null default now(),
  modify_date timestamptz not null default now(),
  check ((kind = 'program') = (program is not null)),
  check ((kind = 'webhook') = (url is not null and num_nonnulls(secret, sealed_secret) = 1))
);

comment on table parley._p_external_activation is
'The program that the daemon starts outside of the database to read a queue; secrets and environment are for the
daemon alone.';

create trigger _p_number_roles after insert or update of set_by on parley._p_external_activation
for each row execute function parley._p_number_roles('set_by');

create function parley._p_check_program(activation parley._p_external_activation) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- NUL cannot be in a text; an argument may be empty, but not missing.
  if cardinality(activation.program) = 0
    or array_position(activation.program, null) is not null
    or activation.program[1] !~ E'^([A-Za-z]:\\\\|/)' then
    found := parley._p_raise(8402, 'program');
  elsif jsonb_typeof(activation.environment) <> 'object'
    or exists (
      select
      from jsonb_each(
        case jsonb_typeof(activation.environment) when 'object' then activation.environment else '{}' end
      ) as v
      where jsonb_typeof(v.value) <> 'string' or v.key !~ '^[A-Za-z_][A-Za-z0-9_]*$'
        or upper(v.key collate "C") ~ '^PARLEY_'
    ) then
    found := parley._p_raise(8402, 'environment');
  elsif activation.working_directory !~ E'^([A-Za-z]:\\\\|/)' then
    found := parley._p_raise(8402, 'working directory');
  end if;
  found := parley._p_require_range('stop_timeout_ms', activation.stop_timeout_ms, 0, 3600000);
  return true;
end
$$;

comment on function parley._p_check_program(parley._p_external_activation) is
'Checks what an activation says about its program.
Errors: 8402.';

create function parley._p_check_webhook(activation parley._p_external_activation) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if activation.url !~* '^https?://[^/?#@[:space:]]+([/?][^#[:space:]]*)?$' or length(activation.url) > 2000 then
    found := parley._p_raise(8402, 'url');
  elsif activation.body_format is null or activation.body_format not in ('envelope', 'raw') then
    found := parley._p_raise(8402, 'body format', activation.body_format);
  elsif activation.body_format = 'raw' and activation.batch_size > 1 then
    found := parley._p_raise(8402, 'raw batch', activation.batch_size::text);
  elsif length(activation.secret) not between 16 and 500 or activation.secret ~ '[[:cntrl:]]' then
    found := parley._p_raise(8402, 'secret');
  elsif (activation.groups > 1 or activation.system_messages)
    and (select q.is_simple from parley._p_queue as q where q.queue_id = activation.queue_id) then
    found := parley._p_raise(8402, 'conversations of a simple queue');
  end if;
  found := parley._p_require_range('timeout_ms', activation.timeout_ms, 100, 600000);
  found := parley._p_require_range('batch_size', activation.batch_size, 1, 1000);
  found := parley._p_require_range('groups', activation.groups, 1, activation.batch_size);
  found := parley._p_require_range('max_attempts', activation.max_attempts, 0, 1000000);
  found := parley._p_require_range('first_retry_ms', activation.first_retry_ms, 1, 86400000);
  found := parley._p_require_range(
    'longest_retry_ms', activation.longest_retry_ms, activation.first_retry_ms, 86400000
  );
  return true;
end
$$;

comment on function parley._p_check_webhook(parley._p_external_activation) is
'Checks what an activation says about its web address.
Errors: 8402.';

create function parley._p_put_external_activation(activation parley._p_external_activation) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_range('min_instances', activation.min_instances, 0, activation.max_instances);
  found := parley._p_require_range('max_instances', activation.max_instances, 0, 32767);
  case activation.kind
    when 'program' then
      found := parley._p_check_program(activation);
    when 'webhook' then
      found := parley._p_check_webhook(activation);
  end case;
  delete from parley._p_external_activation as a where a.queue_id = activation.queue_id;
  insert into parley._p_external_activation (
    queue_id, kind, is_enabled, min_instances, max_instances, program, environment, working_directory, stop_timeout_ms,
    url, secret_name, secret, sealed_secret, timeout_ms, batch_size, groups, body_format, system_messages,
    max_attempts, first_retry_ms, longest_retry_ms, set_by, create_date, modify_date
  )
  values (
    activation.queue_id, activation.kind, activation.is_enabled, activation.min_instances, activation.max_instances,
    activation.program, activation.environment, activation.working_directory, activation.stop_timeout_ms,
    activation.url, activation.secret_name, activation.secret, activation.sealed_secret, activation.timeout_ms,
    activation.batch_size, activation.groups, activation.body_format, activation.system_messages,
    activation.max_attempts, activation.first_retry_ms, activation.longest_retry_ms, activation.set_by,
    coalesce(activation.create_date, now()), clock_timestamp()
  );
  return true;
end
$$;

comment on function parley._p_put_external_activation(parley._p_external_activation) is
'Stores the external activation of a queue, in place of an earlier one, when it makes sense.
Errors: 8402.';

create function parley._p_external_refusal(activation parley._p_external_activation) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(
      'role %s, which set the %s, may not act as role %s, which owns the queue, and is no administrator of the broker',
      coalesce(pg_get_userbyid(activation.set_by), 'that nobody knows'), activation.kind, pg_get_userbyid(q.owner)
    )
  from parley._p_queue as q
  where q.queue_id = activation.queue_id
    and parley._p_may_act_as(activation.set_by, q.owner) is not true
    and (
      exists (
        select from pg_roles as r where r.oid = activation.set_by
      ) and parley._p_is_administrator(activation.set_by)
    ) is not true
$$;

comment on function parley._p_external_refusal(parley._p_external_activation) is
'Says why what an external activation names must not be started: because who named it could not
act as the owner of the queue. Null when nothing speaks against it.';

create function parley._p_set_external_reader(caller oid, activation parley._p_external_activation) returns regrole
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal text;
begin
  activation.set_by := caller;
  v_refusal := parley._p_external_refusal(activation);
  if v_refusal is not null then
    found := parley._p_raise(15517, 'owner of the queue', activation.kind, v_refusal);
  end if;
  return activation.set_by;
end
$$;

comment on function parley._p_set_external_reader(oid, parley._p_external_activation) is
'Gives the caller, as who says what reads a queue, if he may.
Errors: 15517.';

create function parley._p_require_sole_activator(queue_id integer, activator text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_kind text;
begin
  -- Two that switch on different kinds at once must not both find the other one off.
  select * into v_queue
  from parley._p_queue as q
  where q.queue_id = _p_require_sole_activator.queue_id
  for no key update;
  select a.kind into v_kind
  from parley._p_external_activation as a
  where a.queue_id = v_queue.queue_id and a.is_enabled;
  if activator <> 'procedure' and v_queue.is_activation_enabled then
    found := parley._p_raise(9718, 'internal', v_queue.lookup_name, v_queue.activation_procedure::text);
  elsif activator <> 'external' and v_kind is not null then
    found := parley._p_raise(9718, 'external', v_queue.lookup_name, v_kind);
  elsif activator <> 'event' and parley._p_notifies_activation(v_queue.queue_id) then
    found := parley._p_raise(9717, 'notification', v_queue.lookup_name);
  end if;
  return true;
end
$$;

comment on function parley._p_require_sole_activator(integer, text) is
'Refuses a second kind of activation on a queue, and keeps others from adding one to the end of the transaction.
Arguments: queue_id; activator, the kind that is to be on: procedure, external or event.
Errors: 9717 a QUEUE_ACTIVATION event notification is there, 9718 internal or external activation is on.
Source: spec 2.4.';
