-- One run from another database when something has to be checked: the first message of a conversation, EndDialog and
-- Error, validation, a target that refuses, a hole. A run that is refused is refused in the same way however often it
-- comes (spec 6.10).
-- Locks: the endpoint FOR NO KEY UPDATE or, for an end, FOR UPDATE, SKIP LOCKED; its group not at all: arrival does not
-- take the group's lock (spec 3.6).

create type parley._p_arriving_run as (
  conversation_id uuid,
  from_initiator boolean,
  first_sequence bigint,
  message_type text,
  bodies bytea[],
  body_size bigint,
  from_service text,
  to_service text,
  contract text,
  to_broker uuid,
  ends_at timestamptz,
  trace_context text,
  identity text,
  is_encrypted boolean,
  probe_given bigint,
  probe_expected bigint,
  sealed_at timestamptz
);

comment on type parley._p_arriving_run is
'Messages of one conversation as another broker has sent them: Run in Go, with the identity as which its sender was
recognised.';

create type parley._p_verdict as (
  outcome text,
  next_sequence bigint,
  error_number integer,
  description text
);

comment on type parley._p_verdict is 'The outcome of a run: Result in Go.';

create function parley._p_verdict_of(
  outcome text, next_sequence bigint, error parley._p_error default null
) returns parley._p_verdict
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (outcome, next_sequence, error.error_number, error.description)::parley._p_verdict
$$;

comment on function parley._p_verdict_of(text, bigint, parley._p_error) is
'Gives what became of a run.
Arguments: outcome and next_sequence as in Result in Go; error, why it was not accepted, null for one that was.';

create function parley._p_sequence_after(run parley._p_arriving_run) returns bigint
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when run.first_sequence = 9223372036854775807 then run.first_sequence
    when run.body_size > 0 then run.first_sequence + 1
    else run.first_sequence + coalesce(cardinality(run.bodies), 0)
  end
$$;

comment on function parley._p_sequence_after(parley._p_arriving_run) is
'Gives the number of the message behind a run; what stands outside the order has none behind it.';

create function parley._p_next_expected(endpoint_id bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select p.sequence
      from parley._p_accept_progress as p
      where p.endpoint_id = _p_next_expected.endpoint_id
      order by p.sequence desc
      limit 1
    ), 0
  );
end
$$;

comment on function parley._p_next_expected(bigint) is
'Gives the number of the next message that an endpoint takes from its far side in another database.';

create function parley._p_next_given(endpoint_id bigint) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce(
    (
      select p.sequence
      from parley._p_send_progress as p
      where p.endpoint_id = _p_next_given.endpoint_id
      order by p.sequence desc
      limit 1
    ), 0
  );
end
$$;

comment on function parley._p_next_given(bigint) is
'Gives the number of the next message that an endpoint transmits to its far side in another database.';

create function parley._p_accept_run(broker_instance uuid, run parley._p_arriving_run) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_refusal parley._p_verdict;
  v_replay parley._p_error;
