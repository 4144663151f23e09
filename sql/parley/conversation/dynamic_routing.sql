-- Dynamic routing: asking the broker configuration service for what is missing (spec 6.6).
--
-- A database that has a route to the service SQL/ServiceBroker/BrokerConfiguration asks it for routes and remote
-- service bindings that are missing, with messages of the built-in service on the contract BrokerConfigurationNotice.
-- The service creates what is missing and ends the conversation; that end, with an error or without, is the answer. A
-- conversation that it cannot help goes on with the steps that follow, and it is not asked for that again for a while,
-- else a service that knows nothing would be asked without end.
-- A route is asked for by the first who misses it; others go on with the steps that follow. A binding is asked for when
-- a dialog has found its first way to another server, whatever ENCRYPTION says, and each dialog with that service waits
-- for the answer. A message that left without it could not be sealed any more.
-- Invariant: one request for each service name and message type is open, and one more for each transaction that asked
-- before the first was committed. Such a transaction does not see the first one; if it waited, it would wait as long as
-- an outsider leaves his transaction open. It is answered when all of them are. So no key is on the name, and nothing
-- is locked to ask.
-- Locks: to take an answer, the row of the request; then those of its conversation.

create table parley._p_configuration_request (
  service_name text collate "C" not null,
  -- 6 for a route, 8 for a remote service binding: MissingRoute and MissingRemoteServiceBinding.
  message_type_id integer not null check (message_type_id in (6, 8)),
  conversation_handle uuid primary key,
  asked_at timestamptz not null default clock_timestamp(),
  answered_at timestamptz,
  pause interval not null default interval '1 minute'
);

create index _p_configuration_request_name on parley._p_configuration_request (service_name, message_type_id);

comment on table parley._p_configuration_request is
'The questions to the broker configuration service, kept until a while after its answer.';
comment on column parley._p_configuration_request.pause is
'How long after the answer it is not asked for the same again.';

create function parley._p_is_asking(service_name text, message_type_id integer) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return exists (
    select
    from parley._p_configuration_request as q
    join parley._p_endpoint as e using (conversation_handle)
    where q.service_name = _p_is_asking.service_name
      and q.message_type_id = _p_is_asking.message_type_id
      and q.answered_at is null
      and e.state in ('SO', 'CO')
  );
end
$$;

comment on function parley._p_is_asking(text, integer) is
'Reports whether the broker configuration service was asked for something and has not answered.
Arguments: service_name, the service for which it is missing; message_type_id, 6 for a route, 8 for a remote service
binding.';

create function parley._p_ask_broker_configuration(service_name text, message_type_id integer) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_type parley._p_message_type;
  v_handle uuid;
begin
  select * into v_type
  from parley._p_message_type as t
  where t.message_type_id = _p_ask_broker_configuration.message_type_id;
  if parley._p_is_asking(service_name, message_type_id) then
    return 'asking';
  elsif exists (
    select
    from parley._p_configuration_request as q
    where q.service_name = _p_ask_broker_configuration.service_name
      and q.message_type_id = v_type.message_type_id
      and coalesce(q.answered_at, clock_timestamp()) > clock_timestamp() - q.pause
  ) then
    return 'answered';
  end if;
  v_handle := parley._p_begin_notices('SQL/ServiceBroker/BrokerConfiguration', null, 3, 3, 3600);
  insert into parley._p_configuration_request as q (service_name, message_type_id, conversation_handle)
  values (_p_ask_broker_configuration.service_name, v_type.message_type_id, v_handle);
  perform parley._p_post_notice(
    v_handle, v_type,
    case v_type.message_type_id
      when 6 then parley._p_missing_route_body(service_name)
      else parley._p_missing_binding_body(service_name)
    end
  );
  return 'asked';
end
$$;

