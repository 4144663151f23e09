-- Deliveries that could not be sent: tried again, suspended, or routed as a failed message.

create function parley_flow._p_record_port_failure(send_port_id integer, error text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- One failure may be that of many messages at once: the row is written once a second.
  if exists (
    select
    from parley_flow._p_send_port_failure as f
    where f.send_port_id = _p_record_port_failure.send_port_id and f.error = left(_p_record_port_failure.error, 10000)
      and f.recovered_at is null and f.failed_at > clock_timestamp() - interval '1 second'
  ) then
    return;
  end if;
  insert into parley_flow._p_send_port_failure as f (send_port_id, error)
  values (_p_record_port_failure.send_port_id, left(_p_record_port_failure.error, 10000))
  on conflict on constraint _p_send_port_failure_pkey do update
  set failed_at = clock_timestamp(), error = excluded.error, recovered_at = null;
end
$$;

comment on function parley_flow._p_record_port_failure(integer, text) is
'Records that a send port could not send, for operators.';

create function parley_flow._p_fail(
  caller oid, host text, lease_id bigint, items bigint[], failure parley_flow._p_failure, retries boolean,
  retry_after interval, is_unreachable boolean
) returns table (item_id bigint, outcome text, due_at timestamptz)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_host constant parley_flow._p_host := parley_flow._p_require_host(caller, host);
  v_items parley_store.claimed_item[];
  v_port parley_flow._p_send_port;
begin
  found := parley_flow._p_require_code(failure.code);
  if items is null then
    found := parley_flow._p_raise('missing', 'items');
  elsif items = '{}' then
    return;
  end if;
  v_items := parley_flow._p_held_items(v_host, lease_id, items);
  perform parley_flow._p_clear_suspects(array(select i.subject from unnest(v_items) as i));
  select * into v_port
  from parley_flow._p_send_port as s
  where s.name = parley_flow._p_port_of_lane(v_items[1].lane);
  if v_port.is_ordered then
    return query
    select o.item_id, o.outcome, o.due_at
    from parley_flow._p_fail_in_order(v_host, v_port, lease_id, v_items, failure, retries, retry_after) as o;
  else
    return query
    select f.item_id, f.outcome, f.due_at
    from parley_flow._p_fail_items(v_host, v_port, v_items, failure, retries, retry_after) as f;
  end if;
  if is_unreachable and v_port.name is not null then
    perform parley_store.postpone_lane(
      v_host.system, v_items[1].lane,
      coalesce(clock_timestamp() + retry_after, parley_flow._p_next_try(v_port.retry_policy, 1), clock_timestamp()),
      left(failure.error, 10000)
    );
  end if;
  if v_port.name is not null then
    perform parley_flow._p_record_port_failure(v_port.send_port_id, failure.error);
  end if;
end
$$;

comment on function parley_flow._p_fail(
  oid, text, bigint, bigint[], parley_flow._p_failure, boolean, interval, boolean
) is
'Records that messages could not be sent; gives what becomes of each.
Errors: PF001, PF007, PF010, PF016.';

create function parley_flow._p_retry(
  host text, lease_id bigint, items bigint[], code text, error text, retry_after interval default null,
  is_unreachable boolean default false, caller parley.caller default parley.current_caller()
) returns table (item_id bigint, outcome text, due_at timestamptz)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select f.item_id, f.outcome, f.due_at
  from parley_flow._p_fail(
    parley.caller_role(caller), host, lease_id, items,
    row(code, coalesce(error, code), true)::parley_flow._p_failure, true, retry_after, is_unreachable is true
  ) as f;
end
$$;

comment on function parley_flow._p_retry(
  text, bigint, bigint[], text, text, interval, boolean, parley.caller
) is
'Records that messages could not be sent this time, and gives what becomes of each: RETRY at due_at, by the policy of
the port; SUSPENDED or FAILED_ROUTED when its retries are over. Of an ordered port also HELD, of the head and what
stands behind it in its key, which is given back by this: it waits until due_at, or for an operator; and STOPPED, when
the port was stopped for it.
Arguments: host; lease_id; items, that were tried; code, of parley_flow.failure_codes or x-...; error, for people;
retry_after, instead of the interval of the policy; is_unreachable, the destination is not there: nothing is claimed
from the port until the interval is over.
Errors: PF001, PF007 one is not in the hands of this host, PF010, PF016.';

create function parley_flow._p_suspend(
  host text, lease_id bigint, items bigint[], code text, error text, is_resumable boolean default true,
  caller parley.caller default parley.current_caller()
) returns table (item_id bigint, outcome text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return query
  select f.item_id, f.outcome
  from parley_flow._p_fail(
    parley.caller_role(caller), host, lease_id, items,
    row(code, coalesce(error, code), is_resumable is not false)::parley_flow._p_failure, false, null, false
  ) as f;
end
$$;

comment on function parley_flow._p_suspend(text, bigint, bigint[], text, text, boolean, parley.caller) is
'Gives messages up that no retry helps: suspends them, or routes failed messages, as the port says; gives which, as
_p_retry does. Of a message that was resubmitted into a location it records that its pipeline refused it again.
Arguments: as _p_retry; is_resumable, whether an operator may have it tried again as it is.
Errors: PF001, PF007 one is not in the hands of this host, PF010, PF016.';

create function parley_flow._p_without_killers(host parley_flow._p_host, claimed parley_store.claimed_item[])
returns parley_store.claimed_item[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_killer record;
  v_gone bigint[] := array[]::bigint[];
begin
  for v_killer in
    select c.lease_id, c.item_id, c.lane
    from unnest(claimed) as c
    join parley_flow._p_suspect as s on s.message_id = c.subject and s.lane = c.lane
    where s.deaths >= 3 and not exists (
      select
      from parley_flow._p_send_port as p
      where p.name = parley_flow._p_port_of_lane(c.lane) and p.is_process
    )
  loop
    v_gone := v_gone || array(
      select f.item_id
      from parley_flow._p_fail(
        (select n.nspowner from pg_namespace as n where n.nspname = 'parley_flow'), host.name, v_killer.lease_id,
        array[v_killer.item_id], row(
          case when starts_with(v_killer.lane, '##') then 'receive.killed' else 'send.killed' end,
          'hosts that had it in their hands have gone three times', true
        )::parley_flow._p_failure, false, null, false
      ) as f
    );
  end loop;
  return array(
    select r.item
    from unnest(claimed) with ordinality
      as c (lease_id, lane, item_id, subject, priority, attempts, since, expires_at, data, last_error, n)
    cross join lateral (
      select row(
        c.lease_id, c.lane, c.item_id, c.subject, c.priority, c.attempts, c.since, c.expires_at, c.data, c.last_error
      )::parley_store.claimed_item as item
    ) as r
    where c.item_id <> all (v_gone)
    order by c.n
  );
end
$$;

comment on function parley_flow._p_without_killers(parley_flow._p_host, parley_store.claimed_item[]) is
'Gives up what was claimed and hosts have died of three times, but that of orchestrations, whose instances are
suspended by their host; gives what is left.';
