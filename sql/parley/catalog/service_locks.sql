-- The lock of the name of a service: first sends share it; who takes the service away, or changes what was remembered
-- of it, takes it alone (docs/internals/lock-order.md). A function that only tries it asks _p_may_remember_routes
-- (conversation/connect.sql).
--
-- It is an advisory lock, because nothing else is shared by all first sends without a write: the lock of a row would
-- be written by each of them, to one page that all share. Anybody can take it, too, so that no first send waits for it:
-- where it is not to be had, it waits for the row of the service, which only who changes it takes alone. He takes the
-- lock before, and waits for it, also for an outsider; but without the row, and so holds up no first send meanwhile.
-- Locks: the advisory lock of the name, then the row of the service.

create function parley._p_await_service(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if not pg_try_advisory_xact_lock_shared(hashtextextended('parley routes ' || service_name, 0)) then
    perform from parley._p_service as s where s.name = service_name for key share;
  end if;
end
$$;

comment on function parley._p_await_service(text) is
'Waits for a session that drops a service, moves it to another queue or changes its contracts, so that the next
statement finds the result. Until this transaction ends, such a session waits for it in _p_forget_later_routes, and
finds the sides that it makes. An outsider who holds the advisory lock delays it no more than by the lock of a row.';

create function parley._p_forget_later_routes(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('parley routes ' || service_name, 0));
  perform from parley._p_service as s where s.name = service_name for update;
end
$$;

comment on function parley._p_forget_later_routes(text) is
'Waits for transactions that remember routes of a service by what they read before, so that the next statement finds
these routes, and lets nobody remember others until this transaction ends.';
