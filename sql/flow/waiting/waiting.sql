-- Waiting for answers: a request waits for its answer under a token (flow/waiting/requests.sql).
--
-- Instances of orchestrations wait by values of properties, and are found without a lock: whether one is there still is
-- decided when its host claims the message (flow/subscriptions/waits.sql). A client has no host that would claim, so
-- the row of its request decides, under a lock.
--
-- Invariants, and what keeps each:
--   an answer goes to no request that has ended   a session that publishes locks the row of the request, and a session
--     that ends it deletes that row: one waits for the other
--   a message that is no answer costs nothing   it has no token
-- Locks: rows of _p_request, by token.

create function parley_flow._p_is_waited_for(promoted jsonb[]) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (select from unnest(promoted) as u (promoted) where u.promoted ? 'CorrelationToken')
$$;

comment on function parley_flow._p_is_waited_for(jsonb[]) is
'Reports whether one of some messages, whose promoted properties are given, is an answer.';

create function parley_flow._p_reach_waiters(ids bigint[], promoted jsonb[], are_failed boolean[])
returns integer[]
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_reached integer[] := array_fill(0, array[cardinality(ids)]);
  v_n integer;
begin
  -- In the order of the tokens: two batches with the same ones do not wait for each other.
  for v_n in
    select u.n
    from unnest(promoted) with ordinality as u (promoted, n)
    where are_failed[u.n] is not true and u.promoted ? 'CorrelationToken'
    order by u.promoted ->> 'CorrelationToken', u.n
  loop
    v_reached[v_n] := parley_flow._p_reach_request(ids[v_n], promoted[v_n] ->> 'CorrelationToken');
  end loop;
  return v_reached;
end
$$;

comment on function parley_flow._p_reach_waiters(bigint[], jsonb[], boolean[]) is
'Gives answers to the requests that wait for them; gives of each message how many do: 0 of what is no answer, and what
_p_reach_request gives.
Arguments: ids and promoted properties, an element for each message; are_failed, those that nothing waits for.';
