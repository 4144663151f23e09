-- Deliveries to services and tables, by a daemon: claim, commit, deliver, commit (spec mail 5, 12.2).
--
-- Users' code runs where a message is delivered, such as the triggers of a table. A lease that runs out says that a
-- daemon died, or was lost, while it delivered: categorizer/suspects.sql says what that means for its messages.
--
-- That code may raise, wait and loop as it likes, and holds up no other binding. When it raises, its message is tried
-- again (_p_deliver_item). When it waits for a lock, the delivery waits two seconds, and then the rest of its lane
-- waits too. When it makes the transaction fail, or takes so long that it is cancelled, each message is delivered by
-- itself; so the culprit is found, and _p_defer_local records it. A transaction that delivers messages ends after a
-- second, and the next one goes on.

create function parley_mail._p_claim_local(
  messages integer default 100, lease interval default '5 seconds', caller parley.caller default parley.current_caller()
) returns bigint[]
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_items parley_store.claimed_item[];
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  v_items := array(select w from parley_store.claim_work('mail_service', messages, 100, lease) as w);
  if parley_mail._p_has_suspects() then
    v_items := parley_mail._p_without_suspects('mail_service', '', v_items);
  end if;
  return array(select distinct i.lease_id from unnest(v_items) as i order by 1);
end
$$;

comment on function parley_mail._p_claim_local(integer, interval, parley.caller) is
'Claims messages for services and tables of this database, and gives the leases under which _p_deliver_local delivers
them: commit before it. A message of which somebody may have died is claimed alone.
Arguments: messages, how many at most; lease, for how long they are the caller''s before he begins to deliver them.
Errors: PM001 the role does not hold SERVE, PS002, PS009 not READ COMMITTED.
Source: spec mail 5, 12.2.';

create function parley_mail._p_local_bodies(
  leases bigint[], caller parley.caller default parley.current_caller()
) returns table (item_id bigint, body_holder bigint, content_id bigint, body bytea)
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return query
  select w.item_id, b.message_id, b.content_id, b.body
  from parley_store.work_items as w
  left join parley_mail._p_message as m on m.message_id = w.subject
  left join parley_mail._p_message as b on b.message_id = coalesce(m.body_message_id, m.message_id)
  where w.lease_id = any (leases) and w.system = 'mail_service'
  order by w.lease_id, w.item_id;
end
$$;

comment on function parley_mail._p_local_bodies(bigint[], parley.caller) is
'Gives what is claimed for services and tables, so that a daemon reads it before it is delivered. A body of up to 8,000
bytes is given; a larger one is read by _p_read_body; of a message that is gone there is none.
Arguments: leases, what _p_claim_local gave.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 12.2.';

