-- The messages of event notifications: when they are sent, and what is in them.
--
-- A failure to notify is a warning in the log, never an error of the statement that caused the event (spec 2.10).
-- QUEUE_ACTIVATION is raised by the daemon, which knows when messages wait without a reader. BROKER_QUEUE_DISABLED
-- is noticed by fire_timers: the disabling itself happens outside of any transaction (poison/poison.sql), in a
-- session that is about to fail.

create function parley._p_event_body(caller oid, event text, queue parley._p_queue) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select convert_to(
    xmlelement(
      name "EVENT_INSTANCE",
      xmlelement(name "EventType", event),
      xmlelement(name "PostTime", to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS')),
      xmlelement(name "SPID", pg_backend_pid()),
      xmlelement(
        name "ServerName", coalesce(nullif(current_setting('cluster_name'), ''), host(inet_server_addr()), 'localhost')
      ),
      xmlelement(name "LoginName", session_user),
      xmlelement(name "UserName", pg_get_userbyid(caller)),
      xmlelement(name "DatabaseName", current_database()),
      xmlelement(name "SchemaName", queue.schema_name),
      xmlelement(name "ObjectName", queue.name),
      xmlelement(name "ObjectType", 'QUEUE')
    )::text,
    'UTF8'
  )
$$;

comment on function parley._p_event_body(oid, text, parley._p_queue) is
'Gives the body of an event notification, in UTF-8; times are UTC (spec 2.10).';

create function parley._p_post_events(caller oid, queue_id integer, event text) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue;
  v_type parley._p_message_type;
  v_notification record;
  v_posted integer := 0;
begin
  select * into v_queue from parley._p_queue as q where q.queue_id = _p_post_events.queue_id;
  select * into v_type from parley._p_message_type as t where t.message_type_id = 4;
  for v_notification in
    select n.notification_id, n.name, n.conversation_handle,
      n.is_fan_in and exists (
        select
        from parley._p_event_notification as o
        where o.queue_id = n.queue_id
          and o.event = n.event
          and o.is_fan_in
          and o.owner = n.owner
          and o.to_service = n.to_service
          and o.broker_instance is not distinct from n.broker_instance
          and o.notification_id < n.notification_id
      ) as is_merged
    from parley._p_event_notification as n
    where n.queue_id = v_queue.queue_id and n.event = _p_post_events.event
    order by n.notification_id
  loop
    continue when v_notification.is_merged;
    begin
      if parley._p_post_notice(
        v_notification.conversation_handle, v_type, parley._p_event_body(caller, event, v_queue)
      ) then
        v_posted := v_posted + 1;
      else
        perform parley._p_drop_event_notifications(array[v_notification.notification_id]);
        raise warning 'event notification "%" of queue "%" is dropped: its conversation is over', v_notification.name,
          v_queue.lookup_name;
      end if;
    exception
      when lock_not_available then
        -- A session that waits no longer tries again.
        raise;
      when others then
        raise warning 'event notification "%" of queue "%" failed: %', v_notification.name, v_queue.lookup_name,
          sqlerrm;
    end;
  end loop;
  return v_posted;
end
$$;

comment on function parley._p_post_events(oid, integer, text) is
'Sends an event of a queue to all who asked for it, and gives how many messages that were. Fails with a warning only.';

create function parley.notify_activation(
  queue text,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_queue parley._p_queue := parley._p_find_queue(v_caller, queue);
begin
  found := parley._p_require_administrator(v_caller, 'raising QUEUE_ACTIVATION');
  return parley._p_post_events(v_caller, v_queue.queue_id, 'QUEUE_ACTIVATION');
end
$$;

comment on function parley.notify_activation(text, parley.caller) is
'Raises QUEUE_ACTIVATION for a queue and returns how many messages were sent. For the daemon, when
messages wait that nobody receives.
Errors: 208 no such queue, 9609 malformed name, 15151 not an administrator.
Source: spec 2.10, 5.5.';

create function parley._p_notify_disabled_queues(caller oid, only_queues integer[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '30ms'
as $$
declare
  v_due record;
  v_posted integer := 0;
  v_over integer;
  v_dropped integer := 0;
  v_held integer := 0;
begin
  update parley._p_event_notification as n set is_reported = false
  where n.notification_id = any (array(
    select o.notification_id
    from parley._p_event_notification as o
    where o.is_reported
      and (only_queues is null or o.queue_id = any (only_queues))
      and not parley._p_is_poisoned(o.queue_id)
    for no key update skip locked
  ));
  for v_due in
    select n.queue_id, array_agg(n.notification_id order by n.notification_id) as notifications
    from parley._p_event_notification as n
    where n.event = 'BROKER_QUEUE_DISABLED'
      and not n.is_reported
      and (only_queues is null or n.queue_id = any (only_queues))
      and parley._p_is_poisoned(n.queue_id)
    group by n.queue_id
  loop
    -- Of two at once one sends it.
    perform
    from parley._p_event_notification as n
    where n.notification_id = any (v_due.notifications) and not n.is_reported
    order by n.notification_id
    for no key update skip locked;
    continue when not found;
    begin
      update parley._p_event_notification as n
      set is_reported = true
      where n.notification_id = any (v_due.notifications);
      v_posted := v_posted + parley._p_post_events(caller, v_due.queue_id, 'BROKER_QUEUE_DISABLED');
    exception
      when lock_not_available then
        -- Another session holds the conversation of the receiver: the next time.
        v_held := v_held + 1;
    end;
    exit when v_held >= 10;
  end loop;
  -- A conversation that is over takes its notification with it.
  foreach v_over in array array(
    select n.notification_id
    from parley._p_event_notification as n
    left join parley._p_endpoint as e using (conversation_handle)
    where (e.state is null or e.state not in ('SO', 'CO')) and (only_queues is null or n.queue_id = any (only_queues))
    -- So that ten that are held for long are not all that is ever tried.
    order by random()
    for update of n skip locked
  ) loop
    begin
      perform parley._p_drop_event_notifications(array[v_over]);
      v_dropped := v_dropped + 1;
    exception
      when lock_not_available then
        v_held := v_held + 1;
    end;
    exit when v_held >= 20;
  end loop;
  if v_dropped > 0 then
    raise warning '% event notifications are dropped: their conversations are over', v_dropped;
  end if;
  return v_posted;
end
$$;

comment on function parley._p_notify_disabled_queues(oid, integer[]) is
'Raises BROKER_QUEUE_DISABLED for queues that poison message handling has disabled, once for each time, and drops
notifications whose conversation is over. Gives how many messages were sent. A notification that another transaction
holds is passed by.
Arguments: only_queues, of these alone; null for all.
Source: spec 2.10, 5.6.';
