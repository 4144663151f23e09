-- The one path of all messages into the box: match, store, deliver, and what matches nothing fails.

create function parley_flow._p_can_be_matched(messages integer, matched_messages integer[], matched_ports bigint[])
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(matched_messages) is distinct from cardinality(matched_ports) then
    found := parley_flow._p_raise(
      'lengths', 'matched_messages', coalesce(cardinality(matched_messages)::text, 'null'), 'matched_ports',
      coalesce(cardinality(matched_ports)::text, 'null')
    );
  end if;
  return not exists (
    select from unnest(matched_messages) as m (n) where (m.n between 1 and messages) is not true
  ) and not exists (
    select
    from (select distinct u.port from unnest(matched_ports) as u (port)) as p
    where not exists (
      select from parley_flow._p_send_port as s where s.send_port_id = p.port and s.state <> 'Bound'
    )
  );
end
$$;

comment on function parley_flow._p_can_be_matched(integer, integer[], bigint[]) is
'Reports whether matches that a host has found can be used: each is of a message of the batch, and of a send port that
is enlisted. Whether the filter is satisfied is believed: a host may publish anyway.
Errors: PF010 the arrays differ in length.';

create function parley_flow._p_publish_drafts(
  drafts parley_flow._p_draft[], origin parley_flow._p_origin, epoch bigint default null,
  matched_messages integer[] default null, matched_ports bigint[] default null, publishers bigint[] default null,
  publisher integer default null
) returns table (n integer, message_id bigint, outcome text)
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_ids bigint[];
  v_promoted jsonb[];
  v_are_failed boolean;
  v_ns integer[];
  v_ports integer[];
  v_deliveries integer[];
  v_reached integer[];
  v_waited_ns integer[];
  v_instances bigint[];
  v_waiting_ports integer[];
begin
  select array_agg(d.message_id order by d.n), array_agg(d.promoted order by d.n), bool_or(d.code is not null)
  into v_ids, v_promoted, v_are_failed
  from unnest(drafts) with ordinality as d (
    message_id, interchange, parent_id, size, content_id, message_type, promoted, written, parts, body, code, error, n
  );
  if epoch is not null and epoch = (select c.epoch from parley_flow._p_configuration as c)
    and parley_flow._p_can_be_matched(cardinality(drafts), matched_messages, matched_ports) then
    v_ns := matched_messages;
    v_ports := matched_ports::integer[];
  else
    select array_agg(m.n), array_agg(m.send_port_id) into v_ns, v_ports
    from parley_flow._p_match(v_promoted) as m;
  end if;
  if v_are_failed or publisher is not null then
    select array_agg(m.n), array_agg(m.port) into v_ns, v_ports
    from unnest(v_ns, v_ports) as m (n, port)
    where drafts[m.n].code is null and m.port is distinct from publisher;
  end if;
  if exists (select from parley_flow._p_awaited_property) then
    select w.ns, w.instances, w.ports into v_waited_ns, v_instances, v_waiting_ports
    from parley_flow._p_waiting_for(
      v_promoted, v_ns, v_ports, publishers, array(select d.code is not null from unnest(drafts) as d)
    ) as w;
  end if;
  if v_instances is null and v_ns = array(select g.n from generate_series(1, cardinality(v_ids)) as g (n)) then
    v_deliveries := array_fill(1, array[cardinality(v_ids)]);
  else
    select array_agg(coalesce(m.ports, 0) order by g.n) into v_deliveries
    from generate_series(1, cardinality(v_ids)) as g (n)
    left join (
      select u.n, count(*)::integer as ports from unnest(v_ns || v_waited_ns) as u (n) group by u.n
    ) as m on m.n = g.n;
  end if;
  if parley_flow._p_is_waited_for(v_promoted) then
    v_reached := parley_flow._p_reach_waiters(
      v_ids, v_promoted, array(select d.code is not null from unnest(drafts) as d)
    );
    drafts := parley_flow._p_without_tokens(drafts, v_reached, v_deliveries, v_waited_ns);
    v_deliveries := array(
      select case when r.deliveries = 0 and r.reached = -2 then -1 else r.deliveries + greatest(r.reached, 0) end
      from unnest(v_deliveries, v_reached) with ordinality as r (deliveries, reached, n)
      order by r.n
    );
  end if;
  perform parley_flow._p_store_drafts(drafts, origin, v_deliveries);
  if cardinality(v_ns) > 0 then
    perform parley_flow._p_deliver(v_ids, v_promoted, v_ns, v_ports);
  end if;
  if v_instances is not null then
    perform parley_flow._p_deliver_to_instances(v_ids, v_waited_ns, v_instances, v_waiting_ports);
  end if;
  return query
  select g.n, v_ids[g.n], 'PUBLISHED' from generate_series(1, cardinality(v_ids)) as g (n) where v_deliveries[g.n] > 0;
  if -1 = any (v_deliveries) then
    perform parley_store.release_content('flow', array(
      select v_ids[g.n] from generate_series(1, cardinality(v_ids)) as g (n) where v_deliveries[g.n] = -1
    ));
    return query
    select g.n, v_ids[g.n], 'DROPPED' from generate_series(1, cardinality(v_ids)) as g (n) where v_deliveries[g.n] = -1;
  end if;
  if 0 = any (v_deliveries) then
    return query
    select f.n, f.message_id, f.outcome
    from parley_flow._p_fail_drafts(drafts, origin, array(
      select g.n from generate_series(1, cardinality(v_ids)) as g (n) where v_deliveries[g.n] = 0 order by g.n
    )) as f;
  end if;
end
$$;

comment on function parley_flow._p_publish_drafts(
  parley_flow._p_draft[], parley_flow._p_origin, bigint, integer[], bigint[], bigint[], integer
) is
'Publishes messages: stores them and makes their deliveries; what failed before, or matches nothing, is suspended or
routed as a failed message. An answer that comes too late and that no port asks for is DROPPED where its port says so.
Arguments: drafts; origin; epoch, of the subscriptions with which the caller has matched them, null when it has not;
matched_messages and matched_ports, which of them, from 1 on, matched which send port, when the epoch is that of now;
publishers, null or the instance of each, and publisher, their orchestration, which get none of what they publish.';
