-- The statements of external activation: create, alter and drop; what is left out of an ALTER stays as it is.

create function parley._p_new_external_activation(
  caller oid, queue text, kind text, activation boolean
) returns parley._p_external_activation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, 'ALTER');
  v_activation parley._p_external_activation;
begin
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  if exists (select from parley._p_external_activation as a where a.queue_id = v_queue.queue_id) then
    found := parley._p_raise(2714, 'external activation', v_queue.lookup_name);
  end if;
  v_activation.queue_id := v_queue.queue_id;
  v_activation.kind := kind;
  v_activation.set_by := parley._p_set_external_reader(caller, v_activation);
  if activation then
    found := parley._p_require_sole_activator(v_activation.queue_id, 'external');
  end if;
  v_activation.is_enabled := coalesce(activation, true);
  return v_activation;
end
$$;

comment on function parley._p_new_external_activation(oid, text, text, boolean) is
'Begins the external activation of a queue that has none, and switches it on unless activation is false.
Errors: 208, 229, 2714, 9609, 9663, 9717, 9718, 15517.';

create function parley._p_existing_external_activation(
  caller oid, queue text, kind text, activation boolean default null
) returns parley._p_external_activation
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(caller, queue, 'ALTER');
  v_activation parley._p_external_activation;
begin
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  select * into v_activation from parley._p_external_activation as a where a.queue_id = v_queue.queue_id;
  if v_activation.kind is null then
    found := parley._p_raise(
      15151, 'activation', v_queue.lookup_name, coalesce(_p_existing_external_activation.kind, 'external')
    );
  elsif v_activation.kind <> _p_existing_external_activation.kind then
    found := parley._p_raise(
      15151, 'kind of activation', v_queue.lookup_name, _p_existing_external_activation.kind, v_activation.kind
    );
  end if;
  if activation then
    found := parley._p_require_sole_activator(v_activation.queue_id, 'external');
  end if;
  v_activation.is_enabled := coalesce(activation, v_activation.is_enabled);
  return v_activation;
end
$$;

comment on function parley._p_existing_external_activation(oid, text, text, boolean) is
'Finds the external activation of a queue, of a kind or of any (null), locks it, and switches it on or off unless
activation is null.
Errors: 208, 229, 9609, 9663, 9717, 9718, 15151 there is none.';