begin
  if run.to_broker <> (select b.service_broker_guid from parley._p_broker as b) then
    return parley._p_verdict_of('unroutable', 0, parley._p_error_of(9795, 'not the target', run.to_broker::text));
  end if;
  -- Messages do not disturb local senders; an end or an error takes effect behind them.
  if run.first_sequence = 9223372036854775807
    or run.message_type like 'http://schemas.microsoft.com/SQL/ServiceBroker/E%' then
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.conversation_id = run.conversation_id and e.is_initiator = not run.from_initiator
    for update skip locked;
  else
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.conversation_id = run.conversation_id and e.is_initiator = not run.from_initiator
    for no key update skip locked;
  end if;
  if v_endpoint.endpoint_id is null then
    if exists (
      select
      from parley._p_endpoint as e
      where e.conversation_id = run.conversation_id and e.is_initiator = not run.from_initiator
    ) then
      return parley._p_verdict_of('held', 0, parley._p_error_of(0, 'in use'));
    elsif exists (
      select
      from parley._p_tombstone as t
      where t.conversation_id = run.conversation_id and t.is_initiator = not run.from_initiator
    ) or run.from_initiator and parley._p_was_opened(run.conversation_id) then
      -- A replay of what is over.
      return parley._p_verdict_of('accepted', parley._p_sequence_after(run));
    elsif not run.from_initiator then
      return parley._p_verdict_of('gone', 0, parley._p_error_of(8462, 'forgotten'));
    elsif run.first_sequence = 9223372036854775807 then
      return parley._p_verdict_of('accepted', run.first_sequence);
    elsif run.first_sequence > 0 then
      return parley._p_verdict_of('expected', 0);
    end if;
    v_replay := parley._p_refuse_replay(run.sealed_at);
    if v_replay is not null then
      v_replay.description := v_replay.error_number || ': ' || v_replay.description;
      return parley._p_verdict_of('held', 0, v_replay);
    end if;
    v_refusal := parley._p_refuse_first(run);
    if v_refusal.outcome is null then
      v_refusal := parley._p_open_dialog(broker_instance, run);
    end if;
    if v_refusal.outcome is not null then
      return v_refusal;
    end if;
    select * into v_endpoint
    from parley._p_endpoint as e
    where e.conversation_id = run.conversation_id and not e.is_initiator;
    if run.sealed_at is not null then
      perform parley._p_record_opened(run.conversation_id);
    end if;
  end if;
  if v_endpoint.far_endpoint_id is null then
    return parley._p_verdict_of('gone', 0, parley._p_error_of(8462, 'never left'));
  end if;
  if v_endpoint.far_endpoint_id > 0 then
    return parley._p_verdict_of('refused', 0, parley._p_error_of(8495, 'local'));
  elsif v_endpoint.far_broker_instance <> broker_instance::text and v_endpoint.far_endpoint_id < 0 then
    -- Two instances have got the first message; the other one has answered first (spec 6.5).
    return parley._p_verdict_of('refused', 0, parley._p_error_of(8495, 'other broker', v_endpoint.far_broker_instance));
  elsif v_endpoint.far_broker_instance is null then
    update parley._p_endpoint as e
    set far_broker_instance = _p_accept_run.broker_instance::text
    where e.endpoint_id = v_endpoint.endpoint_id;
    v_endpoint.far_broker_instance := broker_instance;
  end if;
  return parley._p_accept_in_order(v_endpoint, run);
end
$$;

comment on function parley._p_accept_run(uuid, parley._p_arriving_run) is
'Takes in one run, the long way, and says what became of it.
Arguments: broker_instance, the speaking broker; run.
Source: spec 6.10.';

