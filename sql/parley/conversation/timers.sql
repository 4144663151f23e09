-- Conversation timers, lifetimes, abandoned endpoints and tombstones: what happens because time passes.
--
-- Three fire them: activation/fire_timers.sql, RECEIVE for its own queue when _p_next_alarm says that something is due
-- somewhere, and the daemon (activation/due_alarms.sql). Several at once share the work: each passes by what another
-- holds.

create function parley.begin_conversation_timer(
  conversation_handle uuid, timeout integer,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_caller oid := parley._p_caller(caller);
  v_endpoint parley._p_endpoint := parley._p_find_shown(conversation_handle, 'TIMER');
  v_due timestamptz;
begin
  found := parley._p_require_conversation_owner(v_caller, v_endpoint, 'BEGIN CONVERSATION TIMER');
  perform parley._p_lock_group_of(v_endpoint.endpoint_id);
  v_endpoint := parley._p_find_endpoint(conversation_handle, 'TIMER');
  if timeout is null or timeout < 0 then
    found := parley._p_raise(8402, 'timer', coalesce(timeout::text, 'null'));
  end if;
  v_due := clock_timestamp() + make_interval(secs => timeout);
  if v_endpoint.state not in ('SO', 'CO', 'DI') then
    found := parley._p_raise(8458, 'ended', conversation_handle::text, parley._p_state_name(v_endpoint.state));
  elsif v_due > v_endpoint.lifetime then
    found := parley._p_raise(8410, 'late', v_due::text, v_endpoint.lifetime::text);
  end if;
  -- Here, so that firing need not; an older snapshot has to fail when somebody has made it plain since. Both sides, in
  -- the order of END, which may follow in this transaction.
  if v_endpoint.is_plain or parley._p_keeps_snapshot() then
    perform
    from parley._p_endpoint as e
    where e.endpoint_id in (v_endpoint.endpoint_id, v_endpoint.far_endpoint_id)
    order by e.endpoint_id
    for no key update;
    update parley._p_endpoint as e set is_plain = false where e.endpoint_id = v_endpoint.endpoint_id;
  end if;
  perform parley._p_set_alarm(v_endpoint.endpoint_id, 'timer', v_due);
end
$$;

comment on function parley.begin_conversation_timer(uuid, integer, parley.caller) is
'Sets the timer of this side of a conversation, in place of an earlier one: when it fires, a
DialogTimer message arrives here.
Arguments: conversation_handle; timeout in seconds, 0 for at once.
Errors: 229 not allowed, 8402 out of range, 8410 after the lifetime, 8418 and 8426 handle missing or not
found, 8458 the state forbids it.
Source: spec 4.7.';

create function parley._p_fire_alarms(queue_id integer, top integer, only_queues integer[] default null) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_alarm record;
  v_is_claimed boolean;
  v_fired integer := 0;
  v_held integer := 0;
  v_next timestamptz;
  -- Not clock_timestamp() itself: the index could not bound a search by it, and the ones that are
  -- not due would all be read.
  v_now timestamptz := clock_timestamp();
  v_keeps_snapshot constant boolean := parley._p_keeps_snapshot();
begin
  for v_alarm in
    select a.endpoint_id, a.kind
    from parley._p_alarm as a
    where a.due_at <= v_now
      and (
        _p_fire_alarms.queue_id is null and only_queues is null
        or exists (
          select
          from parley._p_endpoint as e
          join parley._p_service as s using (service_id)
          where e.endpoint_id = a.endpoint_id
            and (s.queue_id = _p_fire_alarms.queue_id or s.queue_id = any (only_queues))
        )
      )
    order by a.due_at
    limit case when _p_fire_alarms.queue_id is null then 10 else 100 end::bigint * top
  loop
    -- Others are at it, and each that cannot be claimed costs a subtransaction: a scan shows most that are held.
    continue when v_held >= 20 and queue_id is not null and parley._p_is_group_held(v_alarm.endpoint_id);
    v_is_claimed := case
      when queue_id is null and not v_keeps_snapshot then parley._p_claim_alarm(v_alarm.endpoint_id, v_alarm.kind)
      else parley._p_claim_alarm_and_groups(v_alarm.endpoint_id, v_alarm.kind)
    end;
    if v_is_claimed then
      perform parley._p_fire_alarm(v_alarm.endpoint_id, v_alarm.kind);
      v_fired := v_fired + 1;
      exit when v_fired = top;
      continue;
    end if;
    v_held := v_held + 1;
    if queue_id is null and not v_keeps_snapshot then
      -- A timer that is held for long must not keep the rest.
      perform parley._p_put_off_alarm(
        v_alarm.endpoint_id, v_alarm.kind, v_now - interval '1 second', interval '1 second'
      );
    else
      exit when v_held >= case when queue_id is null then 1000 else 40 end;
    end if;
  end loop;
  -- A timer set by a transaction that has not committed is not seen here, so scan again within a second in any case.
  select a.due_at into v_next from parley._p_alarm as a order by a.due_at limit 1;
  v_next := greatest(
    coalesce(v_next, 'infinity'),
    clock_timestamp() + case when v_held > v_fired then interval '20 ms' else interval '1 ms' end
  );
  v_next := least(v_next, clock_timestamp() + interval '1 second');
  perform setval('parley._p_next_alarm', (extract(epoch from v_next) * 1000000)::bigint);
  return v_fired;
end
$$;

comment on function parley._p_fire_alarms(integer, integer, integer[]) is
'Handles alarms that are due and records when the next are. Waits for nobody. Gives how many.
Arguments: queue_id, that of a reader, or null; top, how many at most; only_queues, where queue_id is null: of
these queues alone (null: of all).';

create function parley._p_is_group_held(endpoint_id bigint) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley._p_endpoint as e
    join parley._p_endpoint as s on s.endpoint_id in (e.endpoint_id, e.far_endpoint_id)
    join parley._p_conversation_group as g on g.group_id = s.group_id
    where e.endpoint_id = $1 and parley._p_is_running(g.xmax)
  )
