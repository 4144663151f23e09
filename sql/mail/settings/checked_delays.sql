-- What must hold between the times of the organization: a sender is informed of a delay after the transient failures of
-- a host are over, and before the message is given up.

create function parley_mail._p_transient_time(policies text[]) returns interval
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(max(
    p.step_counts[cardinality(p.step_counts)] * p.step_intervals[cardinality(p.step_intervals)]
  ), '0')
  from parley_store.retry_policies as p
  where p.policy = any (policies) and p.form = 'STEPS'
$$;

comment on function parley_mail._p_transient_time(text[]) is
'Gives for how long a host is tried in the last steps of retry policies, those of transient failures, at most.
Arguments: policies; those that do not exist or have no steps count as 0.
Source: spec mail 8.1.';

create function parley_mail._p_check_delays(kind text, name text, retry_policy text default null) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_settings constant jsonb := parley_mail._p_effective('organization', coalesce(
    (select o.settings from parley_mail._p_object as o where o.kind = 'organization' limit 1), '{}'
  ));
  v_policies constant text[] := case kind
    when 'organization' then array(
      select o.settings ->> 'retry_policy' from parley_mail._p_object as o where o.kind = 'send connector'
    ) || 'default'::text
    else array[retry_policy]
  end;
  v_transient constant interval := parley_mail._p_transient_time(v_policies);
  v_suffix text;
  v_notice integer;
begin
  foreach v_suffix in array array['', '_low', '_high'] loop
    v_notice := (v_settings ->> ('delay_notice' || v_suffix))::integer;
    if kind = 'organization' and v_notice >= (v_settings ->> ('expiry' || v_suffix))::integer then
      found := parley_mail._p_contradicts(
        kind, name, 'itself', format('delay_notice%s is not before expiry%1$s.', v_suffix),
        format('Let delay_notice%s be shorter than expiry%1$s.', v_suffix)
      );
    end if;
    -- By default that of high priority comes when these are over, and not after.
    if v_suffix <> '_high' and v_notice * interval '1 second' <= v_transient then
      found := parley_mail._p_contradicts(
        kind, name, case kind when 'organization' then 'itself' else 'the organization' end,
        format('delay_notice%s is not after the retries of transient failures, %s.', v_suffix, v_transient),
        format('Let delay_notice%s of the organization be longer than %s, or the retry policy be shorter.',
          v_suffix, v_transient)
      );
    end if;
  end loop;
  return true;
end
$$;

comment on function parley_mail._p_check_delays(text, text, text) is
'Refuses notices of delay that come while the retries of transient failures last, or after a message is given up.
Arguments: kind and name, of the organization, or of a send connector; retry_policy, of the send connector.
Errors: PM003.
Source: spec mail 8.3.';
