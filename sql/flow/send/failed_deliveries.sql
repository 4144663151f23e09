-- Deliveries that failed: when one is tried again, and what becomes of one whose retries are over.

create function parley_flow._p_next_try(policy text, attempts integer) returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley_flow._p_retry_policy;
begin
  select * into v_policy from parley_flow._p_retry_policy as p where p.name = policy;
  if not found then
    v_policy := row(null, 3, '5 minutes'::interval, 1, '1 day'::interval, 0.15);
  end if;
  if attempts > v_policy.tries then
    return null;
  end if;
  return clock_timestamp() + make_interval(secs => (
    least(
      extract(epoch from v_policy.first_interval)::double precision * v_policy.factor ^ least(attempts - 1, 1000),
      extract(epoch from v_policy.max_interval)::double precision
    ) * (1 + v_policy.jitter * (2 * random() - 1))
  ));
exception
  when numeric_value_out_of_range then
    return clock_timestamp() + v_policy.max_interval;
end
$$;

comment on function parley_flow._p_next_try(text, integer) is
'Gives when a message is tried again that has failed so many times; null: its retries are over.
Arguments: policy, null for three times after five minutes; attempts, from 1 on.';

create type parley_flow._p_failure as (code text, error text, is_resumable boolean);

comment on type parley_flow._p_failure is 'Why a delivery failed for good.';

create function parley_flow._p_route_failed_delivery(
  port parley_flow._p_send_port, message_id bigint, failure parley_flow._p_failure
) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_message parley_flow._p_message;
  v_draft parley_flow._p_draft;
  v_part bigint;
begin
  select * into v_message from parley_flow._p_message as m where m.message_id = $2;
  v_draft := row(
    nextval('parley_flow._p_message_id'), coalesce(v_message.interchange_id, v_message.message_id),
    v_message.message_id, v_message.size, v_message.content_id, v_message.message_type, v_message.promoted,
    v_message.written, v_message.parts, v_message.body, null, null
  );
  v_draft := parley_flow._p_failed_draft(
    v_draft, parley_flow._p_error_report(
      v_draft, null, null, port.address, port.adapter, port.name, failure.code, failure.error, null
    ), failure.error, $2
  );
  if not parley_flow._p_route_failed(v_draft, row(
    v_message.location_id, v_message.receive_port_id, port.application, false, v_message.published_by
  )::parley_flow._p_origin) then
    return false;
  end if;
  for v_part in
    select v_message.content_id where v_message.content_id is not null
    union
    select (p.part ->> 'content_id')::bigint
    from jsonb_array_elements(v_message.parts) as p (part)
    where p.part ->> 'content_id' is not null
  loop
    perform parley_store.share_content(v_part, 'flow', $2, v_draft.message_id);
  end loop;
  return true;
end
$$;

comment on function parley_flow._p_route_failed_delivery(parley_flow._p_send_port, bigint, parley_flow._p_failure) is
'Publishes a failed message for a delivery that failed, with the body of its message; reports whether anybody gets it.';

create function parley_flow._p_give_up(
  host parley_flow._p_host, port parley_flow._p_send_port, item parley_store.claimed_item,
  failure parley_flow._p_failure
) returns text
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_location constant text := case when starts_with(item.lane, '##') then substr(item.lane, 3) end;
  -- Also that of one that was dropped while somebody published to it.
  v_port constant text := nullif(parley_flow._p_port_of_lane(item.lane), '');
begin
  perform parley_store.complete_work(item.lease_id, array[item.item_id]);
  if port.routes_failed and parley_flow._p_route_failed_delivery(port, item.subject, failure) then
    perform parley_flow._p_track_one('FAIL', host.name, port.name, item.subject, jsonb_build_object(
      'code', failure.code, 'error', left(failure.error, 1000), 'outcome', 'FAILED_ROUTED'
    ));
    perform parley_flow._p_end_deliveries(array[item.subject], port.name);
    return 'FAILED_ROUTED';
  end if;
  perform parley_flow._p_suspend_message(
    item.subject, case when v_location is null then 'SEND' else 'RECEIVE' end, v_location, v_port, failure.code,
    failure.error, failure.is_resumable, item.attempts + 1, convert_from(item.data, 'UTF8')
  );
  perform parley_flow._p_track_one('SUSPEND', host.name, coalesce(v_port, ''), item.subject, jsonb_build_object(
    'code', failure.code, 'error', left(failure.error, 1000)
  ));
  perform parley_flow._p_fail_request_of(item.subject, failure.code);
  perform parley_flow._p_count(host.name, array['documents_suspended'], array[1]);
  return 'SUSPENDED';
end
$$;

comment on function parley_flow._p_give_up(
  parley_flow._p_host, parley_flow._p_send_port, parley_store.claimed_item, parley_flow._p_failure
) is
'Ends a delivery that failed for good: routes a failed message, where the port does that and somebody gets it, or
suspends the message. Gives which: FAILED_ROUTED or SUSPENDED.
Arguments: host; port, null of a message that was resubmitted into a location; item; failure.';

create function parley_flow._p_fail_items(
  host parley_flow._p_host, port parley_flow._p_send_port, items parley_store.claimed_item[],
  failure parley_flow._p_failure, retries boolean, retry_after interval
) returns table (item_id bigint, outcome text, due_at timestamptz)
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alike record;
  v_item parley_store.claimed_item;
  v_due timestamptz;
begin
  -- Items that have failed as often are due together.
  for v_alike in
    select i.attempts, array_agg(i.item_id) as items from unnest(items) as i group by i.attempts order by i.attempts
  loop
    v_due := case when retries then parley_flow._p_next_try(port.retry_policy, v_alike.attempts + 1) end;
    if v_due is not null then
      v_due := coalesce(clock_timestamp() + retry_after, v_due);
      perform parley_store.delay_work(items[1].lease_id, v_alike.items, v_due, left(failure.error, 10000));
      return query select u.id, 'RETRY', v_due from unnest(v_alike.items) as u (id);
      continue;
    end if;
    for v_item in select i.* from unnest(items) as i where i.item_id = any (v_alike.items) loop
      item_id := v_item.item_id;
      outcome := parley_flow._p_give_up(host, port, v_item, failure);
      due_at := null;
      return next;
    end loop;
  end loop;
end
$$;

comment on function parley_flow._p_fail_items(
  parley_flow._p_host, parley_flow._p_send_port, parley_store.claimed_item[], parley_flow._p_failure, boolean, interval
) is
'Has messages of a port without order tried again, or gives them up; gives what becomes of each.
Arguments: host; port; items, of one lease; failure; retries, false: give all of them up; retry_after, null: as the
policy says.';
