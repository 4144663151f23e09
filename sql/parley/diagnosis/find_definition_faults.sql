-- Checks of services, contracts and queues: can a dialog be begun, is the queue on, may activation do what it is to do?

create function parley._p_dialogs_to_check(scope parley._p_scope) returns table (
  from_service text, to_service text, contract text, since timestamptz, from_id integer, from_owner oid, to_id integer,
  to_owner oid, service_contract_id integer
)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with dialog as (
    -- The one that was asked for; or all that were begun and have not reached their target yet.
    select scope.from_service, scope.to_service, scope.contract, null::timestamptz as since
    where scope.from_service is not null or scope.to_service is not null
    union all
    select e.service_name, e.far_service, e.service_contract_name, min(e.begun_at)
    from parley._p_endpoint as e
    where e.is_initiator
      and e.far_endpoint_id is null
      and e.state in ('SO', 'CO')
      and scope.from_service is null
      and scope.to_service is null
      and (
        e.far_broker_instance is null or e.far_broker_instance = (
          select b.service_broker_guid::text from parley._p_broker as b
        )
      )
    group by e.service_name, e.far_service, e.service_contract_name
  )
  select d.from_service, d.to_service, d.contract, d.since, f.service_id as from_id, f.owner as from_owner,
    t.service_id as to_id, t.owner as to_owner,
    c.service_contract_id
  from dialog as d
  left join parley._p_service as f on f.name = d.from_service
  left join parley._p_service as t
    on t.name = d.to_service and parley._p_leads_to(d.to_service, null) in ('LOCAL', 'ASK')
  left join parley._p_contract as c on c.name = d.contract
$$;

comment on function parley._p_dialogs_to_check(parley._p_scope) is
'Gives the dialog that was asked for, or all that were begun and have not reached their target, and which of their
services and contracts this database has.';

create function parley._p_find_dialog_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with known as materialized (
    select * from parley._p_dialogs_to_check(scope)
  )
  select 'service-missing', 'service', m.name,
    format(
      'The service "%s" does not exist in this database, and no other database of the same daemon is known to have it',
      m.name
    )
      || case
        when u.is_searched then '.'
        else '. The daemon finds out with the first dialog whether another one has it.'
      end
      || coalesce(' Did you mean "' || parley._p_near_service(coalesce(scope.reader, 0), m.name) || '"?', ''),
    min(m.since),
    case
      when u.is_searched then parley._p_cure_of_slip(
        scope.reader, m.name, null, format(
          'select parley.create_service(%L, ''<queue>'', %L);  -- only where it belongs: in this database it takes '
            || 'all that is sent from here',
          m.name, array_remove(array_agg(distinct m.contract), null)
        )
      )
      -- Another database may have it, and what is created here would divert what is meant for that one.
      else format(
        'parley diagnose --from %s --to %s --contract %s --far-dsn ''<database that has it>''  -- if none has it, '
          || 'create it where it belongs',
        parley._p_shell_word(coalesce(min(m.from_service), '<service>')),
        parley._p_shell_word(coalesce(min(m.to_service), '<service>')),
        parley._p_shell_word(coalesce(min(m.dialog_contract), 'DEFAULT'))
      )
    end
  from (
    select k.from_service as name, null as contract, k.since, k.from_service, k.to_service,
      k.contract as dialog_contract
    from known as k
    where k.from_service is not null and k.from_id is null
    union all
    select k.to_service, k.contract, k.since, k.from_service, k.to_service, k.contract
    from known as k
    where k.to_service is not null and k.to_id is null
  ) as m
  -- A daemon that runs has asked its other databases for the target of a dialog that has begun.
  cross join lateral (select m.since is not null and parley._p_current_term() is not null as is_searched) as u
  where parley._p_leads_to(m.name, null) = 'LOCAL' and not parley._p_is_next_door(m.name)
  group by m.name, u.is_searched
  union all
  select distinct 'contract-missing', 'contract', k.contract,
    format('The contract "%s" does not exist.', k.contract)
      || parley._p_did_you_mean(coalesce(scope.reader, 0), 'contract', k.contract),
    null::timestamptz,
    format('select parley.create_contract(%L, ''{"<message type>": "ANY"}''::jsonb);', k.contract)
  from known as k
  where k.contract is not null and k.service_contract_id is null
  union all
  select distinct 'contract-not-accepted', 'service', k.to_service,
    format('It does not accept the contract "%s": dialogs on it end with error -8408.', k.contract),
    k.since,
    format('select parley.alter_service(%L, add_contracts => array[%L]);', k.to_service, k.contract)
  from known as k
  where k.to_id is not null
    and k.service_contract_id is not null
    and not exists (
      select from parley._p_service_contract as u
      where u.service_id = k.to_id and u.service_contract_id = k.service_contract_id
    )
  union all
  select distinct 'send-not-permitted', 'service', k.to_service,
    format(
      '%s, the owner of service "%s", may not SEND to it: dialogs end with error -8494.', k.from_owner::regrole,
      k.from_service
    ),
    k.since,
    format('select parley.grant(''SEND'', ''service'', %L, %L);', k.to_service, pg_get_userbyid(k.from_owner))
  from known as k
  join pg_roles as r on r.oid = k.from_owner
  where k.to_id is not null
    and parley._p_has_permission(k.from_owner, 'SEND', 'service', k.to_id, k.to_owner) is not true
$$;

comment on function parley._p_find_dialog_faults(parley._p_scope) is
'Finds what would make a dialog fail: the services and the contract, whether the target accepts it,
whether the initiator may send.';

