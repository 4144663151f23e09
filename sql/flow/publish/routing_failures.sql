-- Failures of routing: one row for a cause, with a count, never one for a message.
--
-- The cause is where the messages came from, their type, and which subscription was nearest by what it missed; its
-- number follows from that. A publisher whose message fails appends to _p_routing_hit and waits for nobody, whose
-- transaction stays open as long as it likes; maintenance makes the rows of causes, and adds up.

create table parley_flow._p_routing_failure (
  cause_id bigint primary key,
  receive_port text,
  location text,
  message_type text,
  explanation text not null,
  send_port text,
  port_group text,
  receive text,
  missed jsonb,
  failures bigint not null default 0,
  first_at timestamptz not null default clock_timestamp(),
  last_at timestamptz not null default clock_timestamp(),
  sample_message_id bigint not null,
  sample jsonb not null
);

comment on table parley_flow._p_routing_failure is
'Causes for which messages matched nothing. cause_id: 48 bits of a hash of what makes the cause; explanation:
NO_SUBSCRIPTION, NOT_ENLISTED, NO_INSTANCE, UNTYPED, ENCODING, ONE_PREDICATE or SEVERAL_PREDICATES; send_port and
port_group: whose filter was nearest; receive: of an orchestration, the place of the receive at which an instance waits;
missed: predicates that were not satisfied; sample: the promoted properties of the newest message that was added up.';

create index _p_routing_failure_last on parley_flow._p_routing_failure (last_at);

create table parley_flow._p_routing_hit (
  cause_id bigint not null,
  at timestamptz not null default clock_timestamp(),
  failures integer not null,
  message_id bigint not null,
  sample jsonb not null,
  cause jsonb
);

comment on table parley_flow._p_routing_hit is
'Failures of routing that have not been added up yet. cause: columns of _p_routing_failure, where the publisher saw no
row of the cause.';

alter table parley_flow._p_routing_hit replica identity full;

create view parley_flow._p_routing_cause as
select f.cause_id, f.receive_port, f.location, f.message_type, f.explanation, f.send_port, f.port_group, f.receive,
  f.missed, f.failures, f.first_at, f.last_at, f.sample_message_id, f.sample
from parley_flow._p_routing_failure as f
union all
(
  select distinct on (h.cause_id) h.cause_id, c.receive_port, c.location, c.message_type, c.explanation, c.send_port,
    c.port_group, c.receive, c.missed, 0, h.at, h.at, h.message_id, h.sample
  from parley_flow._p_routing_hit as h
  cross join jsonb_populate_record(null::parley_flow._p_routing_failure, h.cause) as c
  where h.cause is not null
    and not exists (select from parley_flow._p_routing_failure as f where f.cause_id = h.cause_id)
  order by h.cause_id, h.at
);

comment on view parley_flow._p_routing_cause is
'The causes that there are, also those that have not been added up; failures are those that have been.';

create function parley_flow._p_record_routing_failure(
  draft parley_flow._p_draft, origin parley_flow._p_origin, failures integer
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_explanation constant parley_flow._p_explanation := parley_flow._p_explain(draft);
  v_cause constant jsonb := jsonb_build_object(
    'receive_port', (
      select p.name from parley_flow._p_receive_port as p where p.receive_port_id = origin.receive_port_id
    ),
    'location', (select l.name from parley_flow._p_receive_location as l where l.location_id = origin.location_id),
    'message_type', draft.message_type, 'explanation', v_explanation.explanation,
    'send_port', v_explanation.send_port, 'port_group', v_explanation.port_group, 'missed', v_explanation.missed
  ) || case
    when v_explanation.receive is null then '{}' else jsonb_build_object('receive', v_explanation.receive)
  end;
  v_id constant bigint := (
    'x' || encode(substr(sha256(convert_to(v_cause::text, 'UTF8')), 1, 6), 'hex')
  )::bit(48)::bigint;
begin
  insert into parley_flow._p_routing_hit (cause_id, failures, message_id, sample, cause)
  values (
    v_id, failures, draft.message_id, parley_flow._p_without_sensitive(draft.promoted),
    case when not exists (select from parley_flow._p_routing_failure as f where f.cause_id = v_id) then v_cause end
  );
  return v_id;
end
$$;

comment on function parley_flow._p_record_routing_failure(parley_flow._p_draft, parley_flow._p_origin, integer) is
'Counts messages that matched nothing under their cause, and gives the cause.
Arguments: draft, one of them; origin; failures, how many.';

create function parley_flow._p_without_sensitive(promoted jsonb) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(p.key, p.value), '{}')
  from jsonb_each(promoted) as p
  where not exists (select from parley_flow._p_property as y where y.name = p.key and y.is_sensitive)
$$;

comment on function parley_flow._p_without_sensitive(jsonb) is
'Gives properties without those that are declared sensitive.';

create function parley_flow._p_fold_routing_failures() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_folded integer;
begin
  insert into parley_flow._p_routing_failure (
    cause_id, receive_port, location, message_type, explanation, send_port, port_group, receive, missed, first_at,
    last_at, sample_message_id, sample
  )
  select c.cause_id, c.receive_port, c.location, c.message_type, c.explanation, c.send_port, c.port_group,
    c.receive, c.missed, c.first_at, c.last_at, c.sample_message_id, c.sample
  from parley_flow._p_routing_cause as c
  where not exists (select from parley_flow._p_routing_failure as f where f.cause_id = c.cause_id)
  order by c.cause_id
  on conflict do nothing;
  with taken as (
    delete from parley_flow._p_routing_hit as h
    where h.ctid = any (array(
      select o.ctid
      from parley_flow._p_routing_hit as o
      -- One that was committed since has no row of its cause yet.
      where exists (select from parley_flow._p_routing_failure as f where f.cause_id = o.cause_id)
      limit 10000
      for update skip locked
    ))
    returning h.cause_id, h.at, h.failures, h.message_id, h.sample
  ),

  summed as (
    select t.cause_id, sum(t.failures) as failures, max(t.at) as last_at,
      (array_agg(t.message_id order by t.at desc))[1] as message_id,
      (array_agg(t.sample order by t.at desc))[1] as sample
    from taken as t
    group by t.cause_id
  ),

  added as (
    update parley_flow._p_routing_failure as f
    set failures = f.failures + s.failures, last_at = greatest(f.last_at, s.last_at), sample_message_id = s.message_id,
      sample = s.sample
    from summed as s
    where f.cause_id = s.cause_id
  )

  select count(*)::integer into v_folded from taken as t;
  return v_folded;
end
$$;

comment on function parley_flow._p_fold_routing_failures() is
'Makes the rows of causes that are new, and adds up failures of routing; gives how many rows it has added.';
