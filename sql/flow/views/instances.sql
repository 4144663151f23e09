-- Views of instances: where each stands, and what it waits for.

create function parley_flow._p_shown_wait(property text, value text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when exists (select from parley_flow._p_property as y where y.name = property and y.is_sensitive)
      then 'hidden'
    else value
  end
$$;

comment on function parley_flow._p_shown_wait(text, text) is
'Gives what operators see of a value by which an instance waits: nothing of a sensitive one.';

create function parley_flow._p_waits_for(instance_id bigint) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(w.what order by w.place, w.name), '[]')
  from (
    select 1 as place, o.wait as name, jsonb_build_object(
        'kind', 'receive', 'shape', o.receive, 'is_open', o.is_open,
        'values', (
          select jsonb_object_agg(e.key, parley_flow._p_shown_wait(e.key, e.value))
          from jsonb_each_text(coalesce(o.others, '{}') || jsonb_build_object(o.property, o.value)) as e
        )
      ) as what
    from parley_flow._p_instance_wait as o
    where o.instance_id = $1
    union all
    select 2, t.timer, jsonb_build_object(
        'kind', case when t.timer = '' then 'next attempt' else 'timer' end, 'shape', t.timer, 'at', t.at
      )
    from parley_flow._p_instance_timer as t
    where t.instance_id = $1
    union all
    -- Its own name would let whoever reads this answer for the worker.
    select 3, a.name, jsonb_strip_nulls(jsonb_build_object(
        'kind', 'activity', 'shape', a.name, 'queue', a.queue, 'attempt', a.attempt, 'due_at', a.due_at,
        'error', a.error
      ))
    from parley_flow._p_instance_activity as a
    where a.instance_id = $1 and a.done_at is null
  ) as w
$$;

comment on function parley_flow._p_waits_for(bigint) is
'Gives what an instance waits for: [{"kind", "shape", ...}], receives, timers and activities.';