create function parley._p_find_queues_off(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select
    case when q.is_receive_enabled then 'queue-poisoned' else 'queue-off' end,
    'queue', q.lookup_name,
    case
      when q.is_receive_enabled
        then format(
          'A message was rolled back %s times, so the queue is disabled. See it with parley peek.',
          q.rollbacks_before_disable
        )
      else 'The queue is switched off: nothing can be received, and what arrives is held for its senders.'
    end,
    case when not q.is_receive_enabled then q.modify_date end,
    format('select parley.alter_queue(%L, status => true);', q.lookup_name)
      || case
        when q.is_receive_enabled then '  -- mend the reader or end the conversation first, or it comes back'
        else ''
      end
  from parley._p_queue as q
  where (not q.is_receive_enabled or parley._p_is_poisoned(q.queue_id))
    and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
  union all
  select 'readers-paused', 'queue', q.lookup_name,
    'Its readers are paused: the daemon starts none, and consumers receive nothing. Senders go on.',
    q.readers_paused_at, format('select parley.resume_readers(%L);', q.lookup_name)
  from parley._p_queue as q
  where q.readers_paused_at is not null and (scope.queue_ids is null or q.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_queues_off(parley._p_scope) is
'Finds queues that are off, by ALTER QUEUE or by poison message handling, and those whose readers are paused.';

create function parley._p_find_activation_faults(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with activated as (
    select a.queue_id, a.name, a.max_readers, a.kind, a.procedure_call, a.procedure_name, a.execute_as, a.refusal,
      q.owner, q.modify_date,
      r.oid as role, p.oid as procedure, p.pronamespace as namespace
    from parley._p_activated_queues() as a
    join parley._p_queue as q on q.queue_id = a.queue_id
    left join pg_roles as r on r.rolname = a.execute_as
    left join pg_proc as p on a.kind = 'procedure' and p.oid = parley._p_activation_procedure(a.procedure_name)
    where scope.queue_ids is null or a.queue_id = any (scope.queue_ids)
  )
  select 'activation-without-readers', 'queue', a.name,
    'Activation is on, but max_queue_readers is 0: no reader is started.', a.modify_date,
    format('select parley.alter_queue(%L, max_queue_readers => 1);', a.name)
  from activated as a
  where a.max_readers = 0 and a.kind = 'procedure'
  union all
  select 'activation-procedure-missing', 'queue', a.name,
    format('The procedure %s does not exist, or takes arguments, or is a function.', a.procedure_name),
    null,
    format('select parley.alter_queue(%L, activation => false);  -- or create the procedure', a.name)
  from activated as a
  where a.kind = 'procedure' and a.procedure_call is null
  union all
  select 'activation-role-missing', 'queue', a.name, 'The role that activation runs as does not exist.', null,
    format('select parley.alter_queue(%L, execute_as => ''OWNER'');', a.name)
  from activated as a
  where a.kind = 'procedure' and a.execute_as is null
  union all
  select 'activation-not-permitted', 'queue', a.name, 'No reader is started: ' || a.refusal || '.', null,
    case
      when a.kind = 'procedure' then format(
        'select parley.alter_queue(%L, activation_procedure => %L, execute_as => ''SELF'');  -- as a role that may '
          || 'be trusted with it, and has read the procedure',
        a.name, a.procedure_name
      )
      else format(
        'select parley.drop_external_activation(%L);  -- and let the owner of the queue define it again', a.name
      )
    end
  from activated as a
  where a.refusal is not null
  union all
  select 'activation-not-permitted', 'queue', a.name,
    format('The role "%s" may not %s.', a.execute_as, t.what), null, t.cure
  from activated as a
  cross join lateral (
    select format('call the procedure %s', a.procedure) as what,
      format('grant execute on procedure %s to %I;', a.procedure::regprocedure, a.execute_as) as cure
    where has_function_privilege(a.role, a.procedure, 'execute') is not true
    union all
    select format('use the schema %s, in which the procedure is', a.namespace::regnamespace),
      format('grant usage on schema %s to %I;', a.namespace::regnamespace, a.execute_as)
    where has_schema_privilege(a.role, a.namespace, 'usage') is not true
  ) as t
  where a.role is not null and a.procedure is not null
  union all
  select 'receive-not-permitted', 'queue', a.name,
    format('The role "%s", which activation runs as, may not RECEIVE from the queue.', a.execute_as), null,
    format('select parley.grant(''RECEIVE'', ''queue'', %L, %L);', a.name, a.execute_as)
  from activated as a
  where a.kind = 'procedure'
    and a.role is not null
    and parley._p_has_permission(a.role, 'RECEIVE', 'queue', a.queue_id, a.owner) is not true
$$;

comment on function parley._p_find_activation_faults(parley._p_scope) is
'Finds what would make activated readers fail: no procedure, no role, no right to call it or
to RECEIVE, no reader allowed.';

create function parley._p_find_plain_secrets(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'webhook-secret-plain', 'queue', q.lookup_name,
    'The secret of its webhook stands in the database as it is, and in every backup: no daemon with a master key '
      || 'has sealed it.',
    a.modify_date,
    'parley serve --master-key <file>'
  from parley._p_external_activation as a
  join parley._p_queue as q using (queue_id)
  where a.secret is not null
    and a.modify_date < clock_timestamp() - scope.patience
    and (scope.queue_ids is null or a.queue_id = any (scope.queue_ids))
$$;

comment on function parley._p_find_plain_secrets(parley._p_scope) is
'Finds webhooks whose secret has not been sealed for longer than scope.patience.';
