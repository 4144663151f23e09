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
comment on column parley.event_notifications.name is 'Name, one for each queue.';
comment on column parley.event_notifications.object_id is 'Identity of the notification.';
comment on column parley.event_notifications.parent_class is 'Always 1.';
comment on column parley.event_notifications.parent_class_desc is 'Always OBJECT_OR_COLUMN.';
comment on column parley.event_notifications.parent_id is 'Identity of the queue.';
comment on column parley.event_notifications.create_date is 'When it was created.';
comment on column parley.event_notifications.modify_date is 'The same: a notification is never altered.';
comment on column parley.event_notifications.is_ms_shipped is 'Always false.';
comment on column parley.event_notifications.service_name is 'Service that is notified.';
comment on column parley.event_notifications.broker_instance is 'Its database, or null for any.';
comment on column parley.event_notifications.creator_sid is 'Always null: roles have no sid.';
comment on column parley.event_notifications.principal_id is 'Oid of the owner.';
comment on column parley.event_notifications.type_desc is 'QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED.';
comment on column parley.event_notifications.is_fan_in is 'Whether it shares its messages with others like it.';
comment on column parley.event_notifications.conversation_handle is 'Conversation that the messages are sent on.';
comment on column parley.event_notifications.queue_name is 'Queue, as statements take it.';

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
comment on column parley.events.object_id is 'Identity of the event notification.';
comment on column parley.events.type is '160 or 173.';
comment on column parley.events.type_desc is 'BROKER_QUEUE_DISABLED or QUEUE_ACTIVATION.';
comment on column parley.events.is_trigger_event is 'Always false.';
comment on column parley.events.event_group_type is 'Always null: a notification is of one event.';
comment on column parley.events.event_group_type_desc is 'Always null.';

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
comment on column parley.server_event_notifications.name is 'Name.';
comment on column parley.server_event_notifications.object_id is 'Identity of the notification.';
comment on column parley.server_event_notifications.parent_class is '100.';
comment on column parley.server_event_notifications.parent_class_desc is 'SERVER.';
comment on column parley.server_event_notifications.parent_id is '0.';
comment on column parley.server_event_notifications.create_date is 'When it was created.';
comment on column parley.server_event_notifications.modify_date is 'The same.';
comment on column parley.server_event_notifications.service_name is 'Service that is notified.';
comment on column parley.server_event_notifications.broker_instance is 'Its database, or null for any.';
comment on column parley.server_event_notifications.creator_sid is 'Null: roles have no sid.';
comment on column parley.server_event_notifications.principal_id is 'Oid of the owner.';
