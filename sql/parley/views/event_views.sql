-- The catalog of event notifications (spec 8.1).

create view parley.event_notifications with (security_barrier) as
select
  n.name,
  n.notification_id as object_id,
  1::smallint as parent_class,
  'OBJECT_OR_COLUMN'::text as parent_class_desc,
  n.queue_id as parent_id,
  n.create_date,
  n.create_date as modify_date,
  false as is_ms_shipped,
  n.to_service as service_name,
  n.broker_instance,
  null::bytea as creator_sid,
  n.owner::oid as principal_id,
  n.event as type_desc,
  n.is_fan_in,
  n.conversation_handle,
  q.lookup_name as queue_name
from parley._p_event_notification as n
join parley._p_queue as q using (queue_id)
where pg_catalog.pg_has_role(n.owner, 'usage')
  or n.queue_id in (select v.object_id from parley.service_queues as v);

comment on view parley.event_notifications is
'Event notifications; their events are in parley.events too. The last four columns are ours.';

create view parley.events with (security_barrier) as
select
  n.object_id,
  case n.type_desc when 'BROKER_QUEUE_DISABLED' then 160 when 'QUEUE_ACTIVATION' then 173 end as type,
  n.type_desc,
  false as is_trigger_event,
  null::integer as event_group_type,
  null::text as event_group_type_desc
from parley.event_notifications as n;

comment on view parley.events is
'The events of event notifications, a row for each notification: it has one event here.';

create view parley.server_event_notifications with (security_barrier) as
select
  n.name,
  n.object_id,
  100::smallint as parent_class,
  'SERVER'::text as parent_class_desc,
  0 as parent_id,
  n.create_date,
  n.modify_date,
  n.service_name,
  n.broker_instance,
  n.creator_sid,
  n.principal_id
from parley.event_notifications as n
where n.parent_class = 100;

comment on view parley.server_event_notifications is
'Event notifications of the server: none, those of a database belong to queues.';
