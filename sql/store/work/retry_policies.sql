-- Retry policies: when something that failed is tried again, and when it is given up.
--
-- A policy is a row. STEPS: so many attempts at one interval, then so many at the next, then the last interval until
-- expiry. EXPONENTIAL: the first interval, times the factor each time, up to the last interval. Each interval is
-- spread by jitter, so that what failed together does not come back together.
-- Source: spec hub-transport 8.1, 8.3.

create table parley_store._p_retry_policy (
  policy text primary key,
  form text not null check (form in ('STEPS', 'EXPONENTIAL')),
  step_counts integer[] not null default '{}',
  step_intervals interval[] not null default '{}',
  first_interval interval,
  factor numeric,
  last_interval interval not null,
  jitter numeric not null default 0.15,
  expires_after interval not null default '2 days',
  notice_after interval not null default '4 hours'
);

comment on table parley_store._p_retry_policy is 'When something that failed is tried again.';

create view parley_store.retry_policies as
select
  p.policy, p.form, p.step_counts, p.step_intervals, p.first_interval, p.factor, p.last_interval, p.jitter,
  p.expires_after, p.notice_after
from parley_store._p_retry_policy as p;

comment on view parley_store.retry_policies is 'The retry policies; "default" is there from the beginning.';
comment on column parley_store.retry_policies.form is 'STEPS or EXPONENTIAL.';
comment on column parley_store.retry_policies.step_counts is 'How many attempts at each interval of step_intervals.';
comment on column parley_store.retry_policies.last_interval is 'From then on; of EXPONENTIAL the largest.';
comment on column parley_store.retry_policies.jitter is 'Each interval is up to this part shorter or longer.';
comment on column parley_store.retry_policies.expires_after is 'When it is given up, after the time it came.';
comment on column parley_store.retry_policies.notice_after is 'When the sender should learn of the delay.';

create function parley_store._p_fault_of_policy(policy parley_store._p_retry_policy) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_longest interval;
begin
  if policy.last_interval is null or policy.last_interval not between interval '1 second' and interval '20 days' then
    return 'last_interval must be from 1 second to 20 days.';
  elsif policy.jitter is null or policy.jitter not between 0 and 0.5 then
    return 'jitter must be from 0 to 0.5.';
  elsif (policy.expires_after between interval '5 seconds' and interval '90 days') is not true then
    return 'expires_after must be from 5 seconds to 90 days.';
  elsif policy.notice_after is null or policy.notice_after not between interval '1 second' and interval '30 days' then
    return 'notice_after must be from 1 second to 30 days.';
  elsif policy.form = 'EXPONENTIAL' then
    if (policy.first_interval between interval '1 second' and policy.last_interval) is not true then
      return 'first_interval must be from 1 second to last_interval.';
    elsif policy.factor is null or policy.factor not between 1 and 10 then
      return 'factor must be from 1 to 10.';
    end if;
    return null;
  elsif policy.form is distinct from 'STEPS' then
    return 'form must be STEPS or EXPONENTIAL.';
  elsif policy.step_counts is null or policy.step_intervals is null
    or cardinality(policy.step_counts) <> cardinality(policy.step_intervals)
    or cardinality(policy.step_counts) > 10 then
    return 'step_counts and step_intervals must be of one length, at most 10.';
  elsif exists (select from unnest(policy.step_counts) as c (n) where (c.n between 0 and 15) is not true) then
    return 'Each of step_counts must be from 0 to 15.';
  elsif exists (
    select from unnest(policy.step_intervals) as i (n)
    where (i.n between interval '1 second' and interval '12 hours') is not true
  ) then
    return 'Each of step_intervals must be from 1 second to 12 hours.';
  end if;
  select max(s.n * s.i) into v_longest from unnest(policy.step_counts, policy.step_intervals) as s (n, i);
  if policy.notice_after <= v_longest then
    return format('notice_after must be longer than %s, the longest of the steps.', v_longest);
  end if;
  return null;
end
$$;

comment on function parley_store._p_fault_of_policy(parley_store._p_retry_policy) is
'Says what is wrong with a policy; null when nothing is.
Source: spec hub-transport 8.1, 8.3.';