create function parley_mail._p_put_off_lanes(leases bigint[], lanes text[], reasons text[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease record;
begin
  -- In one order.
  for v_lease in
    select u.lane, u.reason, w.lease_id, array_agg(w.item_id) filter (where w.item_id is not null) as items
    from unnest(lanes, reasons) as u (lane, reason)
    left join parley_store.work_items as w
      on w.lease_id = any (leases) and w.system = 'mail_service' and w.lane = u.lane
    group by u.lane, u.reason, w.lease_id
    order by u.lane, w.lease_id
  loop
    if v_lease.items is not null then
      perform parley_store.release_work(v_lease.lease_id, v_lease.items);
    end if;
    perform parley_store.postpone_lane(
      'mail_service', v_lease.lane, clock_timestamp() + interval '30 seconds', v_lease.reason
    );
  end loop;
end
$$;

comment on function parley_mail._p_put_off_lanes(bigint[], text[], text[]) is
'Gives back what is left of some lanes under some leases, and has nothing claimed from these lanes for half a minute:
what one of their messages waited for in vain, others would wait for too.
Arguments: leases; lanes and reasons, an element for each lane.';

create function parley_mail._p_deliver_local(
  leases bigint[], items bigint[] default null, parsed bytea[] default null,
  caller parley.caller default parley.current_caller(), out ages double precision[], out has_more boolean
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_began constant timestamptz := clock_timestamp();
  v_lease bigint;
  v_item parley_store.claimed_item;
  v_state text;
  v_subjects bigint[] := '{}'::bigint[];
  v_locked text[] := '{}'::text[];
  v_reasons text[];
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  ages := '{}';
  has_more := false;
  foreach v_lease in array coalesce(leases, '{}') loop
    begin
      -- No daemon takes the lease back while this transaction has it, however long. Others soon take over its items
      -- where the caller dies before the next one.
      perform parley_store.renew_lease(v_lease, '20 seconds');
    exception when sqlstate 'PS005' then
      leases := array_remove(leases, v_lease);
    end;
  end loop;
  for v_item in
    select
      w.lease_id, w.lane, w.item_id, w.subject, w.priority, w.attempts, w.since, w.expires_at, w.data, w.last_error
    from parley_store.work_items as w
    where w.lease_id = any (leases) and w.system = 'mail_service' and (items is null or w.item_id = any (items))
    order by w.lease_id, w.item_id
  loop
    continue when v_item.lane = any (v_locked);
    has_more := items is not null and v_subjects <> '{}' and clock_timestamp() > v_began + interval '1 second';
    exit when has_more;
    v_state := parley_mail._p_deliver_item(v_item, parsed[array_position(items, v_item.item_id)]);
    if v_state = '00000' then
      ages := ages || coalesce((
        select extract(epoch from clock_timestamp() - m.received_at)::double precision
        from parley_mail._p_message as m
        where m.message_id = v_item.subject
      ), 0);
    elsif v_state = '55P03' then
      v_locked := v_locked || v_item.lane;
      v_reasons := v_reasons || 'The target of the delivery is locked.'::text;
    end if;
    v_subjects := v_subjects || v_item.subject;
  end loop;
  if v_locked <> '{}' then
    perform parley_mail._p_put_off_lanes(leases, v_locked, v_reasons);
  end if;
  -- All at once, so that messages are locked in their order: who records outcomes locks them too.
  perform parley_mail._p_remove_finished(v_subjects);
end
$$;

comment on function parley_mail._p_deliver_local(bigint[], bigint[], bytea[], parley.caller) is
'Delivers messages to services and tables of this database, exactly once, in this transaction; gives how many seconds
ago each of those that it delivered was received or submitted, and whether it left some after a second: then call it
again, in another transaction.
Arguments: leases, what _p_claim_local gave; those that are over are passed by; items, of which: null, all and however
long that takes; parsed, for each of items what was read of its message, as _p_parsed.
Errors: PM001 the role does not hold SERVE, and what _p_deliver_item leaves to the caller.
Source: spec mail 12.2.';

create function parley_mail._p_defer_local(
  leases bigint[], item bigint, state text, reason text, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_item parley_store.claimed_item;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  select w.lease_id, w.lane, w.item_id, w.subject, w.priority, w.attempts, w.since, w.expires_at, w.data, w.last_error
  into v_item
  from parley_store.work_items as w
  where w.lease_id = any (leases) and w.system = 'mail_service' and w.item_id = _p_defer_local.item;
  if not found then
    return;
  end if;
  perform parley_mail._p_finish_item(v_item, coalesce(state, 'XX000'), reason, clock_timestamp());
  if state = '57014' then
    perform parley_mail._p_put_off_lanes(leases, array[v_item.lane], array[reason]);
  end if;
  perform parley_mail._p_remove_finished(array[v_item.subject]);
end
$$;

comment on function parley_mail._p_defer_local(bigint[], bigint, text, text, parley.caller) is
'Has a message tried again, or gives it up when its time is over, whose delivery has made a transaction of
_p_deliver_local fail in which it was alone. Where it was cancelled because it took too long, the rest of its lane waits
too.
Arguments: leases, what _p_claim_local gave; item; state, the SQLSTATE; reason.
Errors: PM001 the role does not hold SERVE, PS005.';

create function parley_mail._p_release_local(
  leases bigint[], caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lease bigint;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  foreach v_lease in array coalesce(leases, '{}') loop
    begin
      perform parley_store.release_work(v_lease);
    exception when sqlstate 'PS005' then
      null;
    end;
  end loop;
end
$$;

comment on function parley_mail._p_release_local(bigint[], parley.caller) is
'Gives back what _p_claim_local has claimed and could not be delivered, without anybody having died.
Arguments: leases, what _p_claim_local gave.
Errors: PM001 the role does not hold SERVE.';

create function parley_mail._p_deliver_to_services(
  messages integer default 100, caller parley.caller default parley.current_caller()
) returns integer
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  return (
    select cardinality(d.ages) from parley_mail._p_deliver_local(parley_mail._p_claim_local(messages)) as d
  );
end
$$;

comment on function parley_mail._p_deliver_to_services(integer, parley.caller) is
'Claims and delivers messages to services and tables of this database in one transaction; gives how many. No daemon
reads the messages: their payload has no text and no attachments, and the state NONE. A daemon calls _p_claim_local,
_p_local_bodies and _p_deliver_local, in one transaction each.
Arguments: messages, how many at most.
Errors: PM001 the role does not hold SERVE, PS009 not READ COMMITTED.
Source: spec mail 12.2.';
