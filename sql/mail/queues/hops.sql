-- Next hops: with which limits and policies a queue works, and how it follows the configuration (spec mail 8.1, 11).

create function parley_mail._p_existing_policy(policy text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p.policy from parley_store.retry_policies as p where p.policy = _p_existing_policy.policy
$$;

comment on function parley_mail._p_existing_policy(text) is 'Gives a retry policy that there is; null otherwise.';

create function parley_mail._p_message_policy(lane text, priority integer, status text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select parley_mail._p_existing_policy(r.v ->> 'policy')
    from parley_mail._p_parts_of_lane(lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind
    join parley_mail._p_object as o on o.kind = k.object_kind and o.name = p.connector
    cross join jsonb_array_elements(o.settings -> 'retry_rules') with ordinality as r (v, n)
    where r.v ? 'policy'
      and (
        r.v ->> 'domain' is null
        or parley_mail._p_folded(r.v ->> 'domain') = any (parley_mail._p_domain_patterns(p.next_hop))
      )
      and coalesce(upper((r.v ->> 'priority') collate "C") = (array['HIGH', 'NORMAL', 'LOW'])[priority + 1], true)
      and coalesce(starts_with(status || '.', (r.v ->> 'status') || '.'), true)
    order by r.n
    limit 1
  ), 'mail_message')
$$;

comment on function parley_mail._p_message_policy(text, integer, text) is
'Gives the retry policy of a message that was deferred: that of the first of the rules of its connector that fits.
Arguments: lane; priority, 0 to 2; status, a code of RFC 3463.
Source: spec mail 8.1.';

create type parley_mail._p_hop_settings as (
  lease_max integer, lease_start integer, retry_policy text, priority_shares integer[]
);

comment on type parley_mail._p_hop_settings is
'How many connections to a next hop there may be, with how many to begin (0: with all), the policy of failures, and
which share of the connections each priority may have.';

create function parley_mail._p_settings_of_hop(lane text) returns parley_mail._p_hop_settings
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_given jsonb;
  v_kind record;
  v_hop parley_mail._p_hop_settings;
begin
  select k.connections_setting, k.first_connections_setting, k.has_priority_shares, k.retry_policy, p.next_hop,
    o.settings
  into v_kind
  from parley_mail._p_parts_of_lane(lane) as p
  join parley_mail._p_delivery_kind as k on k.kind = p.kind
  left join parley_mail._p_object as o on o.kind = k.object_kind and o.name = p.connector;
  v_given := v_kind.settings;
  v_hop.lease_max := coalesce((v_given ->> v_kind.connections_setting)::integer, 20);
  v_hop.lease_start := case
    when v_kind.first_connections_setting is null then 0
    else least(coalesce((v_given ->> v_kind.first_connections_setting)::integer, 5), v_hop.lease_max)
  end;
  -- Priorities of items are 1, 5 and 10; there are no others.
  v_hop.priority_shares := case
    when v_kind.has_priority_shares then array_fill(coalesce((v_given ->> 'low_share')::integer, 10), array[1])
      || array_fill(coalesce((v_given ->> 'normal_share')::integer, 75), array[8])
      || coalesce((v_given ->> 'high_share')::integer, 15)
    else array_fill(100, array[10])
  end;
  -- A rule for every message of a domain is for its connections too.
  v_hop.retry_policy := coalesce(
    (
      select parley_mail._p_existing_policy(r.v ->> 'policy')
      from jsonb_array_elements(v_given -> 'retry_rules') with ordinality as r (v, n)
      where not r.v ?| array['priority', 'status'] and r.v ?& array['domain', 'policy']
        and parley_mail._p_folded(r.v ->> 'domain') = any (parley_mail._p_domain_patterns(v_kind.next_hop))
      order by r.n
      limit 1
    ),
    parley_mail._p_existing_policy(v_given ->> 'retry_policy'), v_kind.retry_policy
  );
  return v_hop;
end
$$;

comment on function parley_mail._p_settings_of_hop(text) is
'Gives with which limits and policy a queue works, by its kind of delivery and its connector or mailbox store.
Source: spec mail 8.1, 11.1, 12.1.';

create function parley_mail._p_set_hops(lanes text[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
  v_set integer := 0;
begin
  for v_lane in
    select u.lane, s.lease_max, s.lease_start, s.retry_policy, s.priority_shares
    from (select distinct o.lane from unnest(lanes) as o (lane)) as u
    cross join parley_mail._p_parts_of_lane(u.lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind and k.connections_setting is not null
    cross join lateral parley_mail._p_settings_of_hop(u.lane) as s
    left join parley_store.lanes as l on l.system = 'mail' and l.lane = u.lane
    -- In the order in which who records outcomes locks lanes; those that are to be made, by name.
    order by l.lane_id nulls last, u.lane
  loop
    perform parley_store.set_lane(
      'mail', v_lane.lane, lease_max => v_lane.lease_max, retry_policy => v_lane.retry_policy,
      lease_start => v_lane.lease_start, priority_shares => v_lane.priority_shares
    );
    v_set := v_set + 1;
  end loop;
  return v_set;
end
$$;

comment on function parley_mail._p_set_hops(text[]) is
'Gives queues the limits and policies of their connectors or stores, and makes those that there are not; gives how
many.';
