-- What daemons call every few seconds.

create function parley_mail._p_maintain(caller parley.caller default parley.current_caller()) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keys_kept constant interval := make_interval(secs => (
    select coalesce((o.settings ->> 'idempotency_retention')::integer, 604800) from parley_mail._p_organization as o
  ));
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_store.maintain();
  perform parley_mail._p_report_delays();
  perform parley_mail._p_expire_waiting();
  delete from parley_mail._p_idempotency as i
  where (i.submitted_by, i.key) in (
    select o.submitted_by, o.key
    from parley_mail._p_idempotency as o
    where o.at < clock_timestamp() - v_keys_kept
    order by o.at
    limit 1000
    for update skip locked
  );
  delete from parley_mail._p_submitted as s where s.at < clock_timestamp() - interval '2 minutes';
end
$$;

comment on function parley_mail._p_maintain(parley.caller) is
'Gives back what leases that are over held, informs senders of delays, gives up what waited too long, and removes
idempotency keys and counts that are not needed any more. It waits for nobody, and several daemons may call it at once.
Errors: PM001 the role does not hold SERVE, PS009 not READ COMMITTED.
Source: spec mail 4.3, 8.3, 15.2.';
