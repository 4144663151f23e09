-- The catalog under Service Broker's own names and columns (spec 8.1). base/visible_objects.sql decides which role sees
-- which row.
--
-- The names are Service Broker's, and so are the meanings; a column whose subject this broker does not have keeps its
-- place with the value that Service Broker gives to a conversation without it.

create view parley.databases as
select current_database() as name, d.oid as database_id, b.service_broker_guid, b.is_broker_enabled,
  b.is_priority_honored as is_honor_broker_priority_on, false as is_trustworthy_on,
  false as is_master_key_encrypted_by_server, parley._p_broker_state() as broker_state, b.disabled_at,
  b.abandoned_seconds as abandoned_target_seconds
from parley._p_broker as b
join pg_catalog.pg_database as d on d.datname = current_database();

comment on view parley.databases is
'This database as a broker instance: its id, whether it is enabled, and whether it is where it was.
The last six columns are ours.';
comment on column parley.databases.name is 'This database.';
comment on column parley.databases.database_id is 'Its oid.';
comment on column parley.databases.service_broker_guid is
'Its identity as a broker instance, which BEGIN DIALOG may name.';
comment on column parley.databases.is_broker_enabled is 'Whether the broker is enabled.';
comment on column parley.databases.is_honor_broker_priority_on is
'Whether priorities also order what leaves the database (parley.honor_broker_priority).';
comment on column parley.databases.broker_state is
'ENABLED, DISABLED, or ELSEWHERE: this is not the database in which the broker was enabled last
(parley.attach_broker).';
comment on column parley.databases.disabled_at is 'Since when the broker is disabled; null while it is enabled.';
comment on column parley.databases.abandoned_target_seconds is
'After how long a target ends by itself whose initiator has ended and that has nothing left to
read (parley.end_abandoned_after).';
comment on column parley.databases.is_trustworthy_on is 'Always false: rights are those of roles.';
comment on column parley.databases.is_master_key_encrypted_by_server is
'Always false: the master key is a file of the daemon.';

create view parley.service_message_types with (security_barrier) as
select
  t.name,
  t.message_type_id,
  t.owner::oid as principal_id,
  t.validation::text as validation,
  case t.validation
    when 'N' then 'NONE'
    when 'E' then 'EMPTY'
    when 'X' then 'XML'
    when 'J' then 'JSON'
    when 'F' then 'FUNCTION'
  end as validation_desc,
  null::integer as xml_collection_id,
  case
    when t.validation_name is not null then
      pg_catalog.format('%I.%I(bytea)', t.validation_schema, t.validation_name)
  end as validation_function
from parley._p_message_type as t
where t.message_type_id < 65536
  or pg_catalog.pg_has_role(t.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'message type')
  or t.message_type_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'message type');

comment on view parley.service_message_types is
'Message types. principal_id is the oid of the owner; validation_function is ours.';
comment on column parley.service_message_types.name is 'Compared byte by byte.';
comment on column parley.service_message_types.message_type_id is 'Below 65536 when built in.';
comment on column parley.service_message_types.principal_id is 'Oid of the owner.';
comment on column parley.service_message_types.validation is
'The demand on a body: N anything, E nothing, X XML, J JSON, F what validation_function says.';
comment on column parley.service_message_types.validation_desc is 'NONE, EMPTY, XML, JSON or FUNCTION.';
comment on column parley.service_message_types.xml_collection_id is
'Always null: PostgreSQL has no XML schema collections.';
comment on column parley.service_message_types.validation_function is
'Function that says whether a body is good, or null.';

create view parley.message_type_xml_schema_collection_usages with (security_barrier) as
select t.message_type_id, t.xml_collection_id
from parley.service_message_types as t
where t.xml_collection_id is not null;

comment on view parley.message_type_xml_schema_collection_usages is
'Which XML schema collection each message type is validated by: none, PostgreSQL has no such collections. See
validation_function of service_message_types.';
comment on column parley.message_type_xml_schema_collection_usages.message_type_id is 'Message type.';
comment on column parley.message_type_xml_schema_collection_usages.xml_collection_id is 'Its XML schema collection.';

create view parley.service_contracts with (security_barrier) as
select c.name, c.service_contract_id, c.owner::oid as principal_id
from parley._p_contract as c
where c.service_contract_id < 65536
  or pg_catalog.pg_has_role(c.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'contract')
  or c.service_contract_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'contract');