$$;

comment on function parley._p_is_group_held(bigint) is
'Reports whether somebody, this transaction too, has locked the group of either side of a conversation. Locks nothing;
see activation/receivable_work.sql.';

create function parley._p_claim_alarm(endpoint_id bigint, kind text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_far bigint;
begin
  select e.far_endpoint_id into v_far from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id;
  if found then
    -- Read again with the lock: the first send may have made the far side since.
    if kind = 'timer' and not parley._p_keeps_snapshot() then
      perform from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id for key share skip locked;
    elsif kind = 'timer' or kind = 'lifetime' and v_far > 0 then
      -- Sending goes on. An older snapshot has to fail when the state has changed.
      select e.far_endpoint_id into v_far
      from parley._p_endpoint as e where e.endpoint_id = _p_claim_alarm.endpoint_id for no key update skip locked;
    else
      select e.far_endpoint_id into v_far
      from parley._p_endpoint as e
      where e.endpoint_id = _p_claim_alarm.endpoint_id
      for update skip locked;
    end if;
    if not found then
      return false;
    end if;
    if kind <> 'timer' and v_far > 0 then
      perform from parley._p_endpoint as e where e.endpoint_id = v_far for no key update skip locked;
      if not found and exists (select from parley._p_endpoint as e where e.endpoint_id = v_far) then
        return false;
      end if;
    end if;
  end if;
  perform
  from parley._p_alarm as a
  where a.endpoint_id = _p_claim_alarm.endpoint_id and a.kind = _p_claim_alarm.kind and a.due_at <= clock_timestamp()
  for update skip locked;
  return found;
end
$$;

comment on function parley._p_claim_alarm(bigint, text) is
'Locks the rows that firing an alarm needs, and the alarm last. False when another session holds any of them, or the
alarm is not due any more: rows that were locked by then stay so. Waits for nobody: who fires many alarms holds many
conversations, and must not wait for another one.';

create function parley._p_claim_alarm_and_groups(endpoint_id bigint, kind text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_groups bigint[];
  v_locked integer := -1;
begin
  if parley._p_claim_alarm(endpoint_id, kind) then
    -- A timer concerns its own side alone.
    v_groups := array(
      select e.group_id
      from parley._p_endpoint as e
      where e.endpoint_id = _p_claim_alarm_and_groups.endpoint_id
      union
      select f.group_id
      from parley._p_endpoint as e
      join parley._p_endpoint as f on f.endpoint_id = e.far_endpoint_id
      where e.endpoint_id = _p_claim_alarm_and_groups.endpoint_id and _p_claim_alarm_and_groups.kind <> 'timer'
    );
    perform from parley._p_conversation_group as g where g.group_id = any (v_groups) for update skip locked;
    get diagnostics v_locked = row_count;
  end if;
  if v_locked = cardinality(v_groups) then
    return true;
  end if;
  raise exception 'held' using errcode = 'lock_not_available';
exception
  -- At REPEATABLE READ somebody may have fired it, or changed the conversation, since the snapshot was taken.
  when lock_not_available or serialization_failure then
    return false;
end
$$;

comment on function parley._p_claim_alarm_and_groups(bigint, text) is
'Claims an alarm for a reader, whose transaction goes on and may wait for others: nobody may have received from the
groups, and be about to end what the reader holds then. The same for whoever keeps a snapshot. A timer that cannot be
claimed is let go of.';

create function parley._p_put_off_alarm(
  endpoint_id bigint, kind text, due_before timestamptz, delay interval
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform
  from parley._p_alarm as a
  where a.endpoint_id = _p_put_off_alarm.endpoint_id and a.kind = _p_put_off_alarm.kind and a.due_at < due_before
  for update skip locked;
  if found then
    update parley._p_alarm as a
    set due_at = clock_timestamp() + delay, first_due_at = coalesce(a.first_due_at, a.due_at)
    where a.endpoint_id = _p_put_off_alarm.endpoint_id and a.kind = _p_put_off_alarm.kind;
  end if;
end
$$;

comment on function parley._p_put_off_alarm(bigint, text, timestamptz, interval) is
'Makes an alarm that was due before a time due after a delay, unless somebody holds it. When it was due first
is kept: it is late since then.';

create function parley._p_fire_alarm(endpoint_id bigint, kind text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley._p_alarm as a where a.endpoint_id = _p_fire_alarm.endpoint_id and a.kind = _p_fire_alarm.kind;
  case kind
    when 'timer' then
      perform parley._p_fire_timer(endpoint_id);
    when 'lifetime' then
      perform parley._p_break_conversations(array[endpoint_id], parley._p_error_of(8489, 'lifetime'));
    when 'abandoned' then
      perform parley._p_end_abandoned(endpoint_id);
    when 'pooled' then
      perform parley._p_end_pooled(endpoint_id);
    when 'retry' then
      perform parley._p_end_conversation_wait(endpoint_id);
  end case;
end
$$;

comment on function parley._p_fire_alarm(bigint, text) is 'Handles one alarm, which the caller has claimed.';

create function parley._p_fire_timer(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
begin
  select * into v_endpoint
  from parley._p_endpoint as e
  where e.endpoint_id = _p_fire_timer.endpoint_id and e.state in ('SO', 'CO', 'DI');
  if found then
    perform parley._p_enqueue(v_endpoint, 5, null);
  end if;
end
$$;

comment on function parley._p_fire_timer(bigint) is 'Puts a DialogTimer message on the queue of an endpoint.';

create function parley._p_end_abandoned(endpoint_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_endpoint parley._p_endpoint;
  v_seconds integer := (select b.abandoned_seconds from parley._p_broker as b);
begin
  select * into v_endpoint from parley._p_endpoint as e where e.endpoint_id = _p_end_abandoned.endpoint_id;
  if not found or v_endpoint.state not in ('DI', 'ER', 'DO') then
    return;
  elsif v_endpoint.state = 'DO' and v_endpoint.bound_version = 0 then
    v_endpoint := parley._p_lock_to_end(v_endpoint.conversation_handle);
    v_endpoint.state := 'CO';
    if parley._p_is_unsent(v_endpoint) then
      perform parley._p_remove_endpoint(parley._p_unbind(v_endpoint));
    else
      update parley._p_endpoint as e set bound_version = null where e.endpoint_id = v_endpoint.endpoint_id;
      perform parley._p_send_end(v_endpoint, 2, null);
    end if;
    return;
  elsif v_endpoint.state = 'DO' then
    -- It was to be removed when its group was held.
    perform parley._p_remove_endpoint(v_endpoint);
    return;
  end if;
  perform from parley._p_conversation_group as g where g.group_id = v_endpoint.group_id for update skip locked;
  if not found or exists (select from parley._p_message as m where m.endpoint_id = v_endpoint.endpoint_id) then
    -- A reader holds it, or it still has something to read: later.
    perform parley._p_set_alarm(
      endpoint_id, 'abandoned', clock_timestamp() + make_interval(secs => greatest(v_seconds, 1))
    );
  else
    v_endpoint := parley._p_lock_to_end(v_endpoint.conversation_handle);
    perform parley._p_close_both(v_endpoint);
  end if;
end
$$;

comment on function parley._p_end_abandoned(bigint) is
'Ends a target whose initiator has ended, that has read everything and never ended itself:
fire-and-forget must not leak (spec 3.3).';

create function parley.end_abandoned_after(
  seconds integer,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_caller oid := parley._p_caller(caller);
begin
  found := parley._p_require_administrator(v_caller, 'end_abandoned_after');
  if (seconds >= 1) is not true then
    found := parley._p_raise(8402, 'abandoned', coalesce(seconds::text, 'null'));
  end if;
  -- A session that ends a conversation meanwhile has read the time before; it comes due then, or is put right by the
  -- next change.
  update parley._p_broker as b set abandoned_seconds = seconds;
  perform parley._p_set_alarm(
    a.endpoint_id, 'abandoned', greatest(clock_timestamp(), e.state_since + make_interval(secs => seconds))
  )
  from parley._p_alarm as a
  join parley._p_endpoint as e using (endpoint_id)
  where a.kind = 'abandoned' and e.state in ('DI', 'ER')
  order by a.endpoint_id;
end
$$;

comment on function parley.end_abandoned_after(integer, parley.caller) is
'Says after how many seconds a target ends by itself whose initiator has ended, or that has failed, and that has nothing
left to read: 1800 when the broker is new. It counts for those that wait now, too. SQL Server keeps them for ever;
2147483647, 68 years, does so here. parley.databases shows it.
Arguments: seconds.
Errors: 8402 out of range, 15151 not an administrator.
Source: spec 3.3.';

create function parley._p_has_due_alarm(queue_id integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set jit = off
as $$
declare
  v_now timestamptz := clock_timestamp();
begin
  return exists (
    select
    from parley._p_alarm as a
    join parley._p_endpoint as e using (endpoint_id)
    join parley._p_service as s using (service_id)
    where a.due_at <= v_now
      and s.queue_id = _p_has_due_alarm.queue_id
      and not parley._p_is_group_held(a.endpoint_id)
  );
end
$$;

comment on function parley._p_has_due_alarm(integer) is
'Reports whether an alarm of a queue is due that somebody may fire now. It reads, where _p_fire_alarms takes a number of
a transaction in any case: who waits for a message asks this first.';
