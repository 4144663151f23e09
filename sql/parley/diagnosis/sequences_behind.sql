-- Sequences that are behind the rows which have their numbers.
--
-- The broker trusts its sequences to grow: a reader that has passed a position by never returns to it, the newest hint
-- is the one with the highest number, an id is that of one thing. A copy made by logical replication has all rows and
-- none of the values, before PostgreSQL 19, and a value can be set back by hand. Rows that are numbered then are passed
-- by in silence. So here stands, for every such sequence, the highest number that any row says was drawn: its floor.
-- enable_broker, which each copy asks for, puts every sequence behind its floor; diagnosis and check_broker find one
-- that is not.
--
-- A system on the broker has the floors of its sequences by a function _p_sequence_floors() in its schema parley_NAME,
-- which gives sequence and floor, and may have _p_go_on_elsewhere(), which is called where the broker is enabled in
-- another place than before. Each belongs to the owner of the schema parley, as its schema does. Identity columns of
-- all these schemas are known without.
--
-- Without a floor, and why: those that hold a time or a mark (when to scan next, until when somebody sleeps or leads,
-- rollbacks counted, savepoints, quotas) are right when they are too low; those that count frames count on from there.
-- Locks: setval's on a sequence; to repair readers' hints, their table.
-- Cost: a search in an index for each sequence and each lane of a queue; a walk over the items of the store and the
-- hints.

