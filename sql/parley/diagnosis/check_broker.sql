-- The consistency check of spec 9.2: does everything refer to something that exists?
--
-- Constraints keep most of this from ever happening. It happens all the same: after a restore of parts, after
-- repairs by hand, after roles and procedures were dropped, which know nothing of us. Definitions are few and are
-- checked by diagnosis too; contents are every row there is. Each check is one statement, so what others do
-- meanwhile is seen as a whole or not at all.

create function parley._p_check_definitions()
returns table (error_number integer, object_kind text, object_id bigint, object_name text, finding text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 9677, 'contract', c.service_contract_id::bigint, c.name::text,
    format('Its message type %s does not exist.', u.message_type_id)
  from parley._p_contract_message_type as u
  join parley._p_contract as c using (service_contract_id)
  where not exists (select from parley._p_message_type as t where t.message_type_id = u.message_type_id)
  union all
  select 9678, 'service', s.service_id, s.name, format('Its contract %s does not exist.', u.service_contract_id)
  from parley._p_service_contract as u
  join parley._p_service as s using (service_id)
  where not exists (select from parley._p_contract as c where c.service_contract_id = u.service_contract_id)
  union all
  select 9679, 'service', s.service_id, s.name, format('Its queue %s does not exist.', s.queue_id)
  from parley._p_service as s
  where not exists (select from parley._p_queue as q where q.queue_id = s.queue_id)
  union all
  select case when a.procedure_call is null then 9706 else 9707 end, 'queue', a.queue_id, a.name,
    case
      when a.procedure_call is null then format('Its activation procedure %s does not exist.', a.procedure_name)
      else 'Its activation user does not exist.'
    end
  from parley._p_activated_queues() as a
  where a.kind = 'procedure' and (a.procedure_call is null or a.execute_as is null)
  union all
  select 9713, 'message type', t.message_type_id, t.name,
    'Its validation function does not exist, or is another role''s by now: every message of this type fails.'
  from parley._p_message_type as t
  where t.validation_name is not null
    and parley._p_is_own_validation(
      t, parley._p_validation_function(t.validation_schema, t.validation_name)
    ) is not true
  union all
  select 9607, 'priority', p.priority_id, p.name, format('Its service %s does not exist.', p.local_service_id)
  from parley._p_priority as p
  where p.local_service_id is not null
    and not exists (select from parley._p_service as s where s.service_id = p.local_service_id)
  union all
  select 9608, 'priority', p.priority_id, p.name, format('Its contract %s does not exist.', p.service_contract_id)
  from parley._p_priority as p
  where p.service_contract_id is not null
    and not exists (select from parley._p_contract as c where c.service_contract_id = p.service_contract_id)
  union all
  select 208, 'queue', q.queue_id, q.lookup_name, 'It has no view in schema parley_queue.'
  from parley._p_queue as q
  where not exists (
    select
    from pg_class as c
    where c.relnamespace = to_regnamespace('parley_queue')
      and c.relname = parley._p_queue_view_name(q.queue_id)
      and c.relkind = 'v'
  )
$$;

comment on function parley._p_check_definitions() is
'Finds definitions that refer to something that does not exist. Source: spec 9.2.';

create function parley._p_check_contents()
returns table (error_number integer, object_kind text, object_id bigint, object_name text, finding text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select f.error_number, 'conversation', e.endpoint_id, e.conversation_handle::text, f.finding
  from parley._p_endpoint as e
  left join parley._p_conversation_group as g using (group_id)
  left join parley._p_service as s on s.service_id = e.service_id
  left join parley._p_endpoint as o on o.endpoint_id = e.far_endpoint_id
  cross join lateral (
    select 8443 as error_number, 'Its conversation group does not exist.' as finding where g.group_id is null
    union all
    select 9681, 'Its contract does not exist.'
    where not exists (select from parley._p_contract as c where c.service_contract_id = e.service_contract_id)
    union all
    select 9682, 'Its service does not exist.' where s.service_id is null and e.state <> 'DO'
    union all
    select 9710, 'Its conversation group belongs to another queue.'
    from parley._p_service as r
    where r.service_id = g.service_id and r.queue_id <> s.queue_id
    union all
    select 8445, 'Its far side belongs to another conversation.'
    where o.endpoint_id is not null
      and (
        o.conversation_id, not o.is_initiator, o.far_endpoint_id
      ) is distinct from (e.conversation_id, e.is_initiator, e.endpoint_id)
    union all
    select 9715, 'Its state is inconsistent: it has sent nothing, but has a far side.'
    where e.state = 'SO' and e.far_endpoint_id is not null
    union all
    select 9715, 'Its state is inconsistent: it is bound to a destination that does not exist.'
    where e.destination_id is not null
      and not exists (select from parley._p_destination as d where d.destination_id = e.destination_id)
  ) as f
  union all
  select case when s.service_id is null then 9683 else 9716 end, 'conversation group', g.group_id,
    g.conversation_group_id::text,
    case when s.service_id is null then 'Its service does not exist.' else 'No conversation is in it.' end
  from parley._p_conversation_group as g
  left join parley._p_service as s using (service_id)
  where not exists (select from parley._p_endpoint as e where e.group_id = g.group_id)
    or s.service_id is null
    and exists (select from parley._p_endpoint as e where e.group_id = g.group_id and e.state <> 'DO')
  union all
  select f.error_number, 'queue', parley._p_owner_of_lane(m.lane), coalesce(q.lookup_name, 'lane ' || m.lane),
    format('%s messages in it are of %s.', count(*), f.finding)
  from parley._p_message as m
  left join parley._p_queue as q on q.queue_id = parley._p_owner_of_lane(m.lane)
  left join parley._p_endpoint as e on e.endpoint_id = abs(m.endpoint_id)
  left join parley._p_service as s on s.service_id = e.service_id
  cross join lateral (
    select 9705 as error_number, 'conversations that do not exist' as finding
    where (e.endpoint_id is null or m.endpoint_id < 0 and q.queue_id is not null) and q.is_simple is not true
    union all
    select 9709, 'message types that do not exist'
    where not exists (select from parley._p_message_type as t where t.message_type_id = abs(m.message_type_id))
    union all
    select 8444, 'services on other queues' where s.queue_id <> parley._p_owner_of_lane(m.lane) and m.endpoint_id > 0
  ) as f
  group by f.error_number, f.finding, parley._p_owner_of_lane(m.lane), q.lookup_name,
    coalesce(q.lookup_name, 'lane ' || m.lane)
  union all
  select 9711, 'transmission queue', null, 'transmission queue',
    format('%s messages in it are of conversations that do not exist.', count(*))
  from (
    select w.endpoint_id from parley._p_transmission as w union all select r.endpoint_id from parley._p_transit as r
  ) as t
  where not exists (select from parley._p_endpoint as e where e.endpoint_id = t.endpoint_id)
  having count(*) > 0
$$;

comment on function parley._p_check_contents() is
'Finds conversations, groups and messages that refer to something that does not exist. Source: spec 9.2.';
