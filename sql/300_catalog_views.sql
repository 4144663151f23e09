-- The catalog under Service Broker's own names and columns (spec 8.1).

create view parley.databases as
select current_database() as name, d.oid as database_id, b.service_broker_guid, b.is_broker_enabled,
  b.is_priority_honored as is_honor_broker_priority_on,
  parley._p_broker_state() as broker_state, b.disabled_at
from parley._p_broker as b
join pg_catalog.pg_database as d on d.datname = current_database();

comment on view parley.databases is
'This database as a broker instance: its id, whether it is enabled, and whether it is where it was. The last two columns are ours.';

create view parley.service_message_types as
select
  t.name,
  t.message_type_id,
  t.owner::oid as principal_id,
  t.validation::text as validation,
  case t.validation when 'N' then 'NONE' when 'E' then 'EMPTY' when 'X' then 'XML' when 'J' then 'JSON' when 'F' then 'FUNCTION' end as validation_desc,
  null::integer as xml_collection_id,
  t.validation_function
from parley._p_message_type as t;

comment on view parley.service_message_types is 'Message types. principal_id is the oid of the owner; validation_function is ours.';

create view parley.service_contracts as
select c.name, c.service_contract_id, c.owner::oid as principal_id
from parley._p_contract as c;

comment on view parley.service_contracts is 'Contracts.';

create view parley.service_contract_message_usages as
select u.service_contract_id, u.message_type_id, u.is_sent_by_initiator, u.is_sent_by_target
from parley._p_contract_message_type as u;

comment on view parley.service_contract_message_usages is 'Which message types each contract has and who may send them.';

create view parley.services as
select s.name, s.service_id, s.owner::oid as principal_id, s.queue_id as service_queue_id
from parley._p_service as s;

comment on view parley.services is 'Services.';

create view parley.service_contract_usages as
select u.service_id, u.service_contract_id
from parley._p_service_contract as u;

comment on view parley.service_contract_usages is 'Which contracts each service accepts as target.';

create view parley.service_queue_usages as
select s.service_id, s.queue_id as service_queue_id
from parley._p_service as s;

comment on view parley.service_queue_usages is 'Which queue each service is bound to.';

create view parley.service_queues as
select
  q.name,
  q.queue_id as object_id,
  q.owner::oid as principal_id,
  q.schema_name,
  0 as parent_object_id,
  'SQ'::text as type,
  'SERVICE_QUEUE'::text as type_desc,
  q.create_date,
  q.modify_date,
  q.queue_id < 65536 as is_ms_shipped,
  false as is_published,
  false as is_schema_published,
  q.max_readers,
  q.activation_procedure,
  case q.execute_as
    when 'OWNER' then -2
    else (select r.oid::bigint from pg_catalog.pg_roles as r where pg_catalog.quote_ident(r.rolname) = q.execute_as or r.rolname = q.execute_as limit 1)
  end as execute_as_principal_id,
  q.is_activation_enabled,
  q.is_receive_enabled and not parley._p_is_poisoned(q.queue_id) as is_receive_enabled,
  q.is_enqueue_enabled,
  q.is_retention_enabled,
  q.is_poison_message_handling_enabled,
  q.poison_action,
  q.rollbacks_before_disable as poison_rollbacks,
  parley._p_count_set_aside(q.queue_id) as set_aside_conversations
from parley._p_queue as q;

comment on view parley.service_queues is
'Queues. is_receive_enabled is false too when poison message handling has disabled the queue. The last three columns are ours.';

create view parley.conversation_priorities as
select
  p.priority_id, p.name, p.service_contract_id, p.local_service_id, p.remote_service_name, p.priority
from parley._p_priority as p;

comment on view parley.conversation_priorities is 'Broker priorities; null means ANY.';

create view parley.permissions as
select
  p.class,
  p.object_id,
  coalesce(t.name, c.name, q.lookup_name, s.name, r.name) as object_name,
  p.permission,
  case p.grantee::oid when 0 then 'PUBLIC' else pg_catalog.pg_get_userbyid(p.grantee)::text end as grantee,
  pg_catalog.pg_get_userbyid(p.grantor)::text as grantor,
  p.is_grantable
from parley._p_permission as p
left join parley._p_message_type as t on p.class = 'message type' and t.message_type_id = p.object_id
left join parley._p_contract as c on p.class = 'contract' and c.service_contract_id = p.object_id
left join parley._p_queue as q on p.class = 'queue' and q.queue_id = p.object_id
left join parley._p_service as s on p.class = 'service' and s.service_id = p.object_id
left join parley._p_route as r on p.class = 'route' and r.route_id = p.object_id;

comment on view parley.permissions is 'What was granted to whom, besides the rights of owners and administrators.';
