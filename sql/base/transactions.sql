-- Which transactions are under way.

create function parley._p_is_running(transaction_id xid) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint;
  v_age bigint := (v_next - transaction_id::text::bigint) & 4294967295;
begin
  if transaction_id::text in ('0', '1', '2') then
    return false;
  elsif v_age = 0 or v_age > 2147483647 then
    -- It has begun since our scan began.
    return true;
  end if;
  return coalesce(pg_xact_status((v_next - v_age)::text::xid8) = 'in progress', false);
end
$$;

comment on function parley._p_is_running(xid) is
'Reports whether a transaction or subtransaction, such as the xmax of a row, has not ended yet.';
