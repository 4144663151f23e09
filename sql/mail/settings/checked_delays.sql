-- The order of the organization's times: a sender is informed of a delay after the transient failures of a host are
-- over, and before the message is given up.

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

create function parley_mail._p_check_retry_rules(name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rule jsonb;
begin
  for v_rule in select s.v from jsonb_array_elements(settings -> 'retry_rules') as s (v) loop
    if not coalesce(
      (v_rule ->> 'policy' <> '' or v_rule ? 'unknown' and not v_rule ? 'policy')
      and case
        when v_rule ? 'unknown'
          then upper((v_rule ->> 'unknown') collate "C") in ('RETRY', 'HOLD', 'FAIL')
            and not v_rule ?| array['priority', 'status']
        else true
      end
      and coalesce(upper((v_rule ->> 'priority') collate "C"), 'LOW') in ('HIGH', 'NORMAL', 'LOW')
      and coalesce(v_rule ->> 'status', '4') ~ E'^4(\\.[0-9]{1,3}(\\.[0-9]{1,3})?)?$'
      and not exists (
        select
        from jsonb_object_keys(v_rule) as k (key)
        where k.key not in ('domain', 'priority', 'status', 'policy', 'unknown')
      ), false
    ) then
      found := parley_mail._p_contradicts('send connector', name, 'itself', format('%s is no retry rule.', v_rule),
        'Write {"domain": "*.example.com", "priority": "HIGH", "status": "4.2", "policy": "quick"}: policy is a retry '
        || 'policy of parley_store, and each condition may be left out. Or {"domain": "d", "unknown": "HOLD"}: what is '
        || 'done with messages that d got and did not answer, RETRY, HOLD or FAIL.');
    end if;
  end loop;
  return true;
end
$$;

comment on function parley_mail._p_check_retry_rules(text, jsonb) is
'Refuses retry rules of a send connector that are malformed.
Errors: PM003.';
