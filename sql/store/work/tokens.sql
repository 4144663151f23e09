-- Tokens: messages of a simple queue that say that a lane has work, or that items are due.
--
-- 'lane ID NUMBER': the lane has work. NUMBER is 0 from who put work into a lane that was not scheduled; such a token
-- counts as long as the lane is not scheduled.
-- 'due LANE ITEM ITEM ...': these delayed items are due.

create function parley_store._p_put_token(system text, lane_id bigint, token_number bigint, due_at timestamptz)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley.put(
    parley_store._p_queue_of(system), convert_to(format('lane %s %s', lane_id, token_number), 'UTF8'),
    deliver_at => due_at, caller => parley.current_caller()
  );
end
$$;

comment on function parley_store._p_put_token(text, bigint, bigint, timestamptz) is
'Puts a token of a lane into the queue of its system; due_at null: now.';

create function parley_store._p_schedule(lane_id bigint, due_at timestamptz) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_number bigint;
begin
  update parley_store._p_lane_state as s
  set is_scheduled = true, is_blocked = false, token_number = s.token_number + 1, visited_at = clock_timestamp()
  where s.lane_id = _p_schedule.lane_id
  returning s.token_number into v_number;
  perform parley_store._p_put_token(l.system, l.lane_id, v_number, due_at)
  from parley_store._p_lane as l
  where l.lane_id = _p_schedule.lane_id;
end
$$;

comment on function parley_store._p_schedule(bigint, timestamptz) is
'Gives a lane a new token, now (null) or at some time, and makes any other of its tokens worthless.';

create function parley_store._p_wake_blocked(lane_ids bigint[]) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_lane record;
begin
  -- Locked where leases are counted: who has just counted these among them says first that the lane waits for one.
  -- Whether it waits is asked of the row that was locked: in the query it would be asked of the one before.
  for v_lane in
    select s.lane_id, s.is_blocked
    from parley_store._p_lane_state as s
    where s.lane_id = any (lane_ids) and (s.is_blocked or parley_store._p_leases_allowed(s) is not null)
    order by s.lane_id
    for update
  loop
    if v_lane.is_blocked then
      perform parley_store._p_schedule(v_lane.lane_id, null);
    end if;
  end loop;
end
$$;

comment on function parley_store._p_wake_blocked(bigint[]) is
'Has lanes go on that have waited for the end of a lease. The caller has ended one of each.';

create function parley_store._p_take_token(lane_id bigint, token_number bigint) returns parley_store._p_lane_state
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_state parley_store._p_lane_state;
begin
  select * into v_state
  from parley_store._p_lane_state as s
  where s.lane_id = _p_take_token.lane_id
  for update skip locked;
  if not found then
    -- Somebody changes the lane, or it is gone: then nothing is put back.
    perform parley_store._p_put_token(l.system, l.lane_id, _p_take_token.token_number, clock_timestamp() + '20 ms')
    from parley_store._p_lane as l
    where l.lane_id = _p_take_token.lane_id;
    return null;
  end if;
  if token_number <> (case when v_state.is_scheduled then v_state.token_number else 0 end) then
    return null;
  end if;
  -- A lane that is suspended or blocked stays scheduled without a token; who resumes it gives it one.
  if v_state.suspended_at is not null
    or parley_store._p_leases_allowed(v_state) <= (
      select count(*) from parley_store._p_lease as e where e.lane_id = v_state.lane_id
    ) then
    update parley_store._p_lane_state as s
    set is_scheduled = true, token_number = s.token_number + 1, is_blocked = s.suspended_at is null,
      visited_at = clock_timestamp()
    where s.lane_id = v_state.lane_id;
    return null;
  end if;
  if v_state.next_attempt_at > clock_timestamp() then
    perform parley_store._p_schedule(v_state.lane_id, v_state.next_attempt_at);
    return null;
  end if;
  return v_state;
end
$$;

comment on function parley_store._p_take_token(bigint, bigint) is
'Gives the state of the lane, locked, when a token counts and items may be claimed; null otherwise.';

create function parley_store._p_leave(lane_id bigint) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_newest bigint := coalesce(parley_store._p_newest_activation(lane_id), 0);
  v_before bigint;
begin
  select s.activated_to into v_before from parley_store._p_lane_state as s where s.lane_id = _p_leave.lane_id;
  update parley_store._p_lane_state as s
  set is_scheduled = false, activated_to = v_newest, visited_at = clock_timestamp()
  where s.lane_id = _p_leave.lane_id;
  if v_before < v_newest then
    delete from parley_store._p_activation as a where a.lane_id = _p_leave.lane_id and a.activation_id = v_before;
  end if;
end
$$;

comment on function parley_store._p_leave(bigint) is
'Leaves a lane that is empty, until somebody puts work there. The caller has locked it against that for update.';

create function parley_store._p_return_token(lane_id bigint, has_claimed boolean, may_be_empty boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if may_be_empty then
    -- A transaction that puts work has locked this row for key share: then some may come.
    perform from parley_store._p_lane as l where l.lane_id = _p_return_token.lane_id for update skip locked;
    if found and not parley_store._p_has_work(lane_id) then
      perform parley_store._p_leave(lane_id);
      return;
    end if;
    perform parley_store._p_schedule(lane_id, case when not has_claimed then clock_timestamp() + '20 ms' end);
    return;
  end if;
  perform parley_store._p_schedule(lane_id, null);
end
$$;

comment on function parley_store._p_return_token(bigint, boolean, boolean) is
'Puts the token of a lane back at the end of the queue, or drops it when the lane is empty.
Arguments: lane_id, its state locked by the caller; has_claimed, whether items were claimed; may_be_empty, whether fewer
were there than asked for.';