comment on view parley.service_contracts is 'Contracts.';
comment on column parley.service_contracts.name is 'Compared byte by byte.';
comment on column parley.service_contracts.service_contract_id is 'Below 65536 when built in.';
comment on column parley.service_contracts.principal_id is 'Oid of the owner.';

create view parley.service_contract_message_usages with (security_barrier) as
select u.service_contract_id, u.message_type_id, u.is_sent_by_initiator, u.is_sent_by_target
from parley._p_contract_message_type as u
join parley.service_contracts as c using (service_contract_id);

comment on view parley.service_contract_message_usages is
'Which message types each contract has and who may send them.';
comment on column parley.service_contract_message_usages.service_contract_id is 'Contract.';
comment on column parley.service_contract_message_usages.message_type_id is 'Message type that is part of it.';
comment on column parley.service_contract_message_usages.is_sent_by_initiator is 'Whether the initiator may send it.';
comment on column parley.service_contract_message_usages.is_sent_by_target is
'Whether the target may send it; both is SENT BY ANY.';

create view parley.services with (security_barrier) as
select s.name, s.service_id, s.owner::oid as principal_id, s.queue_id as service_queue_id,
  s.deduplication_seconds
from parley._p_service as s
where s.service_id < 65536
  or pg_catalog.pg_has_role(s.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'service')
  or s.service_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'service');

comment on view parley.services is 'Services.';
comment on column parley.services.name is 'Compared byte by byte.';
comment on column parley.services.service_id is 'Below 65536 when built in.';
comment on column parley.services.principal_id is 'Oid of the owner.';
comment on column parley.services.service_queue_id is 'Queue that its messages arrive in.';
comment on column parley.services.deduplication_seconds is
'For how long a deduplication key that is used as it counts.';

create view parley.service_contract_usages with (security_barrier) as
select u.service_id, u.service_contract_id
from parley._p_service_contract as u
join parley.services as s using (service_id);

comment on view parley.service_contract_usages is 'Which contracts each service accepts as target.';
comment on column parley.service_contract_usages.service_id is 'Service.';
comment on column parley.service_contract_usages.service_contract_id is 'Contract that it accepts as target.';

create view parley.service_queue_usages with (security_barrier) as
select s.service_id, s.service_queue_id
from parley.services as s;

comment on view parley.service_queue_usages is 'Which queue each service is bound to.';
comment on column parley.service_queue_usages.service_id is 'Service.';
comment on column parley.service_queue_usages.service_queue_id is 'Queue that it is bound to.';

create view parley.service_queues with (security_barrier) as
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
    else (
      select r.oid::bigint
      from pg_catalog.pg_roles as r
      where q.execute_as = any (array[
        r.rolname::text, pg_catalog.quote_ident(r.rolname),
        pg_catalog.format('"%s"', pg_catalog.replace(r.rolname::text, '"', '""'))
      ])
      limit 1
    )
  end as execute_as_principal_id,
  q.is_activation_enabled,
  q.is_receive_enabled and not parley._p_sees_poisoned(q.queue_id) as is_receive_enabled,
  q.is_enqueue_enabled,
  q.is_retention_enabled,
  q.is_poison_message_handling_enabled,
  q.poison_action,
  q.rollbacks_before_disable as poison_rollbacks,
  q.deduplication_seconds,
  parley._p_sees_set_aside(q.queue_id) as set_aside_conversations,
  q.readers_paused_at,
  q.quota_messages,
  q.quota_bytes
from parley._p_queue as q
where q.queue_id < 65536
  or pg_catalog.pg_has_role(q.owner, 'usage')
  or exists (select from parley._p_visible_class as v where v.class = 'queue')
  or q.queue_id in (select v.object_id from parley._p_permitted_object as v where v.class = 'queue');

