-- How errors leave the broker.
--
-- Each error of the broker carries the SQL Server error number twice: in its SQLSTATE (class SB, then the number in
-- base 36, three digits) and at the start of its DETAIL. The text states the fact, the HINT states what to do. All
-- texts stand in base/definition_errors.sql and base/conversation_errors.sql; they are read only when an error is
-- raised. Those of errors that are not raised, but end a conversation or make a message wait, stand in
-- base/message_errors.sql and base/status_errors.sql.
--
-- PostgreSQL adds a CONTEXT, a line for each function on the way, and drivers print it. For a statement inside of a
-- function it adds the text of the statement, all lines of it; PERFORM is a statement. An assignment is evaluated
-- without one. So what may raise is called as found := parley._p_raise(...); and gives true if it returns at all, which
-- leaves FOUND as PERFORM would. A check that has to be a statement, as the INSERT of SEND, is one short line.
-- Source: spec section 4.10.

create function parley.sqlstate_of(error_number integer) returns text
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select 'SB'
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', error_number / 1296 + 1, 1)
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', (error_number / 36) % 36 + 1, 1)
    || substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', error_number % 36 + 1, 1)
$$;

comment on function parley.sqlstate_of(integer) is
'Gives the SQLSTATE under which a Service Broker error is raised.
Arguments: error_number, the SQL Server number (0 to 46655).
Source: spec 4.10.';

create function parley.error_number(sqlstate text) returns integer
language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case
    when error_number.sqlstate ~ '^SB[0-9A-Z]{3}$' then
      (strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(error_number.sqlstate, 3, 1)) - 1) * 1296
      + (strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(error_number.sqlstate, 4, 1)) - 1) * 36
      + strpos('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ', substr(error_number.sqlstate, 5, 1)) - 1
  end
$$;

comment on function parley.error_number(text) is
'Gives the SQL Server number of an error that was caught, as ERROR_NUMBER() does: exception when others then ...
parley.error_number(sqlstate).
Arguments: sqlstate, as a handler has it. The result is null for an error that is not the broker''s.
Source: spec 4.10.';

create view parley._p_sent_error as
select m.number, m.situation, m.message, m.cause, m.remedy, 'MESSAGE' as form from parley._p_message_error as m
union all
select s.number, s.situation, s.message, s.cause, s.remedy, 'STATUS' as form from parley._p_status_error as s;

comment on view parley._p_sent_error is 'Errors that are not raised.';

create view parley.errors as
select e.number, parley.sqlstate_of(e.number) as sqlstate, e.situation, e.message, e.cause, e.remedy, e.form
from (
  select d.number, d.situation, d.message, d.cause, d.remedy, 'RAISED' as form from parley._p_definition_error as d
  union all
  select c.number, c.situation, c.message, c.cause, c.remedy, 'RAISED' as form from parley._p_conversation_error as c
  union all
  select s.number, s.situation, s.message, s.cause, s.remedy, s.form from parley._p_sent_error as s where s.number > 0
  union all
  select d.number, d.situation, d.message, d.cause, d.remedy, 'STATUS' as form from parley._p_daemon_error as d
) as e;

comment on view parley.errors is
'Each error of the broker, a row for each situation in which it is raised or arrives: select * from
parley.errors where number = 8429.';

comment on column parley.errors.number is 'SQL Server''s number.';
comment on column parley.errors.sqlstate is 'Under which it is raised: sqlstate_of(number).';
comment on column parley.errors.situation is
'The situation that the number stands for here; different for each row of a number.';
comment on column parley.errors.message is 'The fact. %1$s and the like stand for a value, as in format().';
comment on column parley.errors.cause is
'The values, or why; it follows the number in DETAIL. Null when the fact says it all.';
comment on column parley.errors.remedy is 'The remedy; the HINT.';
comment on column parley.errors.form is
'How it comes: RAISED by a statement, MESSAGE for an Error message with the negative number, STATUS for the
transmission_status of messages that wait.';

create function parley._p_raise(number integer, situation text, variadic arguments text[] default '{}') returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
-- The rows are planned once in a session, not for each of its first five errors.
set plan_cache_mode = force_generic_plan
as $$
declare
  v_error record;
begin
  select e.message, e.cause, e.remedy into v_error
  from parley.errors as e
  where e.form = 'RAISED' and e.number = _p_raise.number and e.situation = _p_raise.situation;
  raise exception using
    errcode = parley.sqlstate_of(number),
    message = coalesce(format(v_error.message, variadic arguments), situation),
    detail = 'Service Broker error ' || number || '.' || coalesce(' ' || format(v_error.cause, variadic arguments), ''),
    hint = coalesce(format(v_error.remedy, variadic arguments), '');
end
$$;

comment on function parley._p_raise(integer, text, text[]) is
'Raises one error of the broker; never returns.
Arguments: number and situation, constants that name a row of parley.errors; arguments, the values
that its texts have places for.
Errors: always, with sqlstate_of(number).';

create type parley._p_error as (
  error_number integer,
  description text
);

comment on type parley._p_error is 'An error that is not raised: a number, without a sign, and what it says.';

create function parley._p_error_of(
  number integer, situation text, variadic arguments text[] default '{}'
) returns parley._p_error
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  return (
    select (e.number, format(e.message, variadic arguments))::parley._p_error
    from parley._p_sent_error as e
    where e.number = _p_error_of.number and e.situation = _p_error_of.situation
  );
end
$$;

comment on function parley._p_error_of(integer, text, text[]) is
'Makes an error that is not raised of a row of base/message_errors.sql or base/status_errors.sql.
Arguments: as those of _p_raise.';

create function parley._p_status(number integer, situation text, variadic arguments text[] default '{}') returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select (parley._p_error_of(number, situation, variadic arguments)).description
$$;

comment on function parley._p_status(integer, text, text[]) is
'Says why messages wait, as transmission_status has it.
Arguments: as those of _p_raise.';

create function parley._p_numbered_status(
  number integer, situation text, variadic arguments text[] default '{}'
) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select number || ': ' || (parley._p_error_of(number, situation, variadic arguments)).description
$$;

comment on function parley._p_numbered_status(integer, text, text[]) is
'Says why messages wait, with the number in front, by which the daemon knows what it is about.
Arguments: as those of _p_raise.';
