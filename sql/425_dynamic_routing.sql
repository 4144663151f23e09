-- Dynamic routing: asking the broker configuration service for what is missing (spec 6.6).
--
-- A database that has a route to the service SQL/ServiceBroker/BrokerConfiguration asks it for routes that are missing, with a message of the
-- built-in service on the contract BrokerConfigurationNotice. The service creates what is missing and ends the conversation; that
-- end, with an error or without, is the answer. Whoever cannot be helped by it goes on with the steps that follow, and is
-- not asked for again for a minute, else a service that knows nothing would be asked without end.
-- Invariant: one conversation for each service name. Of two who find the same thing missing at once, one asks, and the other waits for
-- nobody: he behaves as if it were asked, which is true or will be found out when delayed messages are looked at again.
-- Locks: an advisory lock for the name, only tried; then the row of the request; then those of its conversation.

create table parley._p_configuration_request (
  service_name text collate "C" primary key,
  conversation_handle uuid not null,
  asked_at timestamptz not null default clock_timestamp(),
  answered_at timestamptz
);

comment on table parley._p_configuration_request is 'What the broker configuration service was asked for, until a while after its answer.';

create function parley._p_is_asking(service_name text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_configuration_request as q
    join parley._p_endpoint as e using (conversation_handle)
    where q.service_name = _p_is_asking.service_name and q.answered_at is null and e.state in ('SO', 'CO')
  );
end
$$;

comment on function parley._p_is_asking(text) is
'Tells whether the broker configuration service was asked for a route and has not answered.
Arguments: service_name, the service to which there is no route.';

create function parley._p_ask_broker_configuration(service_name text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request parley._p_configuration_request;
  v_type parley._p_message_type;
  v_handle uuid;
begin
  if not pg_try_advisory_xact_lock(hashtextextended(format('parley MissingRoute %s', service_name), 0)) then
    return false;
  end if;
  select * into v_request
  from parley._p_configuration_request as q
  where q.service_name = _p_ask_broker_configuration.service_name;
  if parley._p_is_asking(service_name)
    or (v_request.asked_at is not null and coalesce(v_request.answered_at, clock_timestamp()) > clock_timestamp() - interval '1 minute') then
    return false;
  end if;
  v_handle := parley._p_begin_notices('SQL/ServiceBroker/BrokerConfiguration', null, 3, 3, 3600);
  insert into parley._p_configuration_request as q (service_name, conversation_handle)
  values (_p_ask_broker_configuration.service_name, v_handle)
  on conflict on constraint _p_configuration_request_pkey do update
  set conversation_handle = excluded.conversation_handle, asked_at = excluded.asked_at, answered_at = null;
  select * into v_type from parley._p_message_type as t where t.message_type_id = 6;
  perform parley._p_post_notice(v_handle, v_type, parley._p_missing_route_body(service_name));
  return true;
end
$$;

comment on function parley._p_ask_broker_configuration(text) is
'Asks the broker configuration service for a route, unless it was asked already or has answered within a minute. Tells whether it was asked now.
Arguments: service_name, the service to which there is no route.
Source: spec 6.6.';

create function parley._p_missing_route_body(service_name text) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select convert_to(
    xmlelement(
      name "MissingRoute",
      xmlattributes('http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRoute' as xmlns),
      xmlelement(name "SERVICE_NAME", service_name)
    )::text,
    'UTF8'
  )
$$;

comment on function parley._p_missing_route_body(text) is 'Gives the body of the message that asks for a missing route, in UTF-8.';

create function parley._p_take_configuration_answers() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_request record;
  v_endpoint parley._p_endpoint;
  v_answers integer := 0;
begin
  for v_request in
    select q.service_name, q.conversation_handle
    from parley._p_configuration_request as q
    left join parley._p_endpoint as e using (conversation_handle)
    where q.answered_at is null and (e.state is null or e.state not in ('SO', 'CO'))
    order by q.service_name
    for update of q skip locked
  loop
    update parley._p_configuration_request as q set answered_at = clock_timestamp()
    where q.service_name = v_request.service_name;
    if exists (select from parley._p_endpoint as e where e.conversation_handle = v_request.conversation_handle) then
      v_endpoint := parley._p_lock_to_end(v_request.conversation_handle);
      if v_endpoint.state <> 'DO' then
        found := parley._p_end_side(v_endpoint, 2, null);
      end if;
    end if;
    perform parley._p_deliver_delayed(v_request.service_name);
    v_answers := v_answers + 1;
  end loop;
  delete from parley._p_configuration_request as q where q.answered_at < clock_timestamp() - interval '1 minute';
  return v_answers;
end
$$;

comment on function parley._p_take_configuration_answers() is
'Ends the conversations in which the broker configuration service has answered, and looks again at what waited for it. An end with an error, or of the
lifetime, means that it does not know. Gives the number of answers.
Source: spec 6.6.';
