-- The schema of mail transport, and the version of its configuration.
--
-- Mail is a system beside the broker: it calls functions of parley and parley_store and never touches their private
-- tables. Everything about a message is decided here, in the transaction of the caller; programs ask and talk to the
-- network. Objects whose name begins with _p_ are private, also the functions that a daemon calls: a role that holds
-- the right SERVE may call those (base/rights.sql).

create schema parley_mail;

comment on schema parley_mail is
'Mail transport on Parley: submission, routing, queues, delivery. Functions and views are the interface; names that
begin with _p_ are private.';

create table parley_mail._p_configuration_version (
  is_only boolean primary key default true check (is_only),
  version bigint not null default 1,
  changed_at timestamptz not null default now()
);

comment on table parley_mail._p_configuration_version is
'One row: the number of the configuration, which grows with each change. Each transaction that changes anything locks
it first. So changes are made one after the other, and each is checked against all before it.';

insert into parley_mail._p_configuration_version (is_only) values (true);

create table parley_mail._p_organization (
  is_only boolean primary key default true check (is_only),
  settings jsonb not null,
  default_domain text,
  max_send_size bigint not null,
  max_recipients integer not null,
  expiry_seconds integer[] not null,
  max_high_priority_size bigint not null,
  is_set_up boolean not null default false,
  refusing_until timestamptz,
  refusing_reason text,
  is_at_floor boolean not null default false,
  followed_version bigint not null default 0,
  submission_suspended_at timestamptz
);

comment on table parley_mail._p_organization is
'One row: settings of the organization that each submission reads. expiry_seconds by priority, from high to low.
is_set_up: what mail has in the broker and in the store is there (settings/set_up.sql). refusing_until: until then
submission by SQL is refused because resources are short (null: it is not), except for roles that are exempt while
is_at_floor is false. followed_version: the version of the configuration whose limits and policies the queues have.
submission_suspended_at: since when an operator has nothing categorized; null where he has not.';

insert into parley_mail._p_organization (
  settings, max_send_size, max_recipients, expiry_seconds, max_high_priority_size
)
values ('{}', 10485760, 500, array[28800, 172800, 172800], 256000);

create table parley_mail._p_audit (
  audit_id bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  role text not null,
  operation text not null,
  object text not null,
  detail jsonb
);

comment on table parley_mail._p_audit is
'The actions of administrators and operators, a row each: changes of the configuration, grants, operations on queues
and messages, content that was read.';

create index _p_audit_at on parley_mail._p_audit (at);

create function parley_mail._p_forget_audit() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_retention constant interval := coalesce((
    select (o.settings ->> 'audit_retention')::integer from parley_mail._p_organization as o
  ), 31536000) * interval '1 second';
  v_forgotten integer;
begin
  -- Some at a time, so that no call takes long: what is left goes with the next.
  delete from parley_mail._p_audit as a
  where a.ctid = any (array(
    select p.ctid
    from parley_mail._p_audit as p
    where p.at < clock_timestamp() - v_retention
    order by p.at
    limit 10000
    for update skip locked
  ));
  get diagnostics v_forgotten = row_count;
  return v_forgotten;
end
$$;

comment on function parley_mail._p_forget_audit() is
'Removes what administrators and operators did longer ago than the setting audit_retention says, some of it; gives how
many.';

create function parley_mail._p_record_audit(caller oid, operation text, object text, detail jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_mail._p_audit (role, operation, object, detail)
  values (
    pg_get_userbyid(_p_record_audit.caller), _p_record_audit.operation, _p_record_audit.object, _p_record_audit.detail
  );
end
$$;

comment on function parley_mail._p_record_audit(oid, text, text, jsonb) is
'Records who did what, in the transaction that did it.
Arguments: caller, the role; operation, a verb; object, what it was done to; detail, arguments and results.';
