-- Going on in a new epoch: each conversation is compared with its far side first.
--
-- The side that has a new epoch sends a probe: the lowest number that it still keeps, the next that it will give, and
-- the next that it expects. The far side compares these with its own. Both agree when each expects a number that the
-- other one still keeps or is about to give. If not, one of them has lost what the other knows it had, and the
-- conversation ends with an Error on both sides (keeps F2). Until the answer has come this side transmits nothing of
-- the conversation and takes in nothing, so that what was asked stays true. A broker that learns of it asks too: a
-- database that has forgotten a conversation altogether does not ask about it. A probe may come late and again, when
-- numbers have gone on: once both sides were found to agree in an epoch they do (keeps T5).

create function parley._p_positions(endpoint_id bigint, out kept bigint, out given bigint, out expected bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
begin
  given := parley._p_next_given(_p_positions.endpoint_id);
  -- A number that was dropped is not asked for any more when an Error outside the order follows.
  kept := case
    when exists (
      select
      from parley._p_endpoint as e
      where e.endpoint_id = _p_positions.endpoint_id and parley._p_has_unacknowledged_error(e)
    ) then 0
    else coalesce(
      (
        select min(t.first_sequence)
        from parley._p_transit as t
        where t.endpoint_id = _p_positions.endpoint_id and t.first_sequence < 9223372036854775807
      ), given
    )
  end;
  expected := parley._p_next_expected(_p_positions.endpoint_id);
end
$$;

comment on function parley._p_positions(bigint) is
'Gives where an endpoint stands with its far side: the lowest number it keeps, the next it will give, the next it
expects.';

create function parley._p_probes(destination_id integer, top integer)
returns table (run parley._p_run, given bigint, expected bigint)
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select
    row(
      e.endpoint_id, e.conversation_id, e.is_initiator, p.kept, '', '{}'::bytea[], 0, e.service_name, e.far_service,
      e.service_contract_name,
      e.far_broker_instance::uuid, e.priority, clock_timestamp(), null, null, pg_get_userbyid(e.owner)::text,
      e.is_encrypted,
      e.remote_service_binding_id is not null
    )::parley._p_run,
    p.given, p.expected
  from parley._p_unresumed as u
  join parley._p_endpoint as e using (endpoint_id)
  cross join lateral parley._p_positions(e.endpoint_id) as p
  where e.destination_id = _p_probes.destination_id
  order by e.endpoint_id
  limit top
$$;

comment on function parley._p_probes(integer, integer) is
'Gives the probes to send to a destination: runs without messages, for conversations that have to be compared with their
far side.';

create function parley._p_compare(
  broker_instance uuid, epoch bigint, run parley._p_arriving_run
) returns parley._p_verdict
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_here record;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.conversation_id = run.conversation_id and e.is_initiator = not run.from_initiator and e.far_endpoint_id < 0
  for update skip locked;
  if not found then
    if exists (
      select
      from parley._p_endpoint as e
      where e.conversation_id = run.conversation_id and e.is_initiator = not run.from_initiator
    ) then
      return parley._p_verdict_of('held', 0, parley._p_error_of(0, 'in use'));
    elsif run.probe_given = 0 and run.probe_expected = 0 or run.from_initiator and run.first_sequence = 0 then
      -- Its first message has not arrived yet.
      return parley._p_verdict_of('accepted', 0);
    end if;
    return parley._p_verdict_of('gone', 0, parley._p_error_of(8462, 'gone'));
  elsif v_endpoint.far_broker_instance <> broker_instance::text then
    return parley._p_verdict_of('refused', 0, parley._p_error_of(8495, 'other broker', v_endpoint.far_broker_instance));
  end if;
  v_here := parley._p_positions(v_endpoint.endpoint_id);
  if v_endpoint.state = 'ER'
    or exists (
      select
      from parley._p_compared as c
      where c.endpoint_id = v_endpoint.endpoint_id and c.epoch >= _p_compare.epoch
    )
    or v_here.expected between run.first_sequence and run.probe_given
      and run.probe_expected between v_here.kept and v_here.given then
    insert into parley._p_compared as c (endpoint_id, epoch) values (v_endpoint.endpoint_id, epoch)
    on conflict on constraint _p_compared_pkey do update set epoch = greatest(c.epoch, excluded.epoch);
    return parley._p_verdict_of('accepted', v_here.expected);
  end if;
  -- The result may be lost, so the other side gets a message too.
  perform parley._p_break_conversations(
    array[v_endpoint.endpoint_id], parley._p_error_of(9720, 'lost'), parley._p_error_of(9719, 'lost')
  );
  return parley._p_verdict_of('refused', 0, parley._p_error_of(9719, 'lost'));
end
$$;

comment on function parley._p_compare(uuid, bigint, parley._p_arriving_run) is
'Answers a probe: accepted when both sides agree on what was said, refused when history was lost; then the conversation
is broken here too.
Arguments: the speaking broker and its epoch; run, whose first_sequence is the lowest number that the asking side keeps.
Source: reliability F2.';