create function parley_flow._p_instance_rows(
  instances bigint[] default null, caller parley.caller default parley.current_caller()
)
returns table (
  instance_id bigint, orchestration text, version integer, application text, host text, status text,
  began_at timestamptz, changed_at timestamptz, steps bigint, attempts integer, message_id bigint, convoy_key text,
  state_bytes integer, unread bigint, waits_for jsonb, passed jsonb,
  stands_at text[], code text, path text, error text, remedy text
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select i.instance_id, s.name, i.version, s.application, h.name, i.status, i.began_at, i.changed_at, i.steps,
    i.attempts, i.parent_id, case when i.convoy_key is not null and exists (
      select from parley_flow._p_property as y where y.name = any (s.convoy) and y.is_sensitive
    ) then 'hidden' else i.convoy_key end, octet_length(i.state),
    (
      select count(*)
      from parley_flow._p_instance_event as e
      where e.instance_id = i.instance_id and e.message_id is not null
    ), parley_flow._p_waits_for(i.instance_id), i.passed, i.stands_at, i.fault ->> 'code', i.fault ->> 'path',
    i.fault ->> 'message', i.fault ->> 'remedy'
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_instance as i
  join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
  join parley_flow._p_host as h on h.host_id = s.host_id
  where (a.applications = array['*'] or s.application = any (a.applications))
    and (instances is null or i.instance_id = any (instances))
$$;

comment on function parley_flow._p_instance_rows(bigint[], parley.caller) is
'Gives what parley_flow.instances shows; of some instances, or of all.';

create view parley_flow.instances as
select i.instance_id, i.orchestration, i.version, i.application, i.host, i.status, i.began_at, i.changed_at, i.steps,
  i.attempts, i.message_id, i.convoy_key, i.state_bytes, i.unread, i.waits_for, i.passed, i.stands_at, i.code, i.path,
  i.error, i.remedy
from parley_flow._p_instance_rows() as i;

comment on view parley_flow.instances is
'Instances of orchestrations that are not over, for who holds VIEW. message_id: that began it; unread: messages that
came for it and that it cannot take yet; waits_for: receives, timers and activities; passed: shapes that it went
through and how often; stands_at: those at which it stands; code to remedy: why it is suspended, or tried again.';

create function parley_flow.instances_matching(
  filter jsonb default '{}', top integer default 1000, after bigint default null,
  caller parley.caller default parley.current_caller()
) returns setof parley_flow.instances
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_flow._p_require_instance_filter(filter);
  found := parley_flow._p_require_top(top);
  return query
  select r.*
  from parley_flow._p_instance_rows(parley_flow._p_instances_matching(
    filter, parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW'), after, top
  ), caller) as r
  order by r.instance_id;
end
$$;

comment on function parley_flow.instances_matching(jsonb, integer, bigint, parley.caller) is
'Gives the next instances that a filter matches, of applications for which the caller holds VIEW, by their numbers.
Arguments: filter, conditions as docs/internals/orchestrations.md lists them; top, how many at most; after, the number
behind which they stand.
Errors: PF010 malformed.';

create function parley_flow._p_orchestration_rows(caller parley.caller default parley.current_caller())
returns table (
  name text, application text, host text, state text, version integer, waiting bigint, new bigint, instances bigint,
  retrying bigint, suspended bigint, versions jsonb, oldest timestamptz
)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select s.name, s.application, h.name, s.state, s.version, coalesce(c.items, 0)::bigint,
    coalesce(i.new, 0)::bigint, coalesce(i.instances, 0)::bigint, coalesce(i.retrying, 0)::bigint,
    coalesce(i.suspended, 0)::bigint, coalesce(i.versions, '{}'), i.oldest
  from (
    select parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW') as applications
  ) as a
  cross join parley_flow._p_send_port as s
  join parley_flow._p_host as h on h.host_id = s.host_id
  left join lateral (
    select sum(v.n) as instances, sum(v.new) as new, sum(v.retrying) as retrying, sum(v.suspended) as suspended,
      jsonb_object_agg(v.version, v.n) as versions, min(v.oldest) as oldest
    from (
      select o.version, count(*) as n, count(*) filter (where o.status = 'NEW') as new,
        count(*) filter (where o.status = 'RETRYING') as retrying,
        count(*) filter (where o.status = 'SUSPENDED') as suspended, min(o.began_at) as oldest
      from parley_flow._p_instance as o
      where o.send_port_id = s.send_port_id
      group by o.version
    ) as v
  ) as i on true
  left join (
    select o.system, parley_flow._p_port_of_lane(o.lane) as port, sum(o.items) as items
    from parley_store.lane_counts as o
    group by 1, 2
  ) as c on c.system = h.system and c.port = s.name
  where s.is_process and (a.applications = array['*'] or s.application = any (a.applications))
$$;

comment on function parley_flow._p_orchestration_rows(parley.caller) is 'Gives what parley_flow.orchestrations shows.';

create view parley_flow.orchestrations as
select o.name, o.application, o.host, o.state, o.version, o.waiting, o.new, o.instances, o.retrying, o.suspended,
  o.versions, o.oldest
from parley_flow._p_orchestration_rows() as o;

comment on view parley_flow.orchestrations is
'Orchestrations, their states and how many instances they have, for who holds VIEW. waiting: deliveries that were not
claimed yet; new, retrying, suspended: instances of those states; versions: how many of each version.';

create function parley_flow._p_without_tokens_of(instance_id bigint, state text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_shown text := regexp_replace(
    state, E'"CorrelationToken"\\s*:\\s*"(?:[^"\\\\]|\\\\.)*"', '"CorrelationToken":"hidden"', 'g'
  );
  v_activity text;
begin
  for v_activity in
    select a.activity from parley_flow._p_instance_activity as a where a.instance_id = $1
  loop
    v_shown := replace(v_shown, to_json(v_activity)::text, '"hidden"');
  end loop;
  return v_shown;
end
$$;

comment on function parley_flow._p_without_tokens_of(bigint, text) is
'Gives the state of an instance without tokens of requests and names of activities: whoever has one of them could answer
for somebody else.';

create function parley_flow.read_instance(
  instance_id bigint, caller parley.caller default parley.current_caller()
) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_instance record;
begin
  select i.state, s.application into v_instance
  from parley_flow._p_instance as i
  join parley_flow._p_send_port as s on s.send_port_id = i.send_port_id
  where i.instance_id = $1;
  found := parley_flow._p_require(v_caller, 'READ_CONTENT', v_instance.application);
  if v_instance.application is null then
    found := parley_flow._p_raise('instance', coalesce($1::text, 'null'));
  end if;
  perform parley_flow._p_record_audit(v_caller, 'read', format('instance %s', $1), null);
  return parley_flow._p_without_tokens_of($1, v_instance.state);
end
$$;

comment on function parley_flow.read_instance(bigint, parley.caller) is
'Gives the state of an instance, JSON as its program left it, with what it has of messages, and without tokens of
requests and names of activities; that it was read is recorded. Null before its first step has succeeded.
Errors: PF001 without READ_CONTENT for its application, PF006 it is over.';

create function parley_flow.track_instance(
  instance_id bigint, caller parley.caller default parley.current_caller()
) returns table (at timestamptz, event text, host text, orchestration text, fields jsonb)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_applications constant text[] := parley_flow._p_applications_of(parley.caller_role(caller), 'VIEW');
begin
  return query
  select t.at, t.event, nullif(t.source, ''), t.fields ->> 'send_port', t.fields - 'send_port'
  from parley_store.tracking as t
  left join parley_flow._p_send_port as s on s.name = t.fields ->> 'send_port'
  where t.system = 'flow' and t.message_id = format('i%s', $1)
    and (v_applications = array['*'] or s.application = any (v_applications))
  order by t.at;
end
$$;

comment on function parley_flow.track_instance(bigint, parley.caller) is
'Gives what was tracked of an instance: faults, and its end with the shapes that it went through. Of applications for
which the caller holds VIEW.';

create function parley_flow.read_definition(
  orchestration text, version integer default null, caller parley.caller default parley.current_caller()
) returns jsonb
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_application text := (
    select s.application from parley_flow._p_send_port as s where s.name = $1 and s.is_process
  );
begin
  found := parley_flow._p_require(parley.caller_role(caller), 'VIEW', v_application);
  return (
    select v.settings
    from parley_flow._p_orchestration_version as v
    where v.name = $1 and ($2 is null or v.version = $2)
    order by v.version desc
    limit 1
  );
end
$$;

comment on function parley_flow.read_definition(text, integer, parley.caller) is
'Gives what an orchestration does in a version, null: in the newest; null when there is none.
Errors: PF001 without VIEW for its application.';
