-- explain_conversation where the far side is in another database: this one knows what it has sent and what was
-- acknowledged, and refers the operator to the other one for the rest (spec 9.3).

create function parley._p_explain_far_side(endpoint parley._p_endpoint, side text)
returns table (step integer, conversation_handle uuid, side_of text, answer text, is_finding boolean, cure text)
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_here record;
  v_destination parley._p_destination;
  v_parked parley._p_parked;
  v_transit bigint;
  v_lane bigint;
  v_delayed bigint;
begin
  v_here := parley._p_positions(endpoint.endpoint_id);
  select * into v_destination from parley._p_destination as d where d.destination_id = endpoint.destination_id;
  select * into v_parked from parley._p_parked as p where p.endpoint_id = endpoint.endpoint_id;
  v_transit := (
    select coalesce(sum(t.next_sequence - t.first_sequence), 0)
    from parley._p_transit as t
    where t.endpoint_id = endpoint.endpoint_id
  );
  v_lane := (
    select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0)
    from parley._p_message as m
    where m.endpoint_id = -endpoint.endpoint_id
  );
  v_delayed := (select count(*) from parley._p_transmission as t where t.endpoint_id = endpoint.endpoint_id);
  conversation_handle := endpoint.conversation_handle;
  side_of := side;

  step := 1;
  is_finding := false;
  answer := format(
    'It is in state %s (%s) since %s. Its far side is in another database%s. Of its messages, acknowledged there: '
      || '%s, sent and not acknowledged: %s,'
      || ' waiting to be sent: %s, without a way: %s. Received from there: %s.%s',
    endpoint.state, parley._p_state_name(endpoint.state), date_trunc('second', endpoint.state_since),
    coalesce(', broker ' || endpoint.far_broker_instance, ''), v_here.given - v_transit, v_transit, v_lane, v_delayed,
    v_here.expected, parley._p_explain_not_due(endpoint.endpoint_id)
  );
  return next;

  step := 2;
  is_finding := true;
  if v_parked.endpoint_id is not null then
    answer := format(
      'The far side cannot take it now, after %s attempts: %s Next attempt: %s.',
      v_parked.attempts, v_parked.status, date_trunc('second', nullif(v_parked.due_at, 'infinity'))
    );
    return next;
  elsif v_destination.status <> '' then
    answer := format(
      '%s cannot be reached since %s, after %s attempts: %s Next attempt: %s.', v_destination.address,
      date_trunc('second', v_destination.failing_since), v_destination.attempts, v_destination.status,
      date_trunc('second', v_destination.due_at)
    );
    return next;
  elsif v_delayed > 0 then
    answer := (
      select t.transmission_status
      from parley._p_transmission as t
      where t.endpoint_id = endpoint.endpoint_id
      order by t.transmission_id
      limit 1
    );
    return next;
  elsif v_transit + v_lane > 0 and not parley._p_is_led() then
    answer := 'No daemon transmits what waits.';
    cure := 'Start one for this database: parley serve --dsn ...';
    return next;
  end if;

  if v_transit + v_lane + v_delayed = 0 and v_here.given > 0 then
    step := 6;
    is_finding := false;
    answer := format(
      'Everything that is committed is with the far side. Whether it was received there, its database shows: select '
        || '* from'
        || ' parley.explain_conversation(%L);', endpoint.conversation_id
    );
    return next;
  end if;
end
$$;

comment on function parley._p_explain_far_side(parley._p_endpoint, text) is
'Shows where the messages of a conversation with another database are: steps 1, 2 and 6 of explain_conversation.';
