-- The built-in objects (spec 2.1), and who may use the schema.

select parley._p_take_back_all();

insert into parley._p_message_type (message_type_id, name, owner, validation)
select t.id, t.name, current_user::regrole, t.validation
from (
  values
    (1, 'http://schemas.microsoft.com/SQL/ServiceBroker/Error', 'X'::"char"),
    (2, 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog', 'E'),
    (3, 'http://schemas.microsoft.com/SQL/Notifications/QueryNotification', 'X'),
    (4, 'http://schemas.microsoft.com/SQL/Notifications/EventNotification', 'X'),
    (5, 'http://schemas.microsoft.com/SQL/ServiceBroker/DialogTimer', 'E'),
    (6, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute', 'X'),
    (7, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/FailedRoute', 'X'),
    (8, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRemoteServiceBinding', 'X'),
    (9, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/FailedRemoteServiceBinding', 'X'),
    (10, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceEcho/Echo', 'N'),
    (11, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic/Query', 'X'),
    (12, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic/Status', 'X'),
    (13, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic/Description', 'N'),
    (14, 'DEFAULT', 'N')
) as t (id, name, validation);

insert into parley._p_contract (service_contract_id, name, owner)
select c.id, c.name, current_user::regrole
from (
  values
    (1, 'http://schemas.microsoft.com/SQL/Notifications/PostQueryNotification'),
    (2, 'http://schemas.microsoft.com/SQL/Notifications/PostEventNotification'),
    (3, 'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice'),
    (4, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceEcho'),
    (5, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceDiagnostic'),
    (6, 'DEFAULT')
) as c (id, name);

insert into parley._p_contract_message_type (
  service_contract_id, message_type_id, is_sent_by_initiator, is_sent_by_target
)
values
  (1, 3, true, false),
  (2, 4, true, false),
  (3, 6, true, false),
  (3, 7, true, false),
  (3, 8, true, false),
  (3, 9, true, false),
  (4, 10, true, true),
  (5, 11, true, false),
  (5, 12, false, true),
  (5, 13, false, true),
  (6, 14, true, true);

select parley._p_add_queue(q.id, 'dbo', q.name, current_user::regrole)
from (
  values (1, 'QueryNotificationErrorsQueue'), (2, 'EventNotificationErrorsQueue'), (3, 'ServiceBrokerQueue')
) as q (id, name);

select parley._p_create_queue_view(q.queue_id) from parley._p_queue as q;

insert into parley._p_service (service_id, name, owner, queue_id)
select s.id, s.name, current_user::regrole, s.id
from (
  values
    (1, 'http://schemas.microsoft.com/SQL/Notifications/QueryNotificationService'),
    (2, 'http://schemas.microsoft.com/SQL/Notifications/EventNotificationService'),
    (3, 'http://schemas.microsoft.com/SQL/ServiceBroker/ServiceBroker')
) as s (id, name);

insert into parley._p_service_contract (service_id, service_contract_id)
values (1, 1), (2, 2), (3, 3), (3, 4), (3, 5);

-- An ordinary route: it may be changed and dropped.
insert into parley._p_route (route_id, name, owner, is_inbound, address, next_hop, rank)
values (nextval('parley._p_object_id'), 'AutoCreatedLocal', current_user::regrole, false, 'LOCAL', 'LOCAL', 2);

-- Everybody may call the interface; each function checks rights itself. The private functions are nobody's business.
grant usage on schema parley, parley_queue to public;

do $$
declare
  v_function regprocedure;
  v_view regclass;
begin
  for v_function in
    select p.oid::regprocedure
    from pg_catalog.pg_proc as p
    where p.pronamespace = 'parley'::regnamespace and p.proname not like E'\\_p\\_%'
  loop
    execute format('grant execute on routine %s to public', v_function);
  end loop;
  for v_view in
    select c.oid::regclass
    from pg_catalog.pg_class as c
    where c.relnamespace = 'parley'::regnamespace and c.relkind = 'v' and c.relname not like E'\\_p\\_%'
  loop
    execute format('grant select on %s to public', v_view);
  end loop;
  foreach v_function in array parley._p_private_functions_of_everybody()::regprocedure[]
  loop
    execute format('grant execute on routine %s to public', v_function);
  end loop;
end
$$;
