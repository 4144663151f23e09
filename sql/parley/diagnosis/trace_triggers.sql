-- The triggers of traces (diagnosis/traces.sql). They are disabled unless something is traced, and PostgreSQL does
-- not ask a disabled trigger.
--
-- A message arrives when a row with a position of its own is written: rows that RECEIVE puts back, or ALTER SERVICE
-- gives to another queue, have a position inside the step of another one, or are older than the statement.

create function parley._p_record_group() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_event parley._p_trace_event;
begin
  v_event.event_class := 136;
  v_event.event_subclass := case tg_op when 'INSERT' then 1 else 2 end;
  v_event.conversation_group_id := case tg_op
    when 'INSERT' then new.conversation_group_id
    else old.conversation_group_id
  end;
  v_event.service_name := (
    select s.name
    from parley._p_service as s
    where s.service_id = case tg_op when 'INSERT' then new.service_id else old.service_id end
  );
  perform parley._p_record_event(v_event);
  return null;
end
$$;

comment on function parley._p_record_group() is 'Writes down that a conversation group was created or dropped.';

create function parley._p_record_begun() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_trace_dialog(new, case when new.is_initiator then 11 else 12 end);
  return null;
end
$$;

comment on function parley._p_record_begun() is
'Writes down that an initiator has begun a dialog, or that the side of a target was created.';

create function parley._p_record_routed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_event parley._p_trace_event;
  v_address text := (select d.address from parley._p_destination as d where d.destination_id = new.destination_id);
begin
  if new.far_endpoint_id is null or new.far_endpoint_id < 0 and v_address is null then
    return null;
  end if;
  v_event := parley._p_event_of(
    new, 141, case when new.far_endpoint_id > 0 or v_address like 'broker:%' then 1 else 2 end
  );
  v_event.next_hop := case when new.far_endpoint_id < 0 then v_address end;
  perform parley._p_record_event(v_event);
  return null;
end
$$;

comment on function parley._p_record_routed() is
'Writes down where the messages of a conversation go from now on: into this database or another one of the
daemon (Local), or away (Remote).';

create function parley._p_record_delayed() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_event parley._p_trace_event;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = new.endpoint_id;
  if found then
    v_event := parley._p_event_of(v_endpoint, 141, 3);
    v_event.message_type_id := abs(new.message_type_id);
    v_event.messages := 1;
    v_event.text_data := new.transmission_status;
    perform parley._p_record_event(v_event);
  end if;
  return null;
end
$$;

comment on function parley._p_record_delayed() is 'Writes down that a message has no way to go yet, and why.';

create function parley._p_record_arrived() returns trigger
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_endpoint parley._p_endpoint;
  v_event parley._p_trace_event;
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = new.endpoint_id;
  if found and new.enqueued_at >= statement_timestamp() then
    v_event := parley._p_event_of(v_endpoint, 124, 6);
    v_event.message_type_id := new.message_type_id;
    v_event.messages := coalesce(cardinality(new.frame), 1);
    perform parley._p_record_event(v_event);
  end if;
  return null;
end
$$;

comment on function parley._p_record_arrived() is
'Writes down that messages of a conversation have arrived in the queue of this side.';

create trigger _p_record after insert or delete on parley._p_conversation_group
for each row execute function parley._p_record_group();

create trigger _p_record_begun after insert on parley._p_endpoint
for each row execute function parley._p_record_begun();

create trigger _p_record_routed after update on parley._p_endpoint
for each row when (
  (new.far_endpoint_id, new.destination_id) is distinct from (old.far_endpoint_id, old.destination_id)
) execute function parley._p_record_routed();

create trigger _p_record after insert on parley._p_transmission
for each row execute function parley._p_record_delayed();

create trigger _p_record after insert on parley._p_message
for each row when (
  new.endpoint_id > 0 and new.position % 1024 = 0 and new.message_type_id not in (1, 2, 5)
) execute function parley._p_record_arrived();

do $$
begin
  alter table parley._p_conversation_group disable trigger _p_record;
  alter table parley._p_endpoint disable trigger _p_record_begun;
  alter table parley._p_endpoint disable trigger _p_record_routed;
  alter table parley._p_transmission disable trigger _p_record;
  alter table parley._p_message disable trigger _p_record;
end
$$;
