-- Resubmission: messages that wait are categorized anew when that may help (spec mail 8.2).

create function parley_mail._p_resubmit_queue(queue text, older interval, messages integer default 1000)
returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_mail._p_resubmit('mail', array(
    select w.item_id
    from parley_store.matching_work('mail', jsonb_build_object(
      'lane', queue, 'state', jsonb_build_array('WAITING', 'DELAYED'), 'older', older::text
    ), messages) as w
  ), null);
end
$$;

comment on function parley_mail._p_resubmit_queue(text, interval, integer) is
'Has messages of a queue categorized anew that have waited there for so long; not those that are suspended. Gives how
many.
Arguments: queue; older; messages, how many at most.
Source: spec mail 8.2.';

create function parley_mail._p_resubmit_retrying(queues integer default 3) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_after interval;
  v_queue text;
  v_resubmitted integer := 0;
begin
  select coalesce((o.settings ->> 'resubmit_after')::integer, 43200) * interval '1 second' into v_after
  from parley_mail._p_organization as o;
  if v_after <= interval '0' then
    return 0;
  end if;
  -- Only what has waited so long since it was categorized: so it comes back here once in that time.
  for v_queue in
    select l.lane
    from parley_store.lanes as l
    where l.system = 'mail' and l.failing_since < clock_timestamp() - v_after and l.suspended_at is null
      and parley_store.oldest_in_lane(l.lane_id) < clock_timestamp() - v_after
    order by l.failing_since
    limit queues
  loop
    v_resubmitted := v_resubmitted + parley_mail._p_resubmit_queue(v_queue, v_after);
  end loop;
  return v_resubmitted;
end
$$;

comment on function parley_mail._p_resubmit_retrying(integer) is
'Has messages categorized anew whose queue has failed for as long as the setting resubmit_after says, without one
success; gives how many.
Arguments: queues, how many at most.
Source: spec mail 8.2.';

create function parley_mail._p_follow_configuration() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version bigint;
  v_lanes text[];
begin
  select v.version into v_version from parley_mail._p_configuration_version as v;
  perform from parley_mail._p_organization as o
  where o.is_set_up and o.followed_version < v_version
  for update skip locked;
  if not found then
    return 0;
  end if;
  select array_agg(l.lane) into v_lanes
  from parley_store.lanes as l
  cross join parley_mail._p_parts_of_lane(l.lane) as p
  join parley_mail._p_delivery_kind as k on k.kind = p.kind and k.connections_setting is not null
  cross join lateral parley_mail._p_settings_of_hop(l.lane) as s
  where l.system = 'mail'
    and (l.lease_max, l.retry_policy, l.lease_start, l.priority_shares) is distinct from
      (s.lease_max, s.retry_policy, nullif(s.lease_start, 0), s.priority_shares);
  perform parley_mail._p_set_hops(v_lanes);
  -- Unless an operator has said that what is unreachable stays there.
  if exists (
    select from parley_store.lanes as l
    where l.system = 'mail' and l.lane = 'UNREACHABLE/-/-' and l.suspended_for = 'permanent'
  ) then
    while parley_mail._p_resubmit_queue('UNREACHABLE/-/-', interval '0', 10000) > 0 loop
      null;
    end loop;
  end if;
  update parley_mail._p_organization as o set followed_version = v_version;
  return 1;
end
$$;

comment on function parley_mail._p_follow_configuration() is
'Gives queues the limits and policies of a new configuration, and has what is unreachable categorized anew; 0 when the
configuration is not new.
Source: spec mail 6.2, 8.2.';
