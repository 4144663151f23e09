-- The lock of the name of a service: first sends share it; who takes the service away, or changes what was remembered
-- of it, takes it alone (docs/architecture.md, "Lock order"). Who only tries it asks _p_may_remember_routes
-- (conversation/connect.sql).

create function parley._p_await_service(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('parley routes ' || service_name, 0));
end
$$;

comment on function parley._p_await_service(text) is
'Waits for whoever drops a service, moves it to another queue or changes what it accepts, so that the next statement
finds what he leaves; until this transaction ends, who does so waits for it in _p_forget_later_routes, and finds the
sides that it makes.';

create function parley._p_forget_later_routes(service_name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('parley routes ' || service_name, 0));
end
$$;

comment on function parley._p_forget_later_routes(text) is
'Waits for transactions that remember routes of a service by what they read before, so that the next statement finds
these routes, and lets nobody remember others until this transaction ends.';
