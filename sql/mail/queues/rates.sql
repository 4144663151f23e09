-- Rates: how many messages may leave in a time, by destination, sender or source (spec mail 11.3).
--
-- A rate of a send connector is a token bucket for each value of its key. It holds up to "burst" tokens, "messages" (or
-- "recipients") of them come in "per" seconds, and a message that leaves takes one. The buckets are rows, so all
-- daemons share them; a connector without rates has none, and nothing is asked.
--
-- Where there is no token the daemon puts the work off and counts no attempt. It puts off the whole queue, where the
-- key of the rate follows from the queue (DOMAIN, HOST, REMOTE_IP, SOURCE), or else the message (SENDER_DOMAIN, ROLE,
-- TAG). It gets a time at which its tokens will have come, behind those that were put off before it (reserved_to): so a
-- backlog comes back at the rate and not at once.
--
-- Locks: buckets in the order of their keys, then the lease. Cost: five statements for a batch of messages, only where
-- there are rates. The one that gives the demands is PL/pgSQL, which keeps its plan.

create table parley_mail._p_rate_bucket (
  connector text not null,
  key text not null,
  value text not null,
  per integer not null,
  tokens double precision not null,
  filled_at timestamptz not null,
  reserved_to timestamptz not null,
  primary key (connector, key, value, per)
) with (fillfactor = 50);

comment on table parley_mail._p_rate_bucket is
'Token buckets: how many tokens there were at filled_at, and up to when those to come are promised.';

create type parley_mail._p_demand as (
  item bigint,
  key text,
  value text,
  per integer,
  cost integer,
  amount integer,
  burst integer
);

comment on type parley_mail._p_demand is 'That a message takes cost tokens of a bucket.';

create function parley_mail._p_demands(
  connector text, lane text, items bigint[], message_ids bigint[], host text, source text, remote text
) returns setof parley_mail._p_demand
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select distinct u.item, r.key, case when r.match like '*.%' then r.match else v.value end, r.per,
    case when r.is_of_recipients then p.recipients else 1 end, r.amount, r.burst
  from unnest(items, message_ids) as u (item, message_id)
  join parley_mail._p_message as m on m.message_id = u.message_id
  cross join lateral (
    select array_agg(distinct parley_mail._p_domain_of(o.address)) as domains, count(*)::integer as recipients
    from parley_mail._p_recipient as o
    where o.message_id = u.message_id and o.lane = _p_demands.lane
  ) as p
  join parley_mail._p_rate as r on r.connector = _p_demands.connector
  cross join lateral (
    select parley_mail._p_folded(a.value) as value
    from unnest(case r.key
      when 'DOMAIN' then p.domains
      when 'HOST' then array[_p_demands.host]
      when 'REMOTE_IP' then array[_p_demands.remote]
      when 'SENDER_DOMAIN' then array[parley_mail._p_domain_of(m.sender)]
      when 'ROLE' then array[coalesce(parley._p_name_with(m.submitted_by), m.authenticated_as)]
      when 'TAG' then array[m.tag]
      when 'SOURCE' then array[_p_demands.source]
    end) as a (value)
    where a.value is not null
  ) as v
  where r.match is null or r.match = v.value or r.match like '*.%' and v.value like '%' || substr(r.match, 2);
end
$$;

comment on function parley_mail._p_demands(text, text, bigint[], bigint[], text, text, text) is
'Gives of which buckets some messages take tokens.';

