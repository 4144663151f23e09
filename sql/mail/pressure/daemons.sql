-- The daemons that serve mail, and what they last reported: each ten seconds, and when something changes.
--
-- A row each, of its name. One that has not reported for a minute is away; what it refused is taken again. Rows are
-- removed a day after the last report.
-- Locks: the daemon's own row, then that of the organization, where submission by SQL is refused or was.

create table parley_mail._p_daemon (
  name text primary key,
  role text not null,
  host text,
  process_id integer,
  version text,
  serving_since timestamptz not null default clock_timestamp(),
  reported_at timestamptz not null default clock_timestamp(),
  stopped_at timestamptz,
  configuration_version bigint,
  level text not null default 'NORMAL',
  actions text[] not null default '{}',
  resources jsonb not null default '[]',
  problems jsonb not null default '[]',
  counters jsonb not null default '[]',
  listeners text[] not null default '{}'
) with (fillfactor = 50);

comment on table parley_mail._p_daemon is
'Daemons of mail. resources: array of {resource, value, level, unit}; problems: array of
{code, kind, object, cause, cure}, cure where it is not that of the code;
counters: array of {object, counter, instance, value}; listeners: where it receives mail, as address:port.';

create function parley_mail._p_report_daemon(
  name text, report jsonb, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley.caller_role(caller);
  v_is_start boolean := coalesce((report ->> 'is_start')::boolean, false);
  v_refusing record;
begin
  found := parley_mail._p_require(v_caller, 'SERVE');
  insert into parley_mail._p_daemon as d (
    name, role, host, process_id, version, stopped_at, configuration_version, level, actions, resources, problems,
    counters, listeners
  )
  select
    _p_report_daemon.name, pg_get_userbyid(v_caller), r.host, r.process_id, r.version,
    case when r.is_stopped then clock_timestamp() end, r.configuration_version, coalesce(r.level, 'NORMAL'),
    coalesce(r.actions, '{}'), coalesce(r.resources, '[]'), coalesce(r.problems, '[]'), coalesce(r.counters, '[]'),
    coalesce(r.listeners, '{}')
  from jsonb_to_record(report) as r (
    host text, process_id integer, version text, is_stopped boolean, configuration_version bigint, level text,
    actions text[], resources jsonb, problems jsonb, counters jsonb, listeners text[]
  )
  on conflict on constraint _p_daemon_pkey do update
  set role = excluded.role, host = excluded.host, process_id = excluded.process_id, version = excluded.version,
    serving_since = case when v_is_start then clock_timestamp() else d.serving_since end,
    reported_at = clock_timestamp(), stopped_at = excluded.stopped_at,
    configuration_version = excluded.configuration_version, level = excluded.level, actions = excluded.actions,
    resources = excluded.resources, problems = excluded.problems, counters = excluded.counters,
    listeners = excluded.listeners;
  if v_is_start then
    delete from parley_mail._p_daemon as d where d.reported_at < clock_timestamp() - interval '1 day';
  end if;
  select
    bool_or('refuse submission by SQL' = any (d.actions)) as refuses,
    bool_or('refuse exempt roles' = any (d.actions)) as is_at_floor,
    string_agg(distinct format('%s is at %s %s', r.resource, r.value, r.unit), ', ')
      filter (where r.level in ('HIGH', 'FLOOR')) as reason
  into v_refusing
  from parley_mail._p_daemon as d
  left join lateral jsonb_to_recordset(d.resources) as r (resource text, value numeric, unit text, level text) on true
  where d.stopped_at is null and d.reported_at > clock_timestamp() - interval '1 minute';
  update parley_mail._p_organization as o
  set refusing_until = case when v_refusing.refuses then clock_timestamp() + interval '1 minute' end,
    refusing_reason = case when v_refusing.refuses then v_refusing.reason || '.' end,
    is_at_floor = coalesce(v_refusing.is_at_floor, false)
  where o.refusing_until is not null or v_refusing.refuses;
end
$$;

comment on function parley_mail._p_report_daemon(text, jsonb, parley.caller) is
'Records how a daemon is doing, and whether submission by SQL is refused because a daemon that lives says so.
Arguments: name, of the daemon; report, an object as the table _p_daemon has its columns, with is_start at the first
and is_stopped at the last.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 14.3.';

create function parley_mail._p_pauses_resubmission() returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley_mail._p_daemon as d
    where 'pause resubmission' = any (d.actions)
      and d.stopped_at is null and d.reported_at > clock_timestamp() - interval '1 minute'
  )
$$;

comment on function parley_mail._p_pauses_resubmission() is
'Reports whether a daemon that serves says that resources are too short for messages to be categorized anew.
Source: spec mail 14.3.';

create function parley_mail._p_require_resubmission() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_mail._p_pauses_resubmission() then
    found := parley_mail._p_raise('pressure', 'Nothing is categorized anew while resources are short.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_resubmission() is
'Refuses to have messages categorized anew while resources are too short for it.
Errors: PM014.';

create function parley_mail._p_daemons(caller parley.caller default parley.current_caller())
returns setof parley_mail._p_daemon
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select
    d.name, d.role, d.host, d.process_id, d.version, d.serving_since, d.reported_at, d.stopped_at,
    d.configuration_version, d.level, d.actions, d.resources, d.problems, d.counters, d.listeners
  from parley_mail._p_daemon as d
  where parley_mail._p_may_see_pressure(parley.caller_role(caller))
$$;

comment on function parley_mail._p_daemons(parley.caller) is 'Gives what parley_mail.daemons shows.';

create view parley_mail.daemons as
select
  d.name,
  case
    when d.stopped_at is not null then 'STOPPED'
    when d.reported_at < clock_timestamp() - interval '1 minute' then 'AWAY'
    else 'SERVING'
  end as status,
  d.host, d.process_id, d.role, d.version, d.serving_since, d.reported_at, d.stopped_at, d.configuration_version,
  d.level, d.actions, d.problems
from parley_mail._p_daemons() as d;

comment on view parley_mail.daemons is
'Daemons that serve mail, or did in the last day.
Columns: status SERVING, AWAY (no report for a minute) or STOPPED; configuration_version, of the configuration that it
uses; level, the highest of its resources; actions, what it does because of that; problems, an array of {code, kind,
object, cause, cure}, cure where it is not that of the code.';

create view parley_mail.pressure as
select d.name as node, r.resource, r.value, r.unit, r.level, r.medium_at, r.high_at
from parley_mail._p_daemons() as d
cross join lateral jsonb_to_recordset(d.resources) as r (
  resource text, value double precision, unit text, level text, medium_at double precision, high_at double precision
)
where d.stopped_at is null and d.reported_at > clock_timestamp() - interval '1 minute';

comment on view parley_mail.pressure is
'Resources as the daemons that serve have measured them last; a value of null was not measured. The thresholds are those
that hold on the node.';
