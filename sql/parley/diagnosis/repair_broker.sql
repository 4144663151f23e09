-- CHECK and REPAIR: what the check of diagnosis/check_broker.sql found, reported with what can
-- be done, or done (spec 9.2).

-- A system has its own by a function _p_check_contents(repair boolean) in its schema parley_NAME, which belongs to the
-- owner of the schema parley, and gives the columns object_kind, object_name, finding.
create view parley._p_checked_systems as
select n.nspname as schema
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where n.nspname like E'parley\\_%' and p.proname = '_p_check_contents'
  and pg_get_function_identity_arguments(p.oid) = 'repair boolean'
  and p.proowner = (select o.nspowner from pg_namespace as o where o.nspname = 'parley')
  and n.nspowner = p.proowner;

comment on view parley._p_checked_systems is
'Schemas of systems on the broker that check their own contents: of the same owner, with a function _p_check_contents.';

create function parley.check_broker(repair boolean default false, caller parley.caller default parley.current_caller())
returns table (
  error_number integer, level text, object_kind text, object_name text, finding text, repair_number integer,
  repaired boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_found record;
begin
  found := parley._p_require_administrator(v_caller, 'CHECK');
  for v_found in
    select d.error_number, d.object_kind, d.object_id, d.object_name, d.finding from parley._p_check_definitions() as d
    union all
    select c.error_number, c.object_kind, c.object_id, c.object_name, c.finding from parley._p_check_contents() as c
    union all
    select null, 'sequence', b.sequence::oid::bigint, b.sequence::text,
      format('It has given %s, and there are rows with numbers up to %s.', b.last_number, b.floor)
    from parley._p_sequences_behind() as b
  loop
    error_number := v_found.error_number;
    level := 'ERROR';
    object_kind := v_found.object_kind;
    object_name := v_found.object_name;
    finding := v_found.finding;
    repair_number := case
      when error_number in (9607, 9608) then 9606
      when error_number in (9678, 9679) then 9684
      when error_number = 9677 then 9685
      when object_kind = 'conversation' then 9686
      when object_kind = 'conversation group' then 9687
      when error_number = 9713 then 9725
      when error_number = 9711 then 9671
      when error_number in (9705, 9709, 8444) then 9672
      when error_number in (9706, 9707) then 9673
    end;
    repaired := coalesce(repair, false);
    if repaired then
      perform parley._p_repair(error_number, v_found.object_kind, v_found.object_id);
    end if;
    return next;
  end loop;
  for v_found in select s.schema from parley._p_checked_systems as s order by s.schema loop
    return query execute format(
      'select null::integer, ''ERROR'', c.object_kind, c.object_name, c.finding, null::integer, $1
      from %I._p_check_contents($1) as c',
      v_found.schema
    ) using coalesce(repair, false);
  end loop;
  return query
  select t.error_number, 'INFO', 'total', t.what, t.total || ' ' || t.what, null::integer, false
  from (
    values
      (9605, 'priorities', (select count(*) from parley._p_priority)),
      (9667, 'services', (select count(*) from parley._p_service)),
      (9668, 'queues', (select count(*) from parley._p_queue)),
      (9669, 'conversation endpoints', (select count(*) from parley._p_endpoint)),
      (9670, 'remote service bindings', 0),
      (9674, 'conversation groups', (select count(*) from parley._p_conversation_group)),
      (9675, 'message types', (select count(*) from parley._p_message_type)),
      (9676, 'contracts', (select count(*) from parley._p_contract))
  ) as t (error_number, what, total);
end
$$;

comment on function parley.check_broker(boolean, parley.caller) is
'Checks that everything in the broker refers to something that exists, and repairs it by dropping what does
not. Reads every row there is.
Columns: error_number, what is wrong; level, ERROR, or INFO for the totals at the end; object_kind and
object_name; finding, in words; repair_number, the number that Service Broker gives to the repair;
repaired, whether it was done just now.
Repairs: priorities, services, contracts, conversations and groups are dropped or lose what does not exist; validation
functions are detached; rows of queues and of the transmission queue removed; activation switched off; missing views of
queues created. Far sides get an Error message. Of mail, work items whose messages are gone are dropped, and messages
that no work item stands for are categorized anew.
Arguments: repair, whether to repair what is found.
Errors: 15151 not an administrator.
Source: spec 9.2.';

create function parley._p_repair(error_number integer, object_kind text, object_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  case
    when error_number = 9677 then
      delete from parley._p_contract_message_type as u
      where u.service_contract_id = object_id
        and not exists (select from parley._p_message_type as t where t.message_type_id = u.message_type_id);
    when object_kind = 'sequence' then
      perform parley._p_advance_sequences();
    when error_number = 9678 then
      delete from parley._p_service_contract as u
      where u.service_id = object_id
        and not exists (select from parley._p_contract as c where c.service_contract_id = u.service_contract_id);
    when error_number = 9679 then
      perform parley._p_drop_endpoint(e.endpoint_id) from parley._p_endpoint as e where e.service_id = object_id;
      delete from parley._p_permission as p where p.class = 'service' and p.object_id = _p_repair.object_id;
      delete from parley._p_service_contract as u where u.service_id = object_id;
      delete from parley._p_priority as p where p.local_service_id = object_id;
      delete from parley._p_service as s where s.service_id = object_id;
    when error_number in (9706, 9707) then
      update parley._p_queue as q set is_activation_enabled = false, modify_date = now() where q.queue_id = object_id;
    when error_number = 9713 then
      update parley._p_message_type as t
      set validation_schema = null, validation_name = null, validation_setter = null, validation_owner = null,
        validation = case t.validation when 'F' then 'N' else t.validation end
      where t.message_type_id = object_id;
    when error_number in (9607, 9608) then
      delete from parley._p_priority as p where p.priority_id = object_id;
    when error_number = 208 then
      if to_regnamespace('parley_queue') is null then
        create schema parley_queue;
        grant usage on schema parley_queue to public;
      end if;
      perform parley._p_create_queue_view(object_id::integer);
    when object_kind = 'conversation' then
      perform parley._p_drop_endpoint(object_id);
    when object_kind = 'conversation group' then
      -- A session that holds it may be about to begin a dialog in it.
      perform from parley._p_conversation_group as g where g.group_id = object_id for update skip locked;
      if found then
        perform parley._p_drop_endpoint(e.endpoint_id) from parley._p_endpoint as e where e.group_id = object_id;
        delete from parley._p_conversation_group as g where g.group_id = object_id;
      end if;
    when object_kind = 'queue' then
      delete from parley._p_message as m
      where parley._p_owner_of_lane(m.lane) = object_id
        and case error_number
          when 9705 then not exists (select from parley._p_endpoint as e where e.endpoint_id = m.endpoint_id)
          when 9709
            then not exists (select from parley._p_message_type as t where t.message_type_id = abs(m.message_type_id))
          else exists (
            select
            from parley._p_endpoint as e
            join parley._p_service as s using (service_id)
            where e.endpoint_id = m.endpoint_id and s.queue_id <> object_id
          )
        end;
    when error_number = 9711 then
      delete from parley._p_transmission as t
      where not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id);
      delete from parley._p_transit as t
      where not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id);
  end case;
end
$$;

comment on function parley._p_repair(integer, text, bigint) is 'Repairs one thing that the check has found.';

create function parley._p_drop_endpoint(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  perform parley._p_discard_messages(endpoint_id);
  delete from parley._p_receive_progress as p where p.endpoint_id = $1;
  delete from parley._p_transmission as t where t.endpoint_id = $1;
  perform parley._p_forget_far_side($1);
  delete from parley._p_endpoint as e where e.endpoint_id = $1 returning * into v_endpoint;
  delete from parley._p_conversation_group as g
  where g.group_id = v_endpoint.group_id
    and not exists (select from parley._p_endpoint as e where e.group_id = g.group_id);
  perform parley._p_break_conversations(array[e.endpoint_id], parley._p_error_of(8462, 'damaged'))
  from parley._p_endpoint as e
  where e.far_endpoint_id = $1;
end
$$;

comment on function parley._p_drop_endpoint(bigint) is
'Drops a side of a conversation that is damaged, and informs the far side, with error -8462.';