create function parley_store.set_retry_policy(
  policy text, form text, last_interval interval,
  step_counts integer[] default '{}', step_intervals interval[] default '{}',
  first_interval interval default null, factor numeric default null,
  jitter numeric default 0.15, expires_after interval default '2 days', notice_after interval default '4 hours'
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley_store._p_retry_policy;
  v_fault text;
begin
  v_policy := row(
    policy, upper(form collate "C"), step_counts, step_intervals, first_interval, factor, last_interval, jitter,
    expires_after,
    notice_after
  );
  v_fault := case
    when coalesce(policy, '') = '' then 'It has no name.'
    else parley_store._p_fault_of_policy(v_policy)
  end;
  if v_fault is not null then
    found := parley_store._p_raise('policy form', coalesce(policy, 'null'), v_fault);
  end if;
  insert into parley_store._p_retry_policy as p (
    policy, form, step_counts, step_intervals, first_interval, factor, last_interval, jitter, expires_after,
    notice_after
  )
  values (
    v_policy.policy, v_policy.form, v_policy.step_counts, v_policy.step_intervals, v_policy.first_interval,
    v_policy.factor, v_policy.last_interval, v_policy.jitter, v_policy.expires_after, v_policy.notice_after
  )
  on conflict on constraint _p_retry_policy_pkey do update set
    form = excluded.form, step_counts = excluded.step_counts, step_intervals = excluded.step_intervals,
    first_interval = excluded.first_interval, factor = excluded.factor, last_interval = excluded.last_interval,
    jitter = excluded.jitter, expires_after = excluded.expires_after, notice_after = excluded.notice_after;
end
$$;

comment on function parley_store.set_retry_policy(
  text, text, interval, integer[], interval[], interval, numeric, numeric, interval, interval
) is
'Creates a retry policy or replaces it; what is delayed already keeps its time.
Arguments: policy, its name; form, STEPS or EXPONENTIAL; last_interval, 1 second to 20 days; step_counts, 0 to 15 each,
and step_intervals, 1 second to 12 hours each; first_interval and factor, 1 to 10, of EXPONENTIAL; jitter, 0 to 0.5;
expires_after, 5 seconds to 90 days; notice_after, 1 second to 30 days and longer than each step.
Errors: PS007.
Source: spec hub-transport 8.1, 8.3.';

create function parley_store._p_policy(policy text) returns parley_store._p_retry_policy
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley_store._p_retry_policy;
begin
  select * into v_policy from parley_store._p_retry_policy as p where p.policy = _p_policy.policy;
  if not found then
    found := parley_store._p_raise('policy', coalesce(policy, 'null'));
  end if;
  return v_policy;
end
$$;

comment on function parley_store._p_policy(text) is
'Finds a retry policy.
Errors: PS007.';

create function parley_store.retry_interval(policy text, attempt integer) returns interval
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley_store._p_retry_policy := parley_store._p_policy(policy);
  v_left integer := attempt;
begin
  found := parley_store._p_require_range('attempt', attempt, 1, 1000000);
  if v_policy.form = 'EXPONENTIAL' then
    -- The largest interval is reached long before the exponent matters.
    return make_interval(secs => least(
      extract(epoch from v_policy.last_interval)::double precision,
      extract(epoch from v_policy.first_interval) * power(v_policy.factor::double precision, least(attempt - 1, 60))
    ));
  end if;
  for v_step in 1..cardinality(v_policy.step_counts) loop
    if v_left <= v_policy.step_counts[v_step] then
      return v_policy.step_intervals[v_step];
    end if;
    v_left := v_left - v_policy.step_counts[v_step];
  end loop;
  return v_policy.last_interval;
end
$$;

comment on function parley_store.retry_interval(text, integer) is
'Gives how long to wait after a failed attempt, without jitter.
Arguments: policy; attempt, how many have failed, from 1 on.
Errors: PS002, PS007.
Source: spec hub-transport 8.1.';

create function parley_store.next_attempt(
  policy text, attempt integer, since timestamptz, failed_at timestamptz default clock_timestamp()
) returns timestamptz
language plpgsql volatile
set search_path = pg_catalog, pg_temp
as $$
declare
  v_policy parley_store._p_retry_policy := parley_store._p_policy(policy);
  v_spread double precision := 1 + (2 * random() - 1) * v_policy.jitter;
  v_next timestamptz := failed_at + parley_store.retry_interval(policy, attempt) * v_spread;
  v_end timestamptz := since + v_policy.expires_after;
begin
  if failed_at >= v_end then
    return null;
  end if;
  -- The last attempt is made when the time is over, not skipped because the interval is longer.
  return least(v_next, v_end);
end
$$;

comment on function parley_store.next_attempt(text, integer, timestamptz, timestamptz) is
'Gives when to try again; null when the time of the policy is over.
Arguments: policy; attempt, how many have failed, from 1 on; since, when it came (null: it never expires);
failed_at, the time of the failure.
Errors: PS002, PS007.
Source: spec hub-transport 8.1, 8.3.';

-- Four times a minute, six times five minutes, then ten minutes, for two days.
insert into parley_store._p_retry_policy (policy, form, step_counts, step_intervals, last_interval)
values ('default', 'STEPS', '{4, 6}', '{1 minute, 5 minutes}', '10 minutes');
