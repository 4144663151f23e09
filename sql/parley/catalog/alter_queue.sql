-- The settings of a queue, their rules, and what changing them sets off.
--
-- Locks: the queue's row. Switching retention on or off waits for the senders on the queue and makes them
-- read again (_p_forget_routes).

create function parley._p_activation_procedure(name text) returns oid
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[];
begin
  v_parts := parse_ident(name);
  return (
    select p.oid
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where cardinality(v_parts) = 2 and n.nspname = v_parts[1] and p.proname = v_parts[2] and p.pronargs = 0
      and p.prokind = 'p'
  );
exception
  when invalid_parameter_value then
    return null;
end
$$;

comment on function parley._p_activation_procedure(text) is
'Finds the procedure without arguments that has a name, schema.procedure; null when there is none. Unlike to_regproc it
asks for no right, and another procedure of that name, with arguments, is not in its way.';

create function parley._p_procedure_owner(name text) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p.proowner from pg_proc as p where p.oid = parley._p_activation_procedure(_p_procedure_owner.name)
$$;

comment on function parley._p_procedure_owner(text) is
'Gives the role to which the activation procedure that has a name belongs; null when there is none.';

create function parley._p_check_activation(procedure text, execute_as text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[];
  v_kinds "char"[];
  v_qualified text;
begin
  if procedure is null then
    found := parley._p_raise(9614, 'missing');
  end if;
  if execute_as is null then
    found := parley._p_raise(9613, 'execute as');
  end if;
  begin
    v_parts := parse_ident(procedure);
  exception
    when invalid_parameter_value then
      v_parts := array[procedure];
  end;
  if cardinality(v_parts) > 1 and v_parts[1] ~ '^pg_temp(_|$)' then
    found := parley._p_raise(9742, 'temporary', procedure);
  elsif parley._p_activation_procedure(procedure) is not null then
    return true;
  end if;
  v_qualified := (
    select string_agg(format('%I.%I', n.nspname, p.proname), ', ' order by n.nspname)
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where cardinality(v_parts) = 1 and p.proname in (procedure, v_parts[1]) and p.prokind = 'p'
  );
  if v_qualified is not null then
    found := parley._p_raise(9614, 'unqualified', procedure, v_qualified);
  end if;
  v_kinds := array(
    select p.prokind
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
    where cardinality(v_parts) = 2 and n.nspname = v_parts[1] and p.proname = v_parts[2]
  );
  if 'p' = any (v_kinds) then
    found := parley._p_raise(9653, 'arguments', procedure);
  elsif cardinality(v_kinds) > 0 then
    found := parley._p_raise(9620, 'function', procedure);
  end if;
  return parley._p_raise(9614, 'unknown', procedure);
end
$$;

comment on function parley._p_check_activation(text, text) is
'Checks that activation can be switched on.
Errors: 9613, 9614, 9620, 9653, 9742.
Source: spec 2.4.';

create function parley._p_execute_as(execute_as text, owner oid) returns oid
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select r.oid
  from pg_roles as r
  where case execute_as
    when 'OWNER' then r.oid = owner
    -- In quotation marks or without, whatever quote_all_identifiers was then and is now.
    else execute_as in (r.rolname, quote_ident(r.rolname), format('"%s"', replace(r.rolname, '"', '""')))
  end
  order by execute_as = r.rolname desc
  limit 1
$$;

comment on function parley._p_execute_as(text, oid) is
'Gives the role that a procedure runs as, or null when there is none.
Arguments: execute_as, as a queue has it; owner of the queue.';

create function parley._p_acting_refusal(queue parley._p_queue) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.refusal
  from (select parley._p_execute_as(queue.execute_as, queue.owner) as role) as r
  cross join lateral (
    select 1, s.what, format(
        'role %s, which set %s of the activation, may not act as role %s, which the procedure runs as',
        coalesce(pg_get_userbyid(s.setter), 'that nobody knows'), s.what, pg_get_userbyid(r.role)
      )
    from (
      values (queue.procedure_set_by::oid, 'the procedure'), (queue.execute_as_set_by::oid, 'execute_as')
    ) as s (setter, what)
    where parley._p_may_act_as(s.setter, r.role) is not true
    union all
    -- A role that may act as the role gains nothing by a name.
    select 2, '', format(
        'the procedure %s belongs to role %s, and when it was set it belonged to %s', queue.activation_procedure,
        pg_get_userbyid(p.proowner),
        coalesce(format('role %s', (select o.rolname from pg_roles as o where o.oid = queue.procedure_owner)),
          'one that is not known')
      )
    from pg_proc as p
    where p.oid = parley._p_activation_procedure(queue.activation_procedure)
      and (p.proowner = queue.procedure_owner or parley._p_may_act_as(p.proowner, r.role)) is not true
  ) as f (class, what, refusal)
  where r.role is not null
  order by f.class, f.what desc
  limit 1
$$;

comment on function parley._p_acting_refusal(parley._p_queue) is
'Says why the procedure of a queue must not be run as its role. The role that set it, or the role it runs as, could
not act as that role itself; or the procedure of that name belongs to another role than then, and to one that could
not act as that role either. Null when nothing speaks against it.';

create function parley._p_require_acting(queue parley._p_queue) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refusal text := parley._p_acting_refusal(queue);
begin
  if v_refusal is not null then
    found := parley._p_raise(
      15517, 'execute as', pg_get_userbyid(parley._p_execute_as(queue.execute_as, queue.owner)), v_refusal
    );
  end if;
  return true;
end
$$;

comment on function parley._p_require_acting(parley._p_queue) is
'Refuses an activation whose procedure would run as a role that who set it could not act as, or that has come to
another owner since.
Errors: 15517.';

create function parley._p_alter_queue(
  caller oid, queue_id integer,
  status boolean,
  retention boolean,
  poison_message_handling boolean,
  activation_procedure text,
  max_queue_readers integer,
  execute_as text,
  activation boolean,
  poison_action text,
  poison_rollbacks integer
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_old parley._p_queue;
  v_new parley._p_queue;
begin
  select * into v_old from parley._p_queue as q where q.queue_id = _p_alter_queue.queue_id for no key update;
  if max_queue_readers is not null and max_queue_readers not between 0 and 32767 then
    found := parley._p_raise(8402, 'range', 'max_queue_readers', max_queue_readers::text, '0', '32767');
  end if;
  if upper(poison_action collate "C") not in ('SET_ASIDE', 'DISABLE_QUEUE') then
    found := parley._p_raise(8402, 'poison action', poison_action);
  elsif poison_rollbacks not between 1 and 15 then
    found := parley._p_raise(8402, 'range', 'poison_rollbacks', poison_rollbacks::text, '1', '15');
  end if;
  if upper(execute_as collate "C") not in ('SELF', 'OWNER') then
    perform parley._p_role(execute_as);
  end if;
  update parley._p_queue as q
  set is_receive_enabled = coalesce(status, q.is_receive_enabled),
    is_enqueue_enabled = coalesce(status, q.is_enqueue_enabled),
    is_retention_enabled = coalesce(retention, q.is_retention_enabled),
    is_poison_message_handling_enabled = coalesce(poison_message_handling, q.is_poison_message_handling_enabled),
    poison_action = coalesce(upper(_p_alter_queue.poison_action collate "C"), q.poison_action),
    rollbacks_before_disable = coalesce(poison_rollbacks, q.rollbacks_before_disable),
    activation_procedure = coalesce(_p_alter_queue.activation_procedure, q.activation_procedure),
    max_readers = coalesce(max_queue_readers, q.max_readers),
    execute_as = coalesce(
      case upper(_p_alter_queue.execute_as collate "C")
        when 'SELF' then pg_get_userbyid(caller)
        when 'OWNER' then 'OWNER'
        else _p_alter_queue.execute_as
      end,
      q.execute_as
    ),
    procedure_set_by = case
      when _p_alter_queue.activation_procedure is null then q.procedure_set_by
      else caller::regrole
    end,
    procedure_owner = case
      when _p_alter_queue.activation_procedure is null then q.procedure_owner
      else parley._p_procedure_owner(_p_alter_queue.activation_procedure)
    end,
    execute_as_set_by = case when _p_alter_queue.execute_as is null then q.execute_as_set_by else caller::regrole end,
    is_activation_enabled = coalesce(activation, q.is_activation_enabled),
    disabled_position = case
      when coalesce(status, q.is_enqueue_enabled) then null
      else coalesce(q.disabled_position, (coalesce(pg_sequence_last_value(q.position_sequence), 0) + 1) * 1024)
    end,
    modify_date = now()
  where q.queue_id = _p_alter_queue.queue_id
  returning * into v_new;
  if v_new.is_simple and v_new.is_retention_enabled then
    found := parley._p_raise(8402, 'retention of a simple queue', v_new.lookup_name);
  end if;
  -- To change one of the two is to choose what runs as the role, whatever the other was set by.
  if num_nonnulls(activation_procedure, execute_as, nullif(activation, false)) > 0
    and v_new.activation_procedure is not null then
    found := parley._p_require_acting(v_new);
  end if;
  if v_new.is_activation_enabled then
    found := parley._p_check_activation(v_new.activation_procedure, v_new.execute_as);
    found := parley._p_require_sole_activator(v_new.queue_id, 'procedure');
    if v_new.max_readers = 0 then
      raise warning using
        message = format('activation of queue "%s" is on but max_queue_readers is 0', v_new.lookup_name),
        detail = 'Service Broker error 9648. No reader will be started.',
        hint = 'Give max_queue_readers.';
    end if;
  end if;
  if status then
    perform setval(v_new.rollback_sequence, 0);
    update parley._p_event_notification as n
    set is_reported = false
    where n.queue_id = _p_alter_queue.queue_id and n.is_reported;
  end if;
  if v_new.is_retention_enabled is distinct from v_old.is_retention_enabled then
    perform parley._p_forget_copy_numbers(queue_id);
    perform parley._p_forget_routes_of_queue(queue_id);
  end if;
  return true;
end
$$;

comment on function parley._p_alter_queue(
  oid, integer, boolean, boolean, boolean, text, integer, text, boolean, text, integer
) is
'Changes the settings of a queue; null leaves a setting as it is.
Errors: 8402, 9613, 9614, 9620, 9653, 9742, 9717, 9718, 15151, 15517.';