create function parley._p_accept_in_order(
  endpoint parley._p_endpoint, run parley._p_arriving_run
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_expected bigint := parley._p_next_expected(endpoint.endpoint_id);
  v_is_unsequenced boolean := run.first_sequence = 9223372036854775807;
  v_next bigint := parley._p_sequence_after(run);
  v_bodies bytea[] := run.bodies;
  v_invalid bytea;
  v_type parley._p_message_type;
  v_queue parley._p_queue;
  v_refusal parley._p_error;
  v_refusal_here parley._p_error;
begin
  if not v_is_unsequenced and run.first_sequence > v_expected then
    return parley._p_verdict_of('expected', v_expected);
  elsif v_next <= v_expected or v_is_unsequenced and endpoint.state = 'ER' then
    return parley._p_verdict_of('accepted', greatest(v_next, v_expected));
  elsif v_is_unsequenced and run.message_type <> 'http://schemas.microsoft.com/SQL/ServiceBroker/Error' then
    return parley._p_verdict_of('refused', v_expected, parley._p_error_of(8457, 'out of order'));
  end if;
  -- The compared values must not move meanwhile. A run that cannot be answered with a question goes on without one.
  if not v_is_unsequenced
    and endpoint.destination_id is not null
    and exists (select from parley._p_unresumed as u where u.endpoint_id = endpoint.endpoint_id) then
    return parley._p_verdict_of('held', v_expected, parley._p_error_of(0, 'not compared'));
  end if;
  select q.* into v_queue
  from parley._p_service as s
  join parley._p_queue as q using (queue_id)
  where s.service_id = endpoint.service_id;
  if endpoint.state in ('CO', 'SO', 'SI', 'DI') and not v_queue.is_enqueue_enabled then
    return parley._p_verdict_of('held', v_expected, parley._p_error_of(11219, 'queue disabled', v_queue.lookup_name));
  elsif endpoint.state in ('CO', 'SO', 'SI', 'DI') and not (parley._p_has_room(v_queue, 1)).room then
    return parley._p_verdict_of('held', v_expected, parley._p_error_of(10928, 'full', v_queue.lookup_name));
  end if;
  if run.body_size > 0 then
    v_bodies := parley._p_assemble(
      endpoint.conversation_id, not endpoint.is_initiator, run.first_sequence, run.body_size
    );
    if v_bodies is null then
      return parley._p_verdict_of('held', v_expected, parley._p_error_of(0, 'fragments missing'));
    end if;
  elsif v_expected > run.first_sequence and not v_is_unsequenced then
    v_bodies := v_bodies[(v_expected - run.first_sequence + 1)::integer :];
  end if;
  select * into v_type from parley._p_message_type as t where t.name = run.message_type;
  case
    when endpoint.state = 'DO' then
      -- It does not want to know any more (spec 3.2); both have ended when the other side has too.
      if v_type.message_type_id in (1, 2) then
        perform parley._p_remove_endpoint(endpoint);
        perform parley._p_trace_received_end(endpoint, v_type.message_type_id, v_bodies[array_lower(v_bodies, 1)]);
        return parley._p_verdict_of('accepted', v_next);
      end if;
    when endpoint.state in ('DI', 'ER') and not v_is_unsequenced then
      null;
    when v_type.message_type_id in (1, 2) then
      perform parley._p_accept_end(endpoint, v_type.message_type_id, v_bodies[array_lower(v_bodies, 1)]);
    else
      v_refusal := parley._p_refuse_message(endpoint, v_type, run.message_type);
      if v_refusal is null then
        v_invalid := parley._p_append_valid(endpoint, v_queue, v_type, v_bodies, nullif(run.trace_context, ''));
        if v_invalid is not null then
          v_refusal := parley._p_invalid(v_type, v_invalid, true);
          v_refusal_here := parley._p_invalid(v_type, v_invalid, false);
        end if;
      end if;
      if v_refusal is not null then
        -- Both sides get their Error (spec 2.2). The result may be lost on its way, and is not given a second time; the
        -- message is not.
        perform parley._p_break_conversations(
          array[endpoint.endpoint_id], coalesce(v_refusal_here, v_refusal), v_refusal
        );
        return parley._p_verdict_of('refused', 0, v_refusal);
      end if;
  end case;
  if not v_is_unsequenced then
    insert into parley._p_accept_progress (endpoint_id, sequence) values (endpoint.endpoint_id, v_next);
    delete from parley._p_accept_progress as p where p.endpoint_id = endpoint.endpoint_id and p.sequence = v_expected;
  end if;
  return parley._p_verdict_of('accepted', v_next);
end
$$;

comment on function parley._p_accept_in_order(parley._p_endpoint, parley._p_arriving_run) is
'Takes in a run for an endpoint that the caller has locked, when it is its turn: enqueues, changes the state, or drops
it.
Source: spec 3.2, 5.1, 6.10.';

create function parley._p_accept_end(endpoint parley._p_endpoint, message_type_id integer, body bytea) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_enqueue(endpoint, message_type_id, body);
  perform parley._p_set_state(endpoint.endpoint_id, case message_type_id when 2 then 'DI' else 'ER' end);
  perform parley._p_trace_received_end(endpoint, message_type_id, body);
  perform parley._p_hold_outgoing(
    endpoint,
    case message_type_id
      when 2 then parley._p_status(9779, 'ended there')
      else parley._p_status(9784, 'Error received')
    end
  );
  if not endpoint.is_initiator then
    perform parley._p_expect_no_end(endpoint.endpoint_id);
  end if;
end
$$;

comment on function parley._p_accept_end(parley._p_endpoint, integer, bytea) is
'Takes in the EndDialog (2) or Error (1) of the far side: enqueues it, changes the state, and holds what this side has
not sent yet.
Source: spec 3.2.';

create function parley._p_trace_received_end(
  endpoint parley._p_endpoint, message_type_id integer, body bytea
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if message_type_id = 2 then
    perform parley._p_trace_dialog(endpoint, 7);
  else
    perform parley._p_trace_received_error(endpoint, body);
  end if;
end
$$;

comment on function parley._p_trace_received_end(parley._p_endpoint, integer, bytea) is
'Writes down, when traced, that the EndDialog (2) or Error (1) of the far side has come.';

create function parley._p_refuse_message(
  endpoint parley._p_endpoint, message_type parley._p_message_type, message_type_name text
) returns parley._p_error
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if message_type.message_type_id is null then
    return parley._p_error_of(8428, 'unknown there', message_type_name);
  end if;
  return case parley._p_type_fault(
      endpoint.service_contract_id, message_type.message_type_id, not endpoint.is_initiator
    )
    when 'not in the contract' then
      parley._p_error_of(8498, 'not in the contract', message_type_name, endpoint.service_contract_name)
    when 'other side' then
      case
        when endpoint.is_initiator then parley._p_error_of(8457, 'wrong side', message_type_name)
        else parley._p_error_of(8437, 'wrong side', message_type_name)
      end
  end;
end
$$;

comment on function parley._p_refuse_message(parley._p_endpoint, parley._p_message_type, text) is
'Explains why a side of a conversation refuses messages of a type: unknown (8428), not in the contract (8498), of the
wrong direction (8457, 8437); null when it takes them. Bodies are another question: _p_count_valid.
Source: spec 6.10.';