create function parley_mail._p_lock_buckets(connector text, demands parley_mail._p_demand[], now timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_mail._p_rate_bucket (connector, key, value, per, tokens, filled_at, reserved_to)
  select distinct _p_lock_buckets.connector, d.key, d.value, d.per, d.burst, now, now
  from unnest(demands) as d
  order by 2, 3, 4
  on conflict do nothing;
  perform
  from parley_mail._p_rate_bucket as b
  where b.connector = _p_lock_buckets.connector
    and (b.key, b.value, b.per) in (select d.key, d.value, d.per from unnest(demands) as d)
  order by b.key, b.value, b.per
  for update;
  update parley_mail._p_rate_bucket as b
  set tokens = least(
      d.burst,
      b.tokens + greatest(extract(epoch from clock_timestamp() - b.filled_at), 0) * d.amount::double precision / d.per
    ),
    filled_at = clock_timestamp()
  from (select distinct e.key, e.value, e.per, e.amount, e.burst from unnest(demands) as e) as d
  where b.connector = _p_lock_buckets.connector and b.key = d.key and b.value = d.value and b.per = d.per;
end
$$;

comment on function parley_mail._p_lock_buckets(text, parley_mail._p_demand[], timestamptz) is
'Makes the buckets that there are not yet, locks all, in one order, and fills in what has come since.';

create function parley_mail._p_put_off(
  connector text, demands parley_mail._p_demand[], item bigint, messages integer
) returns timestamptz
language sql
set search_path = pg_catalog, pg_temp
as $$
  with reserved as (
    update parley_mail._p_rate_bucket as b
    set reserved_to = greatest(b.reserved_to, clock_timestamp())
      + least(d.cost * messages, d.burst) * d.per / d.amount::double precision * interval '1 second'
    from unnest(demands) as d
    where d.item = _p_put_off.item and b.connector = _p_put_off.connector
      and b.key = d.key and b.value = d.value and b.per = d.per and b.tokens < least(d.cost, d.burst)
    returning b.reserved_to
  )
  select max(r.reserved_to) from reserved as r
$$;

comment on function parley_mail._p_put_off(text, parley_mail._p_demand[], bigint, integer) is
'Gives when a message, and so many others of its kind, will have their tokens, behind those that were put off before.';

create function parley_mail._p_delay_rated(
  lane text, lease_id bigint, items bigint[], message_ids bigint[], delayed jsonb
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group record;
begin
  for v_group in
    select e.key as due, array(select i.id::bigint from jsonb_array_elements_text(e.value) as i (id)) as items
    from jsonb_each(delayed) as e
    order by e.key
  loop
    perform parley_store.delay_work(lease_id, v_group.items, v_group.due::timestamptz, 'rate', false);
    perform parley_mail._p_track_operation(
      'THROTTLE', array_agg(u.message_id), array_agg(lane), format('rate; the message waits until %s', v_group.due),
      'QUEUE'
    )
    from unnest(items, message_ids) as u (item_id, message_id)
    where u.item_id = any (v_group.items);
  end loop;
end
$$;

comment on function parley_mail._p_delay_rated(text, bigint, bigint[], bigint[], jsonb) is
'Puts off messages that found no tokens, with the event THROTTLE.
Arguments: lane; lease_id; items and message_ids; delayed, lists of items by the time when they are due.
Source: spec mail 11.3, 16.';

create function parley_mail._p_permit(
  lane text, lease_id bigint, items bigint[], message_ids bigint[], host text, source text, remote text default null,
  caller parley.caller default parley.current_caller()
) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_connector text;
  v_is_of_domain boolean;
  v_demands parley_mail._p_demand[];
  v_item bigint;
  v_lacking text;
  v_due timestamptz;
  v_permitted bigint[] := '{}'::bigint[];
  v_delayed jsonb := '{}'::jsonb;
  v_expired bigint[] := '{}'::bigint[];
  v_expires timestamptz;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  select p.connector, k.next_hop_is_domain into v_connector, v_is_of_domain
  from parley_mail._p_parts_of_lane(lane) as p
  join parley_mail._p_delivery_kind as k on k.kind = p.kind;
  v_demands := array(
    select d from parley_mail._p_demands(v_connector, lane, items, message_ids, host, source, remote) as d
  );
  if cardinality(v_demands) = 0 then
    return items;
  end if;
  perform parley_mail._p_lock_buckets(v_connector, v_demands, clock_timestamp());
  foreach v_item in array items loop
    v_lacking := null;
    select d.key into v_lacking
    from unnest(v_demands) as d
    join parley_mail._p_rate_bucket as b
      on b.connector = v_connector and b.key = d.key and b.value = d.value and b.per = d.per
    where d.item = v_item and b.tokens < least(d.cost, d.burst)
    order by (d.key in ('HOST', 'REMOTE_IP', 'SOURCE') or d.key = 'DOMAIN' and v_is_of_domain) desc, d.key
    limit 1;
    if v_lacking is not null then
      select m.expires_at into v_expires
      from parley_mail._p_message as m
      where m.message_id = message_ids[array_position(items, v_item)];
    end if;
    if v_lacking is null then
      update parley_mail._p_rate_bucket as b
      set tokens = b.tokens - d.cost
      from unnest(v_demands) as d
      where d.item = v_item and b.connector = v_connector and b.key = d.key and b.value = d.value and b.per = d.per;
      v_permitted := v_permitted || v_item;
    elsif v_expires <= clock_timestamp() then
      v_expired := v_expired || v_item;
    elsif v_lacking in ('HOST', 'REMOTE_IP', 'SOURCE') or v_lacking = 'DOMAIN' and v_is_of_domain then
      -- The other items would find no token either.
      v_due := parley_mail._p_put_off(
        v_connector, v_demands, v_item, cardinality(items) - array_position(items, v_item) + 1
      );
      perform parley_store.release_work(lease_id, array(
        select i.id
        from unnest(items) as i (id)
        where i.id <> all (v_permitted || v_expired) and not jsonb_path_exists(
          v_delayed, '$.* ? (@[*] == $id)', jsonb_build_object('id', i.id)
        )
      ));
      perform parley_store.postpone_lane('mail', lane, v_due, format('rate by %s', v_lacking));
      perform parley_mail._p_track_operation(
        'THROTTLE', message_ids[array_position(items, v_item):array_position(items, v_item)], array[lane],
        format('rate by %s; the queue waits', v_lacking), 'QUEUE'
      );
      exit;
    else
      v_due := least(
        date_trunc('second', parley_mail._p_put_off(v_connector, v_demands, v_item, 1)) + interval '1 second', v_expires
      );
      v_delayed := jsonb_set(
        v_delayed, array[v_due::text], coalesce(v_delayed -> v_due::text, '[]'::jsonb) || to_jsonb(v_item)
      );
    end if;
  end loop;
  perform parley_mail._p_expire_items(lease_id, v_expired);
  perform parley_mail._p_delay_rated(lane, lease_id, items, message_ids, v_delayed);
  return v_permitted;
end
$$;

comment on function parley_mail._p_permit(text, bigint, bigint[], bigint[], text, text, text, parley.caller) is
'Takes tokens for claimed messages that are to be sent now, and gives the items that got theirs. The others are no more
under the lease: they are put off, no attempt counted, or their queue is; those whose time is over are given up.
Arguments: lane; lease_id; items and message_ids, in the order in which they are sent; host, source and remote, the name
of the host to which the connection is, the address from which it comes and that to which it goes, null where there is
none yet.
Errors: PM001 the role does not hold SERVE, PS005 the lease is over.
Source: spec mail 11.3.';
