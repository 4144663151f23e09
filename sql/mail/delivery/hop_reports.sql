-- Reports of daemons about next hops: whether they were reached (spec mail 8.1).

create function parley_mail._p_report_hops(
  lanes text[], errors text[], began timestamptz[], caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_hop record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  -- In the order in which those lock lanes who end leases, so that two daemons do not wait for each other. Outcomes
  -- that the same transaction has recorded before have locked these lanes already.
  for v_hop in
    select u.lane, u.error, u.began
    from unnest(lanes, errors, began) as u (lane, error, began)
    join parley_store.lanes as l on l.system = 'mail' and l.lane = u.lane
    order by l.lane_id
  loop
    if v_hop.error is null then
      perform parley_store.succeed_lane('mail', v_hop.lane);
    else
      perform parley_store.fail_lane('mail', v_hop.lane, v_hop.error, v_hop.began);
    end if;
  end loop;
end
$$;

comment on function parley_mail._p_report_hops(text[], text[], timestamptz[], parley.caller) is
'Reports whether next hops were reached: one that was not is left alone for as long as its retry policy says.
Arguments: lanes; errors, null for a hop that was reached; began, when the connection was begun.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 8.1.';
