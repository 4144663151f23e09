-- Event notifications: subscriptions of a service to what happens to a queue,
-- QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED.
--
-- Each notification has a conversation of its own, from the built-in EventNotificationService, begun when the
-- notification is created and open until it is dropped. The receiver must not end it: a conversation that is over takes
-- its notification with it. activation/event_messages.sql says which message is sent when.
-- Locks: the queue's row, then those of the notification's conversation, as END CONVERSATION takes them.

create table parley._p_event_notification (
  notification_id integer primary key,
  queue_id integer not null references parley._p_queue,
  name text collate "C" not null,
  owner parley._p_role_oid not null,
  event text not null check (event in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED')),
  is_fan_in boolean not null,
  to_service text collate "C" not null,
  broker_instance text,
  conversation_handle uuid not null,
  -- Whether it was notified that the queue is disabled now: each disabling is notified once.
  is_reported boolean not null default false,
  create_date timestamptz not null default now(),
  unique (queue_id, name)
);

comment on table parley._p_event_notification is 'Event notifications (spec 2.10).';

create trigger _p_number_roles after insert or update of owner on parley._p_event_notification
for each row execute function parley._p_number_roles('owner');

create function parley._p_notifies_activation(queue_id integer) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from parley._p_event_notification as n where n.queue_id = $1 and n.event = 'QUEUE_ACTIVATION')
$$;

comment on function parley._p_notifies_activation(integer) is
'Reports whether a queue has a QUEUE_ACTIVATION event notification.';

create function parley._p_require_event_service(caller oid, to_service text, broker_instance text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_service parley._p_service;
begin
  if to_service is null or to_service = '' then
    found := parley._p_raise(8421, 'notified service');
  elsif broker_instance is distinct from (select b.service_broker_guid::text from parley._p_broker as b) then
    -- Of another database nothing is known: the broker there refuses, or takes it.
    return true;
  end if;
  select * into v_service from parley._p_service as s where s.name = to_service;
  if not found then
    found := parley._p_raise(
      15151, 'object', 'service', to_service, parley._p_did_you_mean(caller, 'service', to_service), 'services'
    );
  elsif not exists (
    select from parley._p_service_contract as u where u.service_id = v_service.service_id and u.service_contract_id = 2
  ) then
    found := parley._p_raise(8408, 'notifications', to_service);
  end if;
  return true;
end
$$;

comment on function parley._p_require_event_service(oid, text, text) is
'Refuses a service of this database that cannot be notified.
Errors: 8408 it does not accept the contract, 8421 missing, 15151 not found.';

create function parley.create_event_notification(
  name text,
  queue text,
  event text,
  to_service text,
  broker_instance text default 'current database',
  fan_in boolean default false,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
  v_event text := upper(event collate "C");
  v_instance text := parley._p_broker_instance(broker_instance);
  v_id integer;
begin
  name := parley._p_name('event notification', name);
  if v_event is null or v_event not in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED') then
    found := parley._p_raise(8402, 'event', event);
  end if;
  found := parley._p_require_event_service(v_caller, to_service, v_instance);
  if v_event = 'QUEUE_ACTIVATION' then
    found := parley._p_require_sole_activator(v_queue.queue_id, 'event');
  end if;
  perform from parley._p_queue as q where q.queue_id = v_queue.queue_id for no key update;
  if exists (
    select from parley._p_event_notification as n
    where n.queue_id = v_queue.queue_id and n.name = create_event_notification.name
  ) then
    found := parley._p_raise(2714, 'event notification', v_queue.lookup_name, name);
  end if;
  v_id := nextval('parley._p_object_id');
  insert into parley._p_event_notification (
    notification_id, queue_id, name, owner, event, is_fan_in, to_service, broker_instance, conversation_handle
  )
  values (
    v_id, v_queue.queue_id, create_event_notification.name, v_caller, v_event, coalesce(fan_in, false),
    create_event_notification.to_service, v_instance, parley._p_begin_notices(to_service, v_instance)
  );
  return v_id;
end
$$;

comment on function parley.create_event_notification(text, text, text, text, text, boolean, parley.caller) is
'Sends a service a message when something happens to a queue, and returns the id of the notification.
Arguments: name, one for each queue; queue; event, QUEUE_ACTIVATION (messages wait that nobody receives) or
BROKER_QUEUE_DISABLED (by poison message handling); to_service, which must accept the contract
http://schemas.microsoft.com/SQL/Notifications/PostEventNotification; broker_instance, the id of its database, ''current
database'', or null for any; fan_in, whether notifications alike, of one owner to one service, are sent as one message.
The conversation stays open; when the receiver ends it, or it breaks, the notification is dropped.
Errors: 208 no such queue, 229 not allowed, 2714 exists, 8402 unknown event, 8408 contract not accepted, 8413
malformed broker_instance, 8421 to_service missing, 9609 bad name, 9663 system object, 9718 the queue has another
activation, 15151 service not found.
Source: spec 2.10.';

create function parley.drop_event_notification(
  name text, queue text,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue);
  v_notification parley._p_event_notification;
begin
  select * into v_notification
  from parley._p_event_notification as n
  where n.queue_id = v_queue.queue_id and n.name = drop_event_notification.name;
  if v_notification.notification_id is null or pg_has_role(v_caller, v_notification.owner, 'usage') is not true then
    v_queue := parley._p_find_queue(v_caller, queue, 'ALTER');
  end if;
  if v_notification.notification_id is null then
    found := parley._p_raise(15151, 'event notification', v_queue.lookup_name, name);
  end if;
  perform parley._p_drop_event_notifications(array[v_notification.notification_id]);
end
$$;

comment on function parley.drop_event_notification(text, text, parley.caller) is
'Drops an event notification of a queue and ends its conversation. Its owner may, and whoever may ALTER the queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 15151 not found.
Source: spec 2.10.';

create function parley._p_drop_event_notifications(notifications integer[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_handle uuid;
  v_endpoint parley._p_endpoint;
begin
  for v_handle in
    delete from parley._p_event_notification as n
    where n.notification_id = any (notifications)
    returning n.conversation_handle
  loop
    if exists (select from parley._p_endpoint as e where e.conversation_handle = v_handle) then
      v_endpoint := parley._p_lock_to_end(v_handle);
      if v_endpoint.state <> 'DO' then
        found := parley._p_end_side(v_endpoint, 2, null);
      end if;
    end if;
  end loop;
end
$$;

comment on function parley._p_drop_event_notifications(integer[]) is
'Drops event notifications and ends their conversations.';
