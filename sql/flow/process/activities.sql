-- Activities: the outcome of work that instances have asked workers for.
--
-- A worker takes a message of a simple queue, whose body is {"activity", "name", "input", "attempt", "time_out_ms"},
-- and tells the outcome under "activity". That name is all that it needs: nobody can guess it, and only who may take
-- from the queue gets it. In the transaction that took the message, work in this database is done once.
--
-- The name is one of an attempt: the key of the row, a point, and the number of the attempt. So a worker that was given
-- up tells nothing about the attempt of another one that is under way.
-- Locks: the row of the activity, then lanes. A session that ends the instance waits for it.

create function parley_flow._p_attempt_of(activity text, out key text, out attempt integer)
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select m.parts[1], m.parts[2]::integer
  from regexp_match(activity, '^(.+)[.]([1-9][0-9]{0,8})$') as m (parts)
$$;

comment on function parley_flow._p_attempt_of(text) is
'Takes the name apart that a worker has of an attempt: key, of _p_instance_activity, and attempt; both null where it is
none.';

create function parley_flow._p_require_attempt(activity text) returns parley_flow._p_instance_activity
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name constant record := parley_flow._p_attempt_of(activity);
  v_activity parley_flow._p_instance_activity;
begin
  select * into v_activity
  from parley_flow._p_instance_activity as a
  where a.activity = v_name.key
  for update;
  if v_activity.activity is null or v_activity.done_at is not null then
    found := parley_flow._p_raise('activity');
  elsif v_activity.attempt <> v_name.attempt then
    found := parley_flow._p_raise('attempt', v_name.attempt::text, v_activity.attempt::text);
  end if;
  return v_activity;
end
$$;

comment on function parley_flow._p_require_attempt(text) is
'Locks and gives the activity of which a worker names the attempt that is under way.
Errors: PF006 nothing waits for it; PF018 that attempt was given up, and another one is under way.';

create function parley_flow._p_end_activity(activity text, result jsonb, error text, is_over boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_activity constant parley_flow._p_instance_activity := parley_flow._p_require_attempt(activity);
begin
  update parley_flow._p_instance_activity as a
  set result = $2::text, error = left($3, 10000),
    done_at = case when is_over or a.attempt >= a.attempts then clock_timestamp() end,
    due_at = case when is_over or a.attempt >= a.attempts then a.due_at else clock_timestamp() end
  where a.activity = v_activity.activity;
  perform parley_flow._p_wake_instances(array[v_activity.instance_id]);
end
$$;

comment on function parley_flow._p_end_activity(text, jsonb, text, boolean) is
'Records the outcome of an attempt of an activity and wakes its instance.
Arguments: activity, as the worker has it; result, or error; is_over, whether it is not tried again.
Errors: PF006, PF018.';

create function parley_flow.complete_activity(
  activity text, result jsonb default null, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley.caller_role(caller) is not null then
    perform parley_flow._p_end_activity(activity, coalesce(result, 'null'), null, true);
  end if;
end
$$;

comment on function parley_flow.complete_activity(text, jsonb, parley.caller) is
'Gives an instance the result of work that it has asked for, in this transaction: together with the message that was
taken and all that the worker has written, once.
Arguments: activity, as the message of the queue names it; result.
Errors: PF006 its outcome was told before, or nothing waits for it any more; PF018 the attempt was given up.';

create function parley_flow.fail_activity(
  activity text, error text, is_final boolean default false, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley.caller_role(caller) is not null then
    perform parley_flow._p_end_activity(activity, null, coalesce(error, 'the worker gave no reason'), is_final is true);
  end if;
end
$$;

comment on function parley_flow.fail_activity(text, text, boolean, parley.caller) is
'Says that work could not be done. It is asked for again while its attempts last; then the instance gets the error.
Arguments: activity, as the message of the queue names it; error, for people; is_final, whether no further attempt
helps.
Errors: PF006; PF018 the attempt was given up, and another one is under way.';

create function parley_flow.renew_activity(activity text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_name constant record := parley_flow._p_attempt_of(activity);
begin
  update parley_flow._p_instance_activity as a
  set due_at = clock_timestamp() + a.time_out
  where a.activity = v_name.key and a.attempt = v_name.attempt and a.done_at is null
    and parley.caller_role(caller) is not null;
  return found;
end
$$;

comment on function parley_flow.renew_activity(text, parley.caller) is
'Says that work goes on: its time-out begins anew. False: nothing waits for the outcome any more, or the attempt was
given up and another one is under way, and the worker may stop.
Arguments: activity, as the message of the queue names it.';