comment on view parley.service_queues is
'Queues. is_receive_enabled is false too when poison message handling has disabled the queue.
The last three columns are ours.';
comment on column parley.service_queues.name is 'Name without its schema.';
comment on column parley.service_queues.object_id is 'Identity of the queue; below 65536 when built in.';
comment on column parley.service_queues.principal_id is 'Oid of the owner.';
comment on column parley.service_queues.schema_name is
'Schema of the queue, a part of its name only; dbo may be left out.';
comment on column parley.service_queues.parent_object_id is 'Always 0.';
comment on column parley.service_queues.type is 'Always SQ.';
comment on column parley.service_queues.type_desc is 'Always SERVICE_QUEUE.';
comment on column parley.service_queues.create_date is 'When it was created.';
comment on column parley.service_queues.modify_date is 'When its settings were changed last.';
comment on column parley.service_queues.is_ms_shipped is 'Whether it is the broker''s own.';
comment on column parley.service_queues.is_published is 'Always false.';
comment on column parley.service_queues.is_schema_published is 'Always false.';
comment on column parley.service_queues.max_readers is 'MAX_QUEUE_READERS of activation.';
comment on column parley.service_queues.activation_procedure is 'Procedure that activation runs, or null.';
comment on column parley.service_queues.execute_as_principal_id is
'Oid of the role that activation runs as; -2 is the owner of the queue.';
comment on column parley.service_queues.is_activation_enabled is 'Whether activation is on.';
comment on column parley.service_queues.is_receive_enabled is 'Whether messages can be received.';
comment on column parley.service_queues.is_enqueue_enabled is 'Whether messages can arrive.';
comment on column parley.service_queues.is_retention_enabled is 'Whether copies are kept until the conversation ends.';
comment on column parley.service_queues.is_poison_message_handling_enabled is
'Whether rollbacks of a message are counted.';
comment on column parley.service_queues.poison_action is
'The fate of a message that has come back too often: SET_ASIDE or DISABLE_QUEUE.';
comment on column parley.service_queues.poison_rollbacks is 'How often is too often.';
comment on column parley.service_queues.deduplication_seconds is
'For how long a deduplication key of parley.put counts, in a simple queue.';
comment on column parley.service_queues.quota_messages is 'How many messages it may hold; null for any number.';
comment on column parley.service_queues.quota_bytes is
'How many bytes of bodies it may hold (parley.set_queue_quota); null for any number.';
comment on column parley.service_queues.readers_paused_at is
'Since when its readers are paused (parley.pause_readers); null when they are not.';
comment on column parley.service_queues.set_aside_conversations is
'Conversations that are set aside, counted up to 10,000: see parley.poison_conversations.';

create view parley.conversation_priorities with (security_barrier) as
select
  p.priority_id, p.name, p.service_contract_id, p.local_service_id, p.remote_service_name, p.priority
from parley._p_priority as p
where exists (select from parley._p_visible_class as v where v.class = 'database');

comment on view parley.conversation_priorities is 'Broker priorities; null means ANY.';
comment on column parley.conversation_priorities.priority_id is 'Identity of the priority.';
comment on column parley.conversation_priorities.name is 'Its name.';
comment on column parley.conversation_priorities.service_contract_id is 'Contract it is for, or null for ANY.';
comment on column parley.conversation_priorities.local_service_id is 'Service on this side, or null for ANY.';
comment on column parley.conversation_priorities.remote_service_name is 'Service on the other side, or null for ANY.';
comment on column parley.conversation_priorities.priority is 'Level that a new endpoint gets: 1 (low) to 10 (high).';

create view parley.permissions with (security_barrier) as
select
  p.class,
  p.object_id,
  o.name as object_name,
  p.permission,
  case p.grantee::oid when 0 then 'PUBLIC' else pg_catalog.pg_get_userbyid(p.grantee)::text end as grantee,
  pg_catalog.pg_get_userbyid(p.grantor)::text as grantor,
  p.is_grantable
from parley._p_permission as p
left join parley._p_named_object as o on o.class = p.class and o.object_id = p.object_id
where p.grantee::oid = 0::oid
  or pg_catalog.pg_has_role(p.grantee, 'usage')
  or pg_catalog.pg_has_role(p.grantor, 'usage')
  or pg_catalog.pg_has_role(o.owner, 'usage')
  or p.class in (select v.class from parley._p_visible_class as v)
  or (p.class, p.object_id) in (
    select v.class, v.object_id
    from parley._p_permitted_object as v
    where v.permission in ('CONTROL', 'ALTER', 'VIEW DEFINITION')
  );

comment on view parley.permissions is
'The permissions that were granted, besides the rights of owners and administrators: those that you hold or have
granted, and all that were granted on objects that you own, control, may alter, or whose definition you may view.';
comment on column parley.permissions.class is
'The kind of its object: database, message type, contract, queue, service or route.';
comment on column parley.permissions.object_id is 'Identity of the object; 0 for the database.';
comment on column parley.permissions.object_name is 'Name of the object; null for the database.';
comment on column parley.permissions.permission is 'Such as SEND or RECEIVE.';
comment on column parley.permissions.grantee is 'Role that holds it, or PUBLIC.';
comment on column parley.permissions.grantor is 'Role that granted it.';
comment on column parley.permissions.is_grantable is 'Whether the grantee may grant it on.';
