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
    from parley_mail._p_object as o
    cross join jsonb_array_elements(o.settings -> 'retry_rules') with ordinality as r (v, n)
    where lane !~ '^(MAILBOX|SERVICE)/' and o.kind = 'send connector' and o.name = split_part(lane, '/', 2)
      and r.v ? 'policy'
      and (
        r.v ->> 'domain' is null
        or parley_mail._p_folded(r.v ->> 'domain') = any (parley_mail._p_domain_patterns(split_part(lane, '/', 3)))
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
  v_is_store constant boolean := lane like 'MAILBOX/%';
  v_given jsonb;
  v_hop parley_mail._p_hop_settings;
begin
  select o.settings into v_given
  from parley_mail._p_object as o
  where o.name = split_part(lane, '/', 2)
    and o.kind = case when v_is_store then 'mailbox store' else 'send connector' end;
  v_hop.lease_max := coalesce(
    (v_given ->> case when v_is_store then 'max_connections' else 'max_connections_per_domain' end)::integer, 20
  );
  v_hop.lease_start := case
    when v_is_store then 0 else least(coalesce((v_given ->> 'initial_connections')::integer, 5), v_hop.lease_max)
  end;
  -- Priorities of items are 1, 5 and 10; there are no others.
  v_hop.priority_shares := case
    when v_is_store then array_fill(100, array[10])
    else array_fill(coalesce((v_given ->> 'low_share')::integer, 10), array[1])
      || array_fill(coalesce((v_given ->> 'normal_share')::integer, 75), array[8])
      || coalesce((v_given ->> 'high_share')::integer, 15)
  end;
  -- A rule for every message of a domain is for its connections too.
  v_hop.retry_policy := coalesce(
    case when not v_is_store then (
      select parley_mail._p_existing_policy(r.v ->> 'policy')
      from jsonb_array_elements(v_given -> 'retry_rules') with ordinality as r (v, n)
      where not r.v ?| array['priority', 'status'] and r.v ?& array['domain', 'policy']
        and parley_mail._p_folded(r.v ->> 'domain') = any (parley_mail._p_domain_patterns(split_part(lane, '/', 3)))
      order by r.n
      limit 1
    ) end,
    parley_mail._p_existing_policy(v_given ->> 'retry_policy'),
    case when v_is_store then 'mail_store' else 'default' end
  );
  return v_hop;
end
$$;

comment on function parley_mail._p_settings_of_hop(text) is
'Gives with which limits and policy a queue works, by its connector or mailbox store.
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
    cross join lateral parley_mail._p_settings_of_hop(u.lane) as s
    left join parley_store.lanes as l on l.system = 'mail' and l.lane = u.lane
    where u.lane !~ '^(SERVICE|POISON|UNREACHABLE)/'
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
