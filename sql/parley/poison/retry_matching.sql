-- Many conversations that are set aside, put back in one call: those that match a filter, the oldest first, up to a
-- number.
--
-- It holds several conversations at once, so it waits for none: what somebody holds, a reader or a sender of the
-- conversation, is passed over, and the next call finds it. The locks are taken in the order of retry_poison, which
-- follows and so does not wait either.
-- Cost: reading in the order of time to the number that was asked for, then that of retry_poison for each.

create function parley.retry_poison_matching(
  top integer default 100,
  queue text default null,
  service_name text default null,
  contract text default null,
  sqlstate text default null,
  error text default null,
  set_aside_before timestamptz default null,
  caller parley.caller default parley.current_caller()
) returns table (conversation_handle uuid, messages bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
#variable_conflict use_column
declare
  v_caller oid := parley._p_caller(caller);
  v_only integer;
  v_queues integer[];
  v_found record;
  v_count integer := 0;
begin
  found := parley._p_require_top(top);
  if parley._p_keeps_snapshot() then
    found := parley._p_raise(8402, 'isolation');
  end if;
  if queue is not null then
    v_only := (parley._p_find_queue(v_caller, queue, 'RECEIVE')).queue_id;
  end if;
  v_queues := array(
    select q.queue_id
    from parley._p_queue as q
    where (v_only is null or q.queue_id = v_only)
      and parley._p_has_permission(v_caller, 'RECEIVE', 'queue', q.queue_id, q.owner)
  );
  for v_found in
    select e.endpoint_id, e.conversation_handle
    from parley._p_set_aside as s
    join parley._p_endpoint as e using (endpoint_id)
    join parley._p_service as v on v.service_id = s.service_id
    left join parley._p_failure as f using (endpoint_id)
    where v.queue_id = any (v_queues)
      and s.retry_at is null
      and e.state <> 'DO'
      and (retry_poison_matching.service_name is null or e.service_name = retry_poison_matching.service_name)
      and (retry_poison_matching.contract is null or e.service_contract_name = retry_poison_matching.contract)
      and (retry_poison_matching.sqlstate is null or f.sqlstate = retry_poison_matching.sqlstate)
      and (retry_poison_matching.error is null or strpos(lower(f.error), lower(retry_poison_matching.error)) > 0)
      and (retry_poison_matching.set_aside_before is null or s.set_aside_at < retry_poison_matching.set_aside_before)
    order by s.set_aside_at, s.endpoint_id
  loop
    exit when v_count >= top;
    if parley._p_claim_set_aside(v_found.endpoint_id) then
      conversation_handle := v_found.conversation_handle;
      messages := parley.retry_poison(v_found.conversation_handle, caller => caller);
      v_count := v_count + 1;
      return next;
    end if;
  end loop;
end
$$;

comment on function parley.retry_poison_matching(integer, text, text, text, text, text, timestamptz, parley.caller) is
'Puts conversations that are set aside back into their queues as retry_poison does, in this transaction: those that
match all that is given, the oldest first. Gives the handle of each and how many messages it has. A conversation that
another session holds is passed over. Only those of queues that the caller may receive from are among them.
Arguments: top, how many at most, null for all; queue; service_name; contract; sqlstate of the last failure that was
reported, for errors of the broker sqlstate_of(number); error, a part of its text, in any case; set_aside_before, for a
program that calls it again and again: the time when it began, so that what fails again meanwhile is not tried again.
Errors: 127 top negative, 208 queue not found, 229 not allowed, 8402 not at READ COMMITTED, 9609 malformed name.
Source: spec 5.6.';
