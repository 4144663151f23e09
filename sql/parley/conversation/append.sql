-- The one place where a message gets its position in a queue (spec 2.6).

create function parley._p_append(
  endpoint_id bigint, lane integer, position_sequence regclass, message_type_id integer, bodies bytea[],
  trace_context text default null
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_count integer := coalesce(cardinality(bodies), 0);
  v_now timestamptz := clock_timestamp();
  -- A frame fills one page: that is where a row costs least for what it carries.
  v_frame integer;
begin
  if v_count = 0 then
    return;
  end if;
  if array_position(bodies, '') is not null then
    bodies := array_replace(bodies, '', null);
  end if;
  v_frame := greatest(1, least(v_count, 1000, 7800::bigint * v_count / greatest(pg_column_size(bodies), 1)));
  if v_frame = 1 then
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, trace_context)
    select nextval(position_sequence) * 1024, _p_append.endpoint_id, v_now, _p_append.lane, _p_append.message_type_id,
      b.body, _p_append.trace_context
    from unnest(bodies) with ordinality as b (body, ordinal)
    order by b.ordinal;
  elsif v_count <= 4000 and array_lower(bodies, 1) = 1 then
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, frame, trace_context)
    select nextval(position_sequence) * 1024, _p_append.endpoint_id, v_now, _p_append.lane, _p_append.message_type_id,
      bodies[f.first : f.first + v_frame - 1],
      _p_append.trace_context
    from generate_series(1, v_count, v_frame) as f (first);
  else
    -- Slicing walks the array from its start each time; for long ones this is quicker.
    insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, frame, trace_context)
    select nextval(position_sequence) * 1024, _p_append.endpoint_id, v_now, _p_append.lane, _p_append.message_type_id,
      f.frame, _p_append.trace_context
    from (
      select array_agg(b.body order by b.ordinal) as frame
      from unnest(bodies) with ordinality as b (body, ordinal)
      group by (b.ordinal - 1) / v_frame
      order by (b.ordinal - 1) / v_frame
    ) as f;
  end if;
  if v_frame > 1 and position_sequence <> 'parley._p_transmission_position'::regclass then
    perform parley._p_count_framed(v_count - (v_count + v_frame - 1) / v_frame);
  end if;
end
$$;

comment on function parley._p_append(bigint, integer, regclass, integer, bytea[], text) is
'Appends messages to a lane in their order, as frames of up to a page when they are small; all
of them carry the trace context.';
