-- Outcomes that are unknown: what may have been delivered, and nobody here can say (spec mail 1 (rule 3), 15.3).
--
-- 1. A message was sent whole and not answered: UNKNOWN, an event of its own. The setting unknown_outcomes of the
--    connector or mailbox store says whether it is sent again (RETRY: perhaps twice), held for an operator (HOLD) or
--    given up (FAIL: perhaps although it is there).
-- 2. A daemon comes with an outcome after its lease: a failure or a delay is refused, because another daemon has
--    the message now. A delivery counts all the same, and the message is not sent again where it still waits.
-- 3. A daemon died: nothing is known, and it is sent again.

create function parley_mail._p_unknown_policy(lane text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select coalesce(
      (
        select upper((r.v ->> 'unknown') collate "C")
        from jsonb_array_elements(o.settings -> 'retry_rules') with ordinality as r (v, n)
        where r.v ? 'unknown' and (
          r.v ->> 'domain' is null
          or parley_mail._p_folded(r.v ->> 'domain') = any (parley_mail._p_domain_patterns(p.next_hop))
        )
        order by r.n
        limit 1
      ), o.settings ->> 'unknown_outcomes'
    )
    from parley_mail._p_parts_of_lane(lane) as p
    join parley_mail._p_delivery_kind as k on k.kind = p.kind
    join parley_mail._p_object as o on o.kind = k.object_kind and o.name = p.connector
  ), 'RETRY')
$$;

comment on function parley_mail._p_unknown_policy(text) is
'Gives what is done with a message that was sent to a next hop and not answered: RETRY, HOLD or FAIL, by the first retry
rule of its connector that says it for the domain, else by the connector or mailbox store.
Source: spec mail 15.3.';

create function parley_mail._p_unknown_lanes(outcomes parley_mail._p_outcome[]) returns jsonb
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(n.lane, n.reason), '{}')
  from (
    select r.lane, min(concat_ws(' ', nullif(u.status, split_part(u.reason, ' ', 1)), u.reason)) as reason
    from unnest(outcomes) as u
    join parley_mail._p_recipient as r on r.message_id = u.message_id and r.ordinal = u.ordinal
    where u.outcome = 'UNKNOWN'
    group by r.lane
  ) as n
$$;

comment on function parley_mail._p_unknown_lanes(parley_mail._p_outcome[]) is
'Gives the queues of outcomes that are unknown, and why, as an object.';

create function parley_mail._p_given_up(outcomes parley_mail._p_outcome[]) returns parley_mail._p_outcome[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_given_up record;
begin
  select array_agg(u.message_id) as ids, array_agg(u.ordinal) as ordinals, array_agg('UNKNOWN'::text) as events,
    array_agg(r.address) as addresses, array_agg(u.status) as statuses, array_agg(u.reason) as reasons,
    array_agg(u.host) as hosts,
    array_agg(k.tracking_source) as sources, array_agg(p.connector) as connectors,
    array_agg(jsonb_build_object('server_ip', u.server_ip)) as details
  into v_given_up
  from unnest(outcomes) as u
  join parley_mail._p_recipient as r on r.message_id = u.message_id and r.ordinal = u.ordinal
  cross join parley_mail._p_parts_of_lane(r.lane) as p
  join parley_mail._p_delivery_kind as k on k.kind = p.kind
  where u.outcome = 'UNKNOWN' and parley_mail._p_unknown_policy(r.lane) = 'FAIL';
  if v_given_up.ids is null then
    return outcomes;
  end if;
  perform parley_mail._p_track(
    v_given_up.events, v_given_up.ids, v_given_up.addresses, v_given_up.statuses, v_given_up.reasons, v_given_up.hosts,
    v_given_up.sources, v_given_up.connectors, v_given_up.details
  );
  return array(
    select case
        when g.id is null then u
        else (
          u.lease_id, u.item_id, u.message_id, u.ordinal, 'FAILED', u.code, '5.4.2',
          u.reason || '; it may have been delivered', u.host, u.server_ip, u.connect_ms, u.transfer_ms, u.address
        )::parley_mail._p_outcome
      end
    from unnest(outcomes) as u
    left join unnest(v_given_up.ids, v_given_up.ordinals) as g (id, ordinal)
      on g.id = u.message_id and g.ordinal = u.ordinal
  );
end
$$;

comment on function parley_mail._p_given_up(parley_mail._p_outcome[]) is
'Gives outcomes, with FAILED in place of UNKNOWN where the policy says so: the event UNKNOWN is recorded here.
Source: spec mail 15.3.';

create function parley_mail._p_finish_late(outcomes parley_mail._p_outcome[]) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_late parley_mail._p_outcome[];
  v_queues text[];
begin
  -- By address: who was categorized anew meanwhile may have another number.
  v_late := array(
    select (
      null, null, r.message_id, r.ordinal, u.outcome, u.code, u.status,
      concat_ws('; ', u.reason, 'reported after the lease was over'), u.host, u.server_ip, u.connect_ms, u.transfer_ms,
      r.address
    )::parley_mail._p_outcome
    from unnest(outcomes) as u
    join parley_mail._p_recipient as r on r.message_id = u.message_id
      and parley_mail._p_folded(r.address) = parley_mail._p_folded(u.address)
    where u.outcome in ('DELIVERED', 'DUPLICATE', 'RELAYED')
    order by r.message_id, r.ordinal
  );
  if v_late <> '{}' then
    v_queues := array(
      select r.lane
      from unnest(v_late) with ordinality as u
      join parley_mail._p_recipient as r on r.message_id = u.message_id and r.ordinal = u.ordinal
      order by u.ordinality
    );
    perform parley_mail._p_finish_recipients(v_late);
    -- In any state and queue: a suspended item is never claimed, and an operator who resumes an item in the queue of
    -- poison would send the whole message again.
    perform parley_mail._p_drop_orphans(
      array(select u.message_id from unnest(v_late) with ordinality as u order by u.ordinality), v_queues
    );
  end if;
  return cardinality(v_late);
end
$$;

comment on function parley_mail._p_finish_late(parley_mail._p_outcome[]) is
'Records, of outcomes whose lease is over, that something was delivered: it is not sent again where it still waits.
Gives how many recipients. Their items go with them; what others have in their hands they complete.
Arguments: outcomes, with addresses; without them nothing is recorded.
Source: spec mail 1 (rule 3), 15.3.';
