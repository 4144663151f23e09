-- Running the checks of diagnosis/diagnosis_checks.sql, each by itself, and those of the systems on the broker.
--
-- A system has its findings by a function _p_find_faults(part text, patience interval) in its schema parley_NAME. It is
-- called with the rights of the owner of the schema parley, so it has to belong to that role, as its schema has. It
-- gives the columns code, level, object_kind, object_name, cause, since, cure. Nothing here knows which systems exist.

create view parley._p_diagnosis_systems as
select n.nspname as schema
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where n.nspname like E'parley\\_%' and p.proname = '_p_find_faults'
  and pg_get_function_identity_arguments(p.oid) = 'part text, patience interval'
  and p.proowner = (select o.nspowner from pg_namespace as o where o.nspname = 'parley')
  and n.nspowner = p.proowner;

comment on view parley._p_diagnosis_systems is
'Schemas of systems on the broker that have findings of their own: of the same owner, with a function _p_find_faults.';

create function parley._p_diagnose(
  caller oid, part text, scope parley._p_scope, level text, ignore text[]
) returns setof parley.finding
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_levels text[] := case upper(level collate "C")
    when 'ERROR' then array['ERROR']
    when 'WARNING' then array['ERROR', 'WARNING']
    when 'INFO' then array['ERROR', 'WARNING', 'INFO']
  end;
  v_check record;
  v_scope parley._p_scope;
begin
  found := parley._p_require_administrator(caller, 'diagnosis');
  if v_levels is null then
    found := parley._p_raise(8402, 'level', level);
  end if;
  for v_check in
    select c.check_function, c.patience, array_agg(c.code) as codes
    from parley.diagnosis_checks as c
    where c.part = _p_diagnose.part and c.level = any (v_levels) and c.code <> all (coalesce(ignore, '{}'))
    group by c.check_function, c.patience
    order by min(case c.level when 'ERROR' then 1 when 'WARNING' then 2 else 3 end), c.check_function
  loop
    v_scope := scope;
    v_scope.patience := coalesce(scope.patience, v_check.patience);
    v_scope.reader := caller;
    begin
      return query execute format(
        'select f.code, c.level, c.part, f.object_kind, f.object_name, f.cause, f.since, f.cure, c.error_number
        from parley.%I($1) as f join parley.diagnosis_checks as c using (code)
        where f.code = any ($2)
        order by f.code, f.since nulls last, f.object_name',
        v_check.check_function
      ) using v_scope, v_check.codes;
    exception
      when others then
        return next (
          array_to_string(v_check.codes, ','), 'ERROR', 'PROBLEM', 'check', v_check.check_function, sqlerrm, null, null,
          null
        )::parley.finding;
    end;
  end loop;
  if scope.queue_ids is not null or scope.endpoint_ids is not null or scope.contract is not null then
    return;
  end if;
  for v_check in select s.schema from parley._p_diagnosis_systems as s order by s.schema loop
    begin
      return query execute format(
        'select f.code, f.level, $1, f.object_kind, f.object_name, f.cause, f.since, f.cure, null::integer
        from %I._p_find_faults($1, $2) as f
        where f.level = any ($3) and f.code <> all ($4)
        order by array_position(array[''ERROR'', ''WARNING'', ''INFO''], f.level), f.code, f.since nulls last,
          f.object_name',
        v_check.schema
      ) using part, scope.patience, v_levels, coalesce(ignore, '{}');
    exception
      when others then
        return next (
          v_check.schema, 'ERROR', 'PROBLEM', 'check', v_check.schema || '._p_find_faults', sqlerrm, null, null, null
        )::parley.finding;
    end;
  end loop;
end
$$;

comment on function parley._p_diagnose(oid, text, parley._p_scope, text, text[]) is
'Runs the checks of one part.
Errors: 8402 unknown level, 15151 not an administrator.';

create function parley.diagnose_configuration(
  from_service text default null,
  to_service text default null,
  contract text default null,
  level text default 'WARNING',
  ignore text[] default '{}',
  caller parley.caller default parley.current_caller()
) returns setof parley.finding
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_scope parley._p_scope;
begin
  v_scope.from_service := from_service;
  v_scope.to_service := to_service;
  v_scope.contract := coalesce(
    contract, case when from_service is not null and to_service is not null then 'DEFAULT' end
  );
  if from_service is not null or to_service is not null then
    v_scope.queue_ids := array(
      select s.queue_id from parley._p_service as s where s.name in (from_service, to_service)
    );
  end if;
  return query select * from parley._p_diagnose(v_caller, 'CONFIGURATION', v_scope, level, ignore);
end
$$;

comment on function parley.diagnose_configuration(text, text, text, text, text[], parley.caller) is
'Finds what is wrong with the definitions: of everything, or of a dialog that is to be begun between two services.
Arguments: from_service and to_service, the initiator and the target, either may be left out; contract of the dialog
(null: DEFAULT when both services are given); level, WARNING (errors too), ERROR (only these) or INFO (everything);
ignore, codes of parley.diagnosis_checks.
Errors: 8402 unknown level, 15151 not an administrator.
Source: spec 9.4, CONFIGURATION.';

create function parley.diagnose_runtime(
  conversation uuid default null,
  level text default 'WARNING',
  ignore text[] default '{}',
  patience interval default null,
  caller parley.caller default parley.current_caller()
) returns setof parley.finding
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_scope parley._p_scope;
begin
  if conversation is not null then
    v_scope.endpoint_ids := parley._p_endpoints_of(conversation);
    v_scope.queue_ids := array(
      select s.queue_id
      from parley._p_endpoint as e
      join parley._p_service as s using (service_id)
      where e.endpoint_id = any (v_scope.endpoint_ids)
    );
  end if;
  v_scope.patience := patience;
  return query select * from parley._p_diagnose(v_caller, 'RUNTIME', v_scope, level, ignore);
end
$$;

comment on function parley.diagnose_runtime(uuid, text, text[], interval, parley.caller) is
'Finds the faults of the moment: messages that are not read or not delivered, sides that are not ended, timers that are
not fired, and the sessions that hold them up.
Arguments: conversation, only what concerns one: a handle, a group or a conversation id (null: everything); level and
ignore, as diagnose_configuration; patience, for how long things may last before they are findings (null:
as parley.diagnosis_checks says).
Errors: 8402 unknown level, 8426 conversation not found, 15151 not an administrator.
Source: spec 9.4, RUNTIME.';

create function parley._p_endpoints_of(conversation uuid) returns bigint[]
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoints bigint[];
begin
  v_endpoints := array(
    select e.endpoint_id
    from parley._p_endpoint as e
    where e.conversation_id in (
      select h.conversation_id from parley._p_endpoint as h where h.conversation_handle = conversation
      union all
      select h.conversation_id
      from parley._p_conversation_group as g
      join parley._p_endpoint as h using (group_id)
      where g.conversation_group_id = conversation
      union all
      select t.conversation_id from parley._p_tombstone as t where t.conversation_handle = conversation
      union all
      select conversation
    )
    order by e.endpoint_id
  );
  if cardinality(v_endpoints) = 0
    and not exists (
      select from parley._p_tombstone as t
      where conversation in (t.conversation_handle, t.conversation_id, t.conversation_group_id)
    ) then
    found := parley._p_raise_unknown_handle(conversation);
  end if;
  return v_endpoints;
end
$$;

comment on function parley._p_endpoints_of(uuid) is
'Finds the sides of a conversation by a handle, its id, or a group, in which case of all conversations that are in it.
None when only tombstones are left.
Errors: 8426 there is nothing by that name.';
