-- Waiting for messages: whoever waits for one that is yet to come, and how that one finds him.
--
-- Two things wait. A request waits for its answer under a token (flow/waiting/requests.sql). An instance waits under
-- values of properties: a row of _p_instance_subscription has one equality by which it is found, and others that hold
-- besides. A message for it is an item of the store, in the lane that the subscription names.
--
-- Invariants, and what keeps each:
--   what is committed with a message waits for whatever follows from it   the transaction that publishes the message
--     makes the subscription
--   a message goes to no waiter that has ended   whoever delivers locks the row of the waiter, and whoever ends it
--     deletes that row: one waits for the other
--   a message of which nobody can wait costs nothing   properties by which anything may wait are rows of
--     _p_correlated_property, and most messages have none of them
-- Locks: rows of _p_request, by token; rows of _p_instance_subscription, key share, by number.

create table parley_flow._p_correlated_property (
  property text primary key,
  type text not null default 'text'
);

comment on table parley_flow._p_correlated_property is
'The properties by which anything may wait for a message.';

insert into parley_flow._p_correlated_property (property) values ('CorrelationToken');

create table parley_flow._p_instance_subscription (
  subscription_id bigint generated always as identity primary key,
  kind text not null,
  waiter_id bigint not null,
  reference text,
  hash bigint not null,
  property text not null,
  value text not null,
  others jsonb not null default '{}',
  system text not null,
  lane text not null,
  item_priority smallint not null default 6
);

comment on table parley_flow._p_instance_subscription is
'Instances that wait for a message. kind and waiter_id: who waits; reference: for what, in the words of the waiter;
property and value, canonical: the equality by which it is found; others: equalities that hold besides, {"property":
"canonical value"}; system and lane: where the item is put whose subject is the message, and whose data is the number of
the subscription; item_priority: of the item.';

create index _p_instance_subscription_hash on parley_flow._p_instance_subscription (hash);
create index _p_instance_subscription_waiter on parley_flow._p_instance_subscription (kind, waiter_id);

create function parley_flow._p_is_waited_for(promoted jsonb[]) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from unnest(promoted) as u (promoted)
    join parley_flow._p_correlated_property as p on u.promoted ? p.property
  )
$$;

comment on function parley_flow._p_is_waited_for(jsonb[]) is
'Reports whether anything may wait for one of some messages, whose promoted properties are given.';

create function parley_flow._p_reach_instances(id bigint, promoted jsonb) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_found record;
  v_reached integer := 0;
begin
  for v_found in
    with facts as materialized (
      select p.property, parley_flow._p_canonical(promoted ->> p.property, p.type) as value
      from parley_flow._p_correlated_property as p
      where promoted ->> p.property is not null
    )

    select w.subscription_id, w.system, w.lane, w.item_priority
    from facts as f
    cross join lateral (
      select o.subscription_id
      from parley_flow._p_instance_subscription as o
      where o.hash = parley_flow._p_hash(f.property, f.value) and o.property = f.property and o.value = f.value
        and not exists (
          select
          from jsonb_each_text(o.others) as e
          where not exists (select from facts as g where g.property = e.key and g.value = e.value)
        )
    ) as c
    join parley_flow._p_instance_subscription as w on w.subscription_id = c.subscription_id
    order by w.subscription_id
    for key share of w
  loop
    perform parley_store.put_work(
      v_found.system, array[v_found.lane], array[id],
      data => array[convert_to(v_found.subscription_id::text, 'UTF8')], priority => v_found.item_priority
    );
    v_reached := v_reached + 1;
  end loop;
  return v_reached;
end
$$;

comment on function parley_flow._p_reach_instances(bigint, jsonb) is
'Gives a message to the instances that wait for it; gives how many do.
Arguments: id and promoted properties of the message.';

create function parley_flow._p_reach_waiters(ids bigint[], promoted jsonb[], are_failed boolean[])
returns integer[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_reached integer[] := array_fill(0, array[cardinality(ids)]);
  v_has_instances constant boolean := exists (select from parley_flow._p_instance_subscription);
  v_instances integer;
  v_n integer;
begin
  -- In the order of the tokens: two batches with the same ones do not wait for each other.
  for v_n in
    select u.n
    from unnest(promoted) with ordinality as u (promoted, n)
    where are_failed[u.n] is not true
    order by u.promoted ->> 'CorrelationToken', u.n
  loop
    if promoted[v_n] ? 'CorrelationToken' then
      v_reached[v_n] := parley_flow._p_reach_request(ids[v_n], promoted[v_n] ->> 'CorrelationToken');
    end if;
    if v_has_instances then
      v_instances := parley_flow._p_reach_instances(ids[v_n], promoted[v_n]);
      if v_instances > 0 then
        v_reached[v_n] := greatest(v_reached[v_n], 0) + v_instances;
      end if;
    end if;
  end loop;
  return v_reached;
end
$$;

comment on function parley_flow._p_reach_waiters(bigint[], jsonb[], boolean[]) is
'Gives messages to whatever waits for them; gives of each how many do: -1 and -2 as _p_reach_request has them, where
nothing else does.
Arguments: ids and promoted properties, an element for each message; are_failed, those that nothing waits for.';
