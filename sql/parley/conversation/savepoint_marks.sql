-- The sequences that a RECEIVE in a subtransaction marks, each for the numbers of some subtransactions.
-- receive/savepoints.sql says what a mark holds and why. conversation/awaited_reports.sql asks whose part a
-- subtransaction was.

create sequence parley._p_savepoint_0 minvalue 0 start 0;
create sequence parley._p_savepoint_1 minvalue 0 start 0;
create sequence parley._p_savepoint_2 minvalue 0 start 0;
create sequence parley._p_savepoint_3 minvalue 0 start 0;
create sequence parley._p_savepoint_4 minvalue 0 start 0;
create sequence parley._p_savepoint_5 minvalue 0 start 0;
create sequence parley._p_savepoint_6 minvalue 0 start 0;
create sequence parley._p_savepoint_7 minvalue 0 start 0;
create sequence parley._p_savepoint_8 minvalue 0 start 0;
create sequence parley._p_savepoint_9 minvalue 0 start 0;
create sequence parley._p_savepoint_10 minvalue 0 start 0;
create sequence parley._p_savepoint_11 minvalue 0 start 0;
create sequence parley._p_savepoint_12 minvalue 0 start 0;
create sequence parley._p_savepoint_13 minvalue 0 start 0;
create sequence parley._p_savepoint_14 minvalue 0 start 0;
create sequence parley._p_savepoint_15 minvalue 0 start 0;
create sequence parley._p_savepoint_16 minvalue 0 start 0;
create sequence parley._p_savepoint_17 minvalue 0 start 0;
create sequence parley._p_savepoint_18 minvalue 0 start 0;
create sequence parley._p_savepoint_19 minvalue 0 start 0;
create sequence parley._p_savepoint_20 minvalue 0 start 0;
create sequence parley._p_savepoint_21 minvalue 0 start 0;
create sequence parley._p_savepoint_22 minvalue 0 start 0;
create sequence parley._p_savepoint_23 minvalue 0 start 0;
create sequence parley._p_savepoint_24 minvalue 0 start 0;
create sequence parley._p_savepoint_25 minvalue 0 start 0;
create sequence parley._p_savepoint_26 minvalue 0 start 0;
create sequence parley._p_savepoint_27 minvalue 0 start 0;
create sequence parley._p_savepoint_28 minvalue 0 start 0;
create sequence parley._p_savepoint_29 minvalue 0 start 0;
create sequence parley._p_savepoint_30 minvalue 0 start 0;
create sequence parley._p_savepoint_31 minvalue 0 start 0;

create function parley._p_savepoint_sequence(transaction_id xid) returns regclass
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  return ('parley._p_savepoint_' || (transaction_id::text::bigint & 31))::regclass;
end
$$;

comment on function parley._p_savepoint_sequence(xid) is
'Gives the sequence that a subtransaction marks when it receives.';
