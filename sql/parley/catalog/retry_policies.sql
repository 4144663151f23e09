-- Retry policies: for how long a message waits after a failure, and after how many failures it is set aside.
--
-- A queue has one policy or none. A simple queue has the default one unless create_queue was asked for something else;
-- a queue of conversations has none unless it is given one: what rolls back is received again at once, as in SQL
-- Server. A policy counts where poison messages are handled and set aside; a queue that a poison message disables has
-- none. Waits that are under way keep their time when the policy changes.
-- Locks: none but the row of the policy. Cost: TAKE and RECEIVE read a policy after a failure only.

create table parley._p_retry_policy (
  queue_id integer primary key references parley._p_queue on delete cascade,
  first_ms bigint not null default 1000,
  factor double precision not null default 2,
  longest_ms bigint not null default 600000,
  jitter double precision not null default 0.1,
  attempts integer not null default 20,
  losses integer not null default 60
);

comment on table parley._p_retry_policy is
'For how long messages of a queue wait after a failure: first_ms, then factor times as long each time, up to longest_ms;
jitter is the part of it that is left to chance. attempts is after how many failures a message is set aside, losses
after how many returns of which nobody said why.';

create function parley._p_retry_policy_of(queue parley._p_queue) returns parley._p_retry_policy
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p
  from parley._p_retry_policy as p
  where p.queue_id = queue.queue_id
    and queue.is_poison_message_handling_enabled
    and queue.poison_action = 'SET_ASIDE'
$$;

comment on function parley._p_retry_policy_of(parley._p_queue) is
'Gives the retry policy that counts for a queue; null when there is none, or poison messages are not set aside there.';

create function parley._p_retry_wait(policy parley._p_retry_policy, failures integer) returns interval
language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select least(
    policy.longest_ms::float8,
    -- The exponent is bounded, so that the power is a number.
    policy.first_ms * power(policy.factor, least(greatest(failures, 1) - 1, 60))
  ) * (1 - policy.jitter * random()) * interval '1 ms'
$$;

comment on function parley._p_retry_wait(parley._p_retry_policy, integer) is
'Gives for how long a message waits after so many failures.';

create function parley._p_moment(policy parley._p_retry_policy) returns interval
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select least(500, policy.first_ms) * interval '1 ms'
$$;

comment on function parley._p_moment(parley._p_retry_policy) is
'Gives for how long a message waits of which it is not known whether it failed before: half a second, or the first wait
where that is shorter.';

create function parley._p_require_policy(policy parley._p_retry_policy) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_wrong record;
begin
  select * into v_wrong
  from (
    values
      ('first, in milliseconds,', policy.first_ms::float8, 1, 604800000),
      ('longest, in milliseconds,', policy.longest_ms::float8, 1, 604800000),
      ('factor', policy.factor, 1, 100),
      ('jitter', policy.jitter, 0, 1),
      ('attempts', policy.attempts::float8, 1, 1000000),
      ('losses', policy.losses::float8, 1, 1000000)
  ) as s (name, value, least_value, largest_value)
  where (s.value between s.least_value and s.largest_value) is not true
  limit 1;
  if found then
    found := parley._p_raise(
      8402, 'range', v_wrong.name, coalesce(v_wrong.value::text, 'null'), v_wrong.least_value::text,
      v_wrong.largest_value::text
    );
  end if;
  return true;
end
$$;

comment on function parley._p_require_policy(parley._p_retry_policy) is
'Refuses a policy that is out of range.
Errors: 8402.';

create function parley._p_set_retry_policy(policy parley._p_retry_policy) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley._p_require_policy(policy);
  insert into parley._p_retry_policy (queue_id, first_ms, factor, longest_ms, jitter, attempts, losses)
  values (
    policy.queue_id, policy.first_ms, policy.factor, policy.longest_ms, policy.jitter, policy.attempts, policy.losses
  )
  on conflict on constraint _p_retry_policy_pkey do update
  set first_ms = excluded.first_ms, factor = excluded.factor, longest_ms = excluded.longest_ms,
    jitter = excluded.jitter, attempts = excluded.attempts, losses = excluded.losses;
  return true;
end
$$;

comment on function parley._p_set_retry_policy(parley._p_retry_policy) is
'Gives a queue a policy, in place of the one that it has.
Errors: 8402 out of range.';

create function parley._p_milliseconds(length interval) returns bigint
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when length is not null then least(greatest(extract(epoch from length) * 1000, -1), 9000000000000000)::bigint
  end
