-- Conversations of a pool that are begun, and opened at their target, before they are needed.
--
-- Locks: the row of the sending service, if it is free; then as get_conversation, for each of them.

create function parley.warm_conversations(
  from_service text,
  to_service text,
  contract text default 'DEFAULT',
  conversations integer default 8,
  broker_instance text default null,
  encryption boolean default true,
  max_age integer default 3600,
  max_messages integer default 100000,
  caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_wanted parley._p_pooled_conversation := parley._p_wanted_conversation(
    v_caller, from_service, to_service, contract, broker_instance, encryption, max_age, max_messages
  );
  v_begun integer := 0;
begin
  found := parley._p_require_range('conversations', conversations, 1, 1000);
  -- Before any row, as SEND does.
  perform pg_sequence_last_value('parley._p_broker_switch');
  perform from parley._p_service as s where s.service_id = v_wanted.service_id for no key update skip locked;
  if not found and v_wanted.service_id is not null then
    return 0;
  end if;
  v_wanted.key := '';
  for i in 0 .. conversations - 1 loop
    v_wanted.slot := i;
    if (parley._p_find_pooled(v_caller, v_wanted, max_age, max_messages)).is_fresh is not true then
      perform parley._p_open_pooled(
        v_caller, parley._p_begin_pooled(caller, v_wanted, from_service, contract, max_age)
      );
      v_begun := v_begun + 1;
    end if;
  end loop;
  return v_begun;
end
$$;

comment on function parley.warm_conversations(
  text, text, text, integer, text, boolean, integer, integer, parley.caller
) is
'Begins the conversations that get_conversation gives without a key, before they are needed, and opens them at a target
in this database: the first message
on them then costs no more than the next. Gives how many it has begun: those that were there already are left
alone, and while another transaction warms conversations of from_service none is begun.
Arguments: as get_conversation.
Errors: those of get_conversation.
Source: spec R-PERF-12.';

create function parley._p_open_pooled(caller oid, endpoint parley._p_endpoint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_route record := parley._p_find_route(endpoint.far_service, endpoint.far_broker_instance, endpoint.conversation_id);
  v_service parley._p_service;
begin
  if v_route.address is distinct from 'LOCAL'
    or v_route.status is not null
    or parley._p_delay_reason(endpoint) is not null then
    return;
  end if;
  select * into v_service from parley._p_service as s where s.name = endpoint.far_service;
  if parley._p_refuse_dialog(
    v_service, endpoint.service_contract_name, endpoint.owner, endpoint.service_name
  ) is not null then
    return;
  end if;
  perform parley._p_connect(endpoint);
  perform parley._p_set_state(endpoint.endpoint_id, 'CO');
  perform parley._p_remember_route(caller, endpoint.conversation_handle);
end
$$;

comment on function parley._p_open_pooled(oid, parley._p_endpoint) is
'Makes the target''s endpoint of a new conversation, if the target is in this database and takes it. Otherwise its first
message does what there is to do.';