create function parley._p_identity_floors(of_schema text) returns table (sequence regclass, floor bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_column record;
begin
  for v_column in
    select c.oid::regclass as relation, a.attname, pg_get_serial_sequence(c.oid::regclass::text, a.attname) as sequence
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid
    where c.relnamespace = to_regnamespace(quote_ident(of_schema)) and a.attidentity <> ''
  loop
    sequence := v_column.sequence::regclass;
    execute format('select max(t.%I) from %s as t', v_column.attname, v_column.relation) into floor;
    return next;
  end loop;
end
$$;

comment on function parley._p_identity_floors(text) is
'Gives the highest number that a row has of each identity column of a schema.';

create function parley._p_position_floors() returns table (sequence regclass, floor bigint)
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  -- A hint says where the next number may be at the earliest, a message which number it has.
  with lane as (
    select q.position_sequence as sequence, q.queue_id as owner, q.disabled_position as next_position
    from parley._p_queue as q
    union all
    select 'parley._p_transmission_position'::regclass, d.destination_id, null
    from parley._p_destination as d
  )

  select l.sequence, max(greatest(m.position / 1024, (coalesce(n.position, l.next_position) + 1023) / 1024 - 1))
  from lane as l
  cross join generate_series(0, 10) as p (priority)
  left join lateral (
    select k.position
    from parley._p_message as k
    where k.lane = parley._p_lane(l.owner, p.priority)
    order by k.lane desc, k.position desc
    limit 1
  ) as m on true
  left join lateral (
    select max(
      greatest(h.low_position, h.safe_position, h.probe_position, h.resume_position, l.next_position)
    ) as position
    from parley._p_scan_hint as h
    where h.lane = parley._p_lane(l.owner, p.priority)
  ) as n on true
  group by l.sequence
  union all
  select q.position_sequence, max(f.position) / 1024
  from parley._p_message_failure as f
  join parley._p_queue as q using (queue_id)
  group by q.position_sequence
  union all
  select q.position_sequence, max(a.moved_position) / 1024
  from parley._p_set_aside as a
  join parley._p_service as s using (service_id)
  join parley._p_queue as q using (queue_id)
  group by q.position_sequence
$$;

comment on function parley._p_position_floors() is
'Gives the highest number of each position sequence that a message or a hint of readers reports.';

create function parley._p_object_floor() returns bigint
language sql
set search_path = pg_catalog, pg_temp
as $$
  select greatest(
    (select max(o.message_type_id) from parley._p_message_type as o),
    (select max(o.service_contract_id) from parley._p_contract as o),
    (select max(o.queue_id) from parley._p_queue as o),
    (select max(o.service_id) from parley._p_service as o),
    (select max(o.priority_id) from parley._p_priority as o),
    (select max(o.route_id) from parley._p_route as o),
    (select max(o.certificate_id) from parley._p_certificate as o),
    (select max(o.remote_service_binding_id) from parley._p_remote_service_binding as o),
    (select max(o.notification_id) from parley._p_event_notification as o),
    (select max(o.destination_id) from parley._p_destination as o),
    (select max(o.peer_id) from parley._p_peer as o),
    (select max(o.object_id) from parley._p_permission as o)
  )
$$;

comment on function parley._p_object_floor() is 'Gives the highest id that an object of the catalog has.';

create view parley._p_moving_systems as
select n.nspname as schema, p.proname as function
from pg_proc as p
join pg_namespace as n on n.oid = p.pronamespace
where n.nspname like E'parley\\_%' and p.proname in ('_p_sequence_floors', '_p_go_on_elsewhere') and p.pronargs = 0
  and p.proowner = (select o.nspowner from pg_namespace as o where o.nspname = 'parley')
  and n.nspowner = p.proowner;

comment on view parley._p_moving_systems is
'Functions by which systems on the broker take part when it moves, of the same owner as the schema parley.';

create function parley._p_sequence_floors() returns table (sequence regclass, floor bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_schema text;
begin
  return query select f.sequence, f.floor from parley._p_position_floors() as f;
  return query
  select 'parley._p_object_id'::regclass, parley._p_object_floor()
  union all
  select 'parley._p_transmission_position'::regclass, null
  union all
  select 'parley._p_catalog_version'::regclass, greatest(
    (select max(d.catalog_version) from parley._p_local_dialog as d),
    (select max(e.bound_version) from parley._p_endpoint as e)
  )
  union all
  select 'parley._p_trace_sequence'::regclass, max(e.event_sequence) from parley._p_trace_event as e;
  return query select f.sequence, f.floor from parley._p_identity_floors('parley') as f;
  for v_schema in
    select s.schema from parley._p_moving_systems as s where s.function = '_p_sequence_floors' order by s.schema
  loop
    return query select f.sequence, f.floor from parley._p_identity_floors(v_schema) as f;
    return query execute format('select f.sequence, f.floor from %I._p_sequence_floors() as f', v_schema);
  end loop;
end
$$;

comment on function parley._p_sequence_floors() is
'Gives for each sequence the highest number that a row says was drawn from it; a sequence may have several rows, and a
null is no number.';

create function parley._p_sequences_behind() returns table (sequence regclass, last_number bigint, floor bigint)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sequences regclass[];
  v_floors bigint[];
begin
  -- The rows first: what is drawn meanwhile makes no sequence seem to be behind.
  select array_agg(f.sequence), array_agg(f.floor) into v_sequences, v_floors
  from (
    select s.sequence, max(s.floor) as floor
    from parley._p_sequence_floors() as s
    group by s.sequence
    having max(s.floor) > 0
  ) as f;
  return query
  select b.sequence, b.last_number, b.floor
  from unnest(v_sequences, parley._p_last_values(v_sequences), v_floors) as b (sequence, last_number, floor)
  where b.last_number < b.floor
  order by b.sequence::text;
end
$$;

comment on function parley._p_sequences_behind() is
'Gives the sequences of which a row has a higher number than was drawn: what gets the numbers in between is lost, or
taken for something else.';

create function parley._p_passed_by() returns table (lane integer, messages bigint)
language sql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
  select l.lane, count(*)
  from (select distinct h.lane from parley._p_scan_hint as h) as l
  cross join lateral parley._p_newest_hint(l.lane) as h
  join parley._p_message as m on m.lane = l.lane and m.position < h.low_position
  left join parley._p_endpoint as e on e.endpoint_id = m.endpoint_id
  where m.endpoint_id < 0 or e.state <> 'DO'
  group by l.lane
$$;

comment on function parley._p_passed_by() is
'Gives how many messages of a lane stand before where readers begin: none of them is ever received.';

create function parley._p_advance_sequences() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_advanced integer;
begin
  -- A thousand more, for what is drawn while they are set.
  select count(setval(b.sequence, b.floor + 1024)) into v_advanced from parley._p_sequences_behind() as b;
  -- A row that was numbered too low comes back when readers begin at the front once more.
  if v_advanced > 0 or exists (select from parley._p_passed_by()) then
    lock table parley._p_scan_hint in exclusive mode;
    delete from parley._p_scan_hint as h;
    insert into parley._p_scan_hint (
      lane, low_position, safe_position, probe_position, probe_senders, blocked_endpoints, blocked_positions,
      resume_position
    )
    select p.lane, 0, 0, 0, '{}', '{}', '{}', 0 from parley._p_passed_by() as p;
  end if;
  return v_advanced;
end
$$;

comment on function parley._p_advance_sequences() is
'Puts every sequence behind the numbers that rows have, and lets readers find again what they have passed by; gives how
many sequences were behind.
Errors: 55P03 when readers do not finish within lock_timeout.';

create function parley._p_find_sequences_behind(scope parley._p_scope)
returns table (code text, object_kind text, object_name text, cause text, since timestamptz, cure text)
language sql
set search_path = pg_catalog, pg_temp
as $$
  select 'sequence-behind', 'sequence', b.sequence::text,
    format(
      'It has given %s, and there are rows with numbers up to %s: what gets the numbers in between is passed by.',
      b.last_number, b.floor
    ),
    null::timestamptz, 'select parley.enable_broker();'
  from parley._p_sequences_behind() as b
  where scope.queue_ids is null and scope.endpoint_ids is null and scope.contract is null
    and scope.from_service is null and scope.to_service is null
  union all
  select 'messages-passed-by', 'queue', coalesce(q.lookup_name, 'lane ' || p.lane),
    format('%s messages stand before where its readers begin: they are not received.', sum(p.messages)),
    null::timestamptz, 'select parley.enable_broker();'
  from parley._p_passed_by() as p
  left join parley._p_queue as q on q.queue_id = parley._p_owner_of_lane(p.lane)
  where scope.endpoint_ids is null
    and (scope.queue_ids is null or parley._p_owner_of_lane(p.lane) = any (scope.queue_ids))
  group by coalesce(q.lookup_name, 'lane ' || p.lane)
$$;

comment on function parley._p_find_sequences_behind(parley._p_scope) is
'Finds sequences that are behind the rows with their numbers, and messages that were passed by because of it.';
