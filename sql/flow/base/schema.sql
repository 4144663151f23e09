-- The schema of the integration engine, the number of its configuration, and what its users did.
--
-- The engine is a system beside the broker: it calls functions of the broker and of the store and never touches their
-- private tables. Everything about a message is decided here, in the transaction of the caller; hosts ask, run
-- pipelines and talk to the network. Objects whose name begins with _p_ are private, also the functions that a host
-- calls: a member of the role of the host may call those (flow/base/rights.sql).

create schema parley_flow;

comment on schema parley_flow is
'The integration engine on Parley: definitions, message box, ports. Functions and views are the interface; names that
begin with _p_ are private.';

create table parley_flow._p_configuration (
  is_only boolean primary key default true check (is_only),
  version bigint not null default 1,
  epoch bigint not null default 1,
  is_set_up boolean not null default false,
  keeps_finished boolean not null default false,
  tracks_properties boolean not null default false,
  key_secret bytea not null default uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()),
  changed_at timestamptz not null default clock_timestamp()
);

comment on table parley_flow._p_configuration is
'One row. version grows with each change of definitions or states, epoch with each change of subscriptions. Each
transaction that changes any of them locks it first, so that changes are made one after the other. key_secret: with
which keys of orders are named whose property is sensitive.';

insert into parley_flow._p_configuration (is_only) values (true);

create table parley_flow._p_audit (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  role text not null,
  operation text not null,
  object text not null,
  detail jsonb
);

comment on table parley_flow._p_audit is
'The actions of administrators and operators, a row each: definitions, states, grants, operations on messages, bodies
that were read.';

create index _p_audit_at on parley_flow._p_audit (at);

create function parley_flow._p_record_audit(caller oid, operation text, object text, detail jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_flow._p_audit (role, operation, object, detail)
  values (
    pg_get_userbyid(_p_record_audit.caller), _p_record_audit.operation, _p_record_audit.object, _p_record_audit.detail
  );
end
$$;

comment on function parley_flow._p_record_audit(oid, text, text, jsonb) is
'Records who did what, in the transaction that did it.
Arguments: caller, the role; operation, a verb; object, what it was done to; detail, arguments and results.';

create function parley_flow._p_begin_change() returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_version bigint;
begin
  -- In one statement with the change, so that who waited for another sees what that one did.
  update parley_flow._p_configuration as c
  set version = c.version + 1, changed_at = clock_timestamp()
  returning c.version into v_version;
  return v_version;
end
$$;

comment on function parley_flow._p_begin_change() is
'Begins a change of definitions or states: later ones wait for its end. Gives the number of the configuration that it
makes.';

create function parley_flow._p_next_epoch() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update parley_flow._p_configuration as c set epoch = c.epoch + 1;
end
$$;

comment on function parley_flow._p_next_epoch() is
'Says that subscriptions have changed: what a host has matched by itself counts no more.';