comment on function parley._p_ask_broker_configuration(text, integer) is
'Asks the broker configuration service for what is missing, and gives asked; or asking, when it was asked already; or
answered, when it has answered not long ago.
Arguments: those of _p_is_asking.
Source: spec 6.6.';

create function parley._p_await_binding(endpoint parley._p_endpoint, address text) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if address is null
    -- Inside one server nothing is sealed, and what has been on its way goes on as it began.
    or address like 'broker:%'
    or not endpoint.is_initiator
    or endpoint.far_endpoint_id is not null
    or endpoint.far_service = 'SQL/ServiceBroker/BrokerConfiguration'
    or exists (select from parley._p_remote_service_binding as b where b.to_service = endpoint.far_service)
    or not exists (
      select
      from parley._p_route as r
      where r.remote_service_name = 'SQL/ServiceBroker/BrokerConfiguration'
        and not r.is_inbound
        and (r.expires_at is null or r.expires_at > clock_timestamp())
    )
    or parley._p_ask_broker_configuration(endpoint.far_service, 8) = 'answered' then
    return null;
  end if;
  return parley._p_status(9770, 'binding asked', endpoint.far_service);
end
$$;

comment on function parley._p_await_binding(parley._p_endpoint, text) is
'Explains why a conversation that has found its way waits for a remote service binding, and asks the broker
configuration service for it; null when it may go.
Arguments: endpoint, whose row the caller holds; address, to which it is about to be bound.
Source: spec 6.6, 6.12 (9770).';

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

comment on function parley._p_missing_route_body(text) is
'Gives the body of the message that asks for a missing route, in UTF-8.';

create function parley._p_missing_binding_body(service_name text) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select convert_to(
    xmlelement(
      name "MissingRemoteServiceBinding",
      xmlattributes(
        'http://schemas.microsoft.com/SQL/ServiceBroker/BrokerConfigurationNotice/MissingRemoteServiceBinding' as xmlns
      ),
      xmlelement(name "SERVICE_NAME", service_name)
    )::text,
    'UTF8'
  )
$$;

comment on function parley._p_missing_binding_body(text) is
'Gives the body of the message that asks for a missing remote service binding, in UTF-8.';

create function parley._p_take_configuration_answers() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '30ms'
as $$
declare
  v_request record;
  v_endpoint parley._p_endpoint;
  v_answers integer := 0;
  v_held integer := 0;
begin
  for v_request in
    select q.service_name, q.message_type_id, q.conversation_handle, e.state
    from parley._p_configuration_request as q
    left join parley._p_endpoint as e using (conversation_handle)
    where q.answered_at is null and (e.state is null or e.state not in ('SO', 'CO'))
    order by q.service_name, q.message_type_id, q.conversation_handle
    for update of q skip locked
  loop
    begin
      update parley._p_configuration_request as q
      -- That there is no binding is remembered for ten minutes, as SQL Server does.
      set answered_at = clock_timestamp(),
        pause = case when q.message_type_id = 8 and v_request.state = 'ER' then interval '10 minutes' else q.pause end
      where q.conversation_handle = v_request.conversation_handle;
      if exists (select from parley._p_endpoint as e where e.conversation_handle = v_request.conversation_handle) then
        v_endpoint := parley._p_lock_to_end(v_request.conversation_handle);
        if v_endpoint.state <> 'DO' then
          found := parley._p_end_side(v_endpoint, 2, null);
        end if;
      end if;
      v_answers := v_answers + 1;
    exception
      when lock_not_available then
        -- Somebody holds the conversation: the next time.
        v_held := v_held + 1;
    end;
    exit when v_held >= 10;
  end loop;
  delete from parley._p_configuration_request as q where q.answered_at < clock_timestamp() - q.pause;
  return v_answers;
end
$$;

comment on function parley._p_take_configuration_answers() is
'Ends the conversations in which the broker configuration service has answered. An end with an error, or of the
lifetime, means that it does not know. Gives the number of answers; the caller tries again what waited for them.
Source: spec 6.6.';