create function parley.create_program_activation(
  queue text,
  program text[],
  environment jsonb default '{}',
  working_directory text default null,
  min_instances integer default 0,
  max_instances integer default 1,
  stop_timeout_ms integer default 10000,
  activation boolean default true,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation :=
    parley._p_new_external_activation(v_caller, queue, 'program', activation);
begin
  v_activation.min_instances := min_instances;
  v_activation.max_instances := max_instances;
  v_activation.program := coalesce(program, '{}');
  v_activation.environment := coalesce(environment, '{}');
  v_activation.working_directory := working_directory;
  v_activation.stop_timeout_ms := stop_timeout_ms;
  found := parley._p_put_external_activation(v_activation);
end
$$;

comment on function parley.create_program_activation(
  text, text[], jsonb, text, integer, integer, integer, boolean, parley.caller
) is
'Lets the daemon start a program when messages wait in a queue. It runs only where the operator of the daemon allows
it: parley serve --allow-program.
Arguments: queue; program, its full path and its arguments, which no shell reads; environment, variables as a JSON
object of strings, as far as the operator allows them; working_directory, a full path (null: the folder of the program);
min_instances, how many always run; max_instances, how many run at most; stop_timeout_ms, milliseconds from SIGTERM to
SIGKILL; activation, whether it is on.
Errors: 208 no such queue, 229 not allowed, 2714 the queue has an external activation, 8402 out of range or malformed,
9609 malformed name, 9663 system object, 9717 and 9718 the queue is activated in another way, 15517 the caller may not
act as the owner of the queue.
Source: spec 5.5.';

create function parley.alter_program_activation(
  queue text,
  program text[] default null,
  environment jsonb default null,
  working_directory text default null,
  min_instances integer default null,
  max_instances integer default null,
  stop_timeout_ms integer default null,
  activation boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation :=
    parley._p_existing_external_activation(v_caller, queue, 'program', activation);
begin
  if num_nonnulls(program, environment, working_directory) > 0 then
    v_activation.set_by := parley._p_set_external_reader(v_caller, v_activation);
  end if;
  v_activation.min_instances := coalesce(min_instances, v_activation.min_instances);
  v_activation.max_instances := coalesce(max_instances, v_activation.max_instances);
  v_activation.program := coalesce(program, v_activation.program);
  v_activation.environment := coalesce(environment, v_activation.environment);
  v_activation.working_directory := coalesce(working_directory, v_activation.working_directory);
  v_activation.stop_timeout_ms := coalesce(stop_timeout_ms, v_activation.stop_timeout_ms);
  found := parley._p_put_external_activation(v_activation);
end
$$;

comment on function parley.alter_program_activation(
  text, text[], jsonb, text, integer, integer, integer, boolean, parley.caller
) is
'Changes what is given of the program that reads a queue; what is null stays as it is. Programs
that run already are left alone.
Arguments: as create_program_activation.
Errors: 208 no such queue, 229 not allowed, 8402 out of range or malformed, 9609 malformed name, 9663 system object,
9717 and 9718 the queue is activated in another way, 15151 the queue has no program,
15517 the caller may not act as the owner of the queue.
Source: spec 5.5.';

create function parley._p_new_secret() returns text
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  -- Four random UUIDs have 488 random bits; of their hash 256 are kept.
  select 'whsec_' || encode(
    sha256(
      uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())
        || uuid_send(gen_random_uuid())
    ),
    'base64'
  )
$$;

comment on function parley._p_new_secret() is
'Gives a new secret to sign webhooks with: whsec_ and 32 random bytes in base64.';

create function parley.create_webhook_activation(
  queue text,
  url text,
  secret text default null,
  secret_name text default null,
  timeout_ms integer default 15000,
  max_instances integer default 4,
  batch_size integer default 1,
  groups integer default 1,
  body_format text default 'envelope',
  system_messages boolean default false,
  max_attempts integer default 10,
  first_retry_ms integer default 1000,
  longest_retry_ms integer default 300000,
  activation boolean default true,
  caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation :=
    parley._p_new_external_activation(v_caller, queue, 'webhook', activation);
begin
  v_activation.min_instances := 0;
  v_activation.max_instances := max_instances;
  v_activation.url := coalesce(url, '');
  v_activation.secret := coalesce(secret, parley._p_new_secret());
  v_activation.secret_name := secret_name;
  v_activation.timeout_ms := timeout_ms;
  v_activation.batch_size := batch_size;
  v_activation.groups := groups;
  v_activation.body_format := body_format;
  v_activation.system_messages := coalesce(system_messages, false);
  v_activation.max_attempts := max_attempts;
  v_activation.first_retry_ms := first_retry_ms;
  v_activation.longest_retry_ms := longest_retry_ms;
  found := parley._p_put_external_activation(v_activation);
  return v_activation.secret;
end
$$;

comment on function parley.create_webhook_activation(
  text, text, text, text, integer, integer, integer, integer, text, boolean, integer, integer, integer, boolean,
  parley.caller
) is
'Lets the daemon deliver the messages of a queue to a web address, and returns the secret that signs them, which nothing
shows again. An address is called only where the operator of the daemon allows it: parley serve --allow-webhook.
Arguments: queue; url, http or https; secret, 16 to 500 characters (null: a new one); secret_name, a name for it that
views show; timeout_ms, milliseconds for one request; max_instances, requests at once, each of other conversation
groups; batch_size, messages in a request; groups, of how many groups they are, up to batch_size (1: of one
conversation; a simple queue has none); body_format, envelope (JSON) or raw; system_messages, whether EndDialog and
Error are delivered too, instead of ending the conversation; max_attempts, after how many refusals a conversation or
message is set aside (0: never); first_retry_ms and longest_retry_ms, milliseconds that it waits after its first
refusal, doubling up to the longest: these three are of queues without a retry policy (parley.set_retry_policy), which
counts where there is one, as in a simple queue by default; activation, whether it is on.
Errors: 208 no such queue, 229 not allowed, 2714 the queue has an external activation, 8402 out of range or malformed,
9609 malformed name, 9663 system object, 9717 and 9718 the queue is activated in another way, 15517 the caller may not
act as the owner of the queue.
Source: spec 5.5.';

create function parley.alter_webhook_activation(
  queue text,
  url text default null,
  secret text default null,
  secret_name text default null,
  timeout_ms integer default null,
  max_instances integer default null,
  batch_size integer default null,
  groups integer default null,
  body_format text default null,
  system_messages boolean default null,
  max_attempts integer default null,
  first_retry_ms integer default null,
  longest_retry_ms integer default null,
  activation boolean default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation :=
    parley._p_existing_external_activation(v_caller, queue, 'webhook', activation);
begin
  if num_nonnulls(url, secret, body_format, system_messages) > 0 then
    v_activation.set_by := parley._p_set_external_reader(v_caller, v_activation);
  end if;
  v_activation.max_instances := coalesce(max_instances, v_activation.max_instances);
  v_activation.url := coalesce(url, v_activation.url);
  if secret is not null then
    v_activation.secret := secret;
    v_activation.sealed_secret := null;
  end if;
  v_activation.secret_name := coalesce(secret_name, v_activation.secret_name);
  v_activation.timeout_ms := coalesce(timeout_ms, v_activation.timeout_ms);
  v_activation.batch_size := coalesce(batch_size, v_activation.batch_size);
  v_activation.groups := coalesce(groups, v_activation.groups);
  v_activation.body_format := coalesce(body_format, v_activation.body_format);
  v_activation.system_messages := coalesce(system_messages, v_activation.system_messages);
  v_activation.max_attempts := coalesce(max_attempts, v_activation.max_attempts);
  v_activation.first_retry_ms := coalesce(first_retry_ms, v_activation.first_retry_ms);
  v_activation.longest_retry_ms := coalesce(longest_retry_ms, v_activation.longest_retry_ms);
  found := parley._p_put_external_activation(v_activation);
end
$$;

comment on function parley.alter_webhook_activation(
  text, text, text, text, integer, integer, integer, integer, text, boolean, integer, integer, integer, boolean,
  parley.caller
) is
'Changes what is given of the webhook that reads a queue; what is null stays as it is. A
request on its way is left alone.
Arguments: as create_webhook_activation; secret, a new one.
Errors: 208 no such queue, 229 not allowed, 8402 out of range or malformed, 9609 malformed name, 9663 system object,
9717 and 9718 the queue is activated in another way, 15151 the queue has no webhook,
15517 the caller may not act as the owner of the queue.
Source: spec 5.5.';

create function parley.drop_external_activation(
  queue text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_activation parley._p_external_activation := parley._p_existing_external_activation(v_caller, queue, null);
begin
  delete from parley._p_external_activation as a where a.queue_id = v_activation.queue_id;
  -- Its readers need not ask for claims any more, unless a delivery is under way.
  update parley._p_queue as q
  set has_deliveries = false
  where q.queue_id = v_activation.queue_id
    and q.has_deliveries
    and not exists (select from parley._p_delivery_claim as c where c.queue_id = q.queue_id)
    and not exists (select from parley._p_message_claim as c where c.queue_id = q.queue_id);
end
$$;

comment on function parley.drop_external_activation(text, parley.caller) is
'Removes the external activation of a queue. Nothing new is started; what runs already leaves when it finds nothing. A
request to a web address that is under way is finished, and what became of it recorded.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 9663 system object, 15151 there is none.
Source: spec 5.5.';

create function parley._p_sees_definition(
  queue_id integer,
  caller parley.caller default parley.current_caller()
) returns boolean
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select parley._p_has_permission(parley._p_caller(caller), 'VIEW DEFINITION', 'queue', q.queue_id, q.owner)
    from parley._p_queue as q
    where q.queue_id = _p_sees_definition.queue_id
  ), false)
$$;

comment on function parley._p_sees_definition(integer, parley.caller) is
'Reports whether a role may see how a queue is read: VIEW DEFINITION, ALTER or CONTROL on it, its owner, or an
administrator. False when there is none.';

create view parley.external_activations with (security_barrier = true) as
select
  q.lookup_name as queue_name,
  a.queue_id as service_queue_id,
  a.kind,
  a.is_enabled,
  a.min_instances,
  a.max_instances,
  a.program,
  array(select e.name from jsonb_object_keys(a.environment) as e (name) order by e.name) as environment_names,
  a.working_directory,
  a.stop_timeout_ms,
  regexp_replace(a.url, E'\\?.*', '?...') as url,
  a.secret_name,
  a.timeout_ms,
  a.batch_size,
  a.groups,
  a.body_format,
  a.system_messages,
  a.max_attempts,
  a.first_retry_ms,
  a.longest_retry_ms,
  a.create_date,
  a.modify_date
from parley._p_external_activation as a
join parley._p_queue as q using (queue_id)
where parley._p_sees_definition(a.queue_id) is true;

comment on view parley.external_activations is
'The programs that the daemon starts outside of the database, for each queue that has such an activation and whose
definition the caller may view. Secrets, values of environments and the query of a url are shown to nobody.';
comment on column parley.external_activations.queue_name is 'Queue, as statements take it.';
comment on column parley.external_activations.service_queue_id is 'Identity of the queue.';
comment on column parley.external_activations.kind is 'program or webhook.';
comment on column parley.external_activations.is_enabled is 'Whether anything is started.';
comment on column parley.external_activations.min_instances is 'How many always run; 0 for webhooks.';
comment on column parley.external_activations.max_instances is 'How many run at most; for a webhook, requests at once.';
comment on column parley.external_activations.program is 'Program and its arguments; null for webhooks.';
comment on column parley.external_activations.environment_names is 'Names of the variables that it is given.';
comment on column parley.external_activations.working_directory is 'Where it runs; null is the folder of the program.';
comment on column parley.external_activations.stop_timeout_ms is 'Milliseconds from SIGTERM to SIGKILL.';
comment on column parley.external_activations.url is 'Address of the webhook, without its query; null for programs.';
comment on column parley.external_activations.secret_name is
'Name of the secret, or null; the secret itself is not shown.';
comment on column parley.external_activations.timeout_ms is 'Milliseconds for one request.';
comment on column parley.external_activations.batch_size is 'Messages in one request, at most.';
comment on column parley.external_activations.groups is 'Groups of which one request has messages, at most.';
comment on column parley.external_activations.body_format is 'envelope or raw.';
comment on column parley.external_activations.system_messages is 'Whether EndDialog and Error are delivered too.';
comment on column parley.external_activations.max_attempts is
'Refusals after which a conversation or message is set aside, in a queue without a retry policy; 0 is never.';
comment on column parley.external_activations.first_retry_ms is
'Milliseconds that it waits after its first refusal, in a queue without a retry policy.';
comment on column parley.external_activations.longest_retry_ms is 'Milliseconds that it waits at most.';
comment on column parley.external_activations.create_date is 'When it was created.';
comment on column parley.external_activations.modify_date is 'When it was changed last.';