$$;

comment on function parley._p_milliseconds(interval) is 'Gives how many milliseconds an interval has, null for null.';

create function parley._p_read_policy(queue_id integer, retry jsonb) returns parley._p_retry_policy
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley._p_retry_policy;
  v_attempts integer;
  v_unknown text;
begin
  v_attempts := coalesce((retry ->> 'attempts')::integer, 20);
  v_unknown := (
    select string_agg(k.name, ', ' order by k.name)
    from jsonb_object_keys(retry) as k (name)
    where k.name not in ('first', 'factor', 'longest', 'jitter', 'attempts', 'losses')
  );
  if v_unknown is not null then
    found := parley._p_raise(8402, 'retry', v_unknown);
  end if;
  v_policy := row(
    queue_id, parley._p_milliseconds(coalesce((retry ->> 'first')::interval, interval '1 second')),
    coalesce((retry ->> 'factor')::float8, 2),
    parley._p_milliseconds(coalesce((retry ->> 'longest')::interval, interval '10 minutes')),
    coalesce((retry ->> 'jitter')::float8, 0.1), v_attempts,
    coalesce((retry ->> 'losses')::integer, least(3 * v_attempts::bigint, 1000000)::integer)
  );
  v_policy.longest_ms := greatest(v_policy.longest_ms, case when retry ? 'longest' then 0 else v_policy.first_ms end);
  return v_policy;
exception
  when invalid_text_representation or invalid_datetime_format or datetime_field_overflow or numeric_value_out_of_range
    or interval_field_overflow or invalid_parameter_value then
    found := parley._p_raise(8402, 'retry', coalesce(left(retry::text, 200), 'null'));
    return null;
end
$$;

comment on function parley._p_read_policy(integer, jsonb) is
'Reads a policy as create_queue takes it: an object with first and longest, each an interval, factor, jitter, attempts
and losses, of which each may be left out.
Errors: 8402 not such an object.';

create function parley.set_retry_policy(
  queue text,
  first interval default '1 second',
  factor double precision default 2,
  longest interval default '10 minutes',
  jitter double precision default 0.1,
  attempts integer default 20,
  losses integer default null,
  caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(parley._p_caller(caller), queue, 'ALTER');
begin
  found := parley._p_require_range('attempts', attempts, 1, 1000000);
  if v_queue.poison_action <> 'SET_ASIDE' or not v_queue.is_poison_message_handling_enabled then
    found := parley._p_raise(8402, 'retry without setting aside', v_queue.lookup_name);
  end if;
  found := parley._p_set_retry_policy(row(
    v_queue.queue_id, parley._p_milliseconds(first), factor, parley._p_milliseconds(longest), jitter, attempts,
    coalesce(losses, least(3 * attempts::bigint, 1000000)::integer)
  ));
end
$$;

comment on function parley.set_retry_policy(
  text, interval, double precision, interval, double precision, integer, integer, parley.caller
) is
'Gives a queue a retry policy, in place of the one that it has: a message that failed waits, without a lock, and is set
aside after too many failures. In a queue of conversations the conversation waits, in a simple queue the message and
those behind it of its key; the others go on.
Arguments: queue; first, how long the first wait is; factor, how many times as long each further one is, 1 to 100;
longest, how long one is at most; first and longest are 1 millisecond to 7 days; jitter, which part of a wait is left
to chance, 0 to 1; attempts, after how many failures it is set aside, 1 to 1,000,000; losses, after how many returns of
which nobody said why, as when a worker is killed (null: three times attempts).
Errors: 208 no such queue, 229 not allowed, 8402 out of range, or poison messages of the queue are not set aside, 9609
malformed name, 9663 a queue of the system.
Source: spec P32, 5.6.';

create function parley.remove_retry_policy(queue text, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_queue parley._p_queue := parley._p_find_queue(parley._p_caller(caller), queue, 'ALTER');
begin
  delete from parley._p_retry_policy as p where p.queue_id = v_queue.queue_id;
  return found;
end
$$;

comment on function parley.remove_retry_policy(text, parley.caller) is
'Takes the retry policy of a queue away: what rolls back is taken or received again at once, and set aside after
poison_rollbacks. Messages that wait go on waiting. Returns whether there was one.
Arguments: queue.
Errors: 208 no such queue, 229 not allowed, 9609 malformed name, 9663 a queue of the system.
Source: spec P32, 5.6.';
