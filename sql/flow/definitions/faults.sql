-- The faults that definitions can have: rows, as errors are (flow/base/errors.sql).

create type parley_flow.fault as (path text[], situation text, message text, cause text, remedy text);

comment on type parley_flow.fault is
'Something wrong with definitions. path: where, as keys and numbers of elements, from 0 on, from the root of the
document.';

create view parley_flow._p_fault_text as
select t.situation, t.message, t.cause, t.remedy
from (values
  ('document', 'definitions are %1$s', null, 'Give an object {"kind": {"name": {"setting": value}}}.'),
  ('kind', 'there is no kind of object "%1$s"', null, 'Kinds are: %2$s.'),
  ('objects', '"%1$s" is %2$s', null, 'Give an object of names and settings.'),
  ('settings', 'the settings of %1$s "%2$s" are %3$s', null, 'Give an object of settings.'),
  ('name', 'a %1$s cannot be called "%2$s"', null, 'Its name is %3$s.'),
  ('setting', 'a %1$s has no setting "%2$s"', null, 'Its settings are: %3$s.'),
  ('value', '%1$s is %2$s', null, 'It has to be %3$s.'),
  ('missing', 'a %1$s needs %2$s', null, 'Give it: %3$s'),
  ('reference', 'there is no %1$s "%2$s"', null, 'Define it, or name one of: %3$s.'),
  ('direction', 'pipeline "%1$s" is one to %2$s', null, 'Name one to %3$s.'),
  ('role', 'role "%1$s" does not exist', null, 'Create it: create role %1$I; or name one of pg_roles.'),
  ('property name', '"%1$s" is no name of a property', null, 'Write it as namespace#Name.'),
  ('property', 'property "%1$s" is not declared', null,
    'Declare it in the property schema of its namespace, or name one of the engine: %2$s.'),
  ('unpromoted', 'property "%1$s" cannot be asked for', null,
    'It is not the same for two messages, or not known when a message is routed.'),
  ('operator', 'there is no operator "%1$s"', null, 'Operators are: exists, =, <>, <, <=, >, >=, &, in, prefix.'),
  ('operand', 'operator %1$s has %2$s for its value', null, 'Give %3$s.'),
  ('predicate', 'a predicate is %1$s', null, 'Give {"property": name, "operator": operator, "value": value}.'),
  ('predicate key', 'a predicate has no "%1$s"', null, 'It has property, operator and value.'),
  ('group', 'an AND group is %1$s', null, 'Give an array of predicates; for every message ask whether MessageType or '
    || 'ReceivePortName exists.'),
  ('secret', 'secret "%1$s" is a value', null,
    'Values of secrets do not go into the database. Write where the host finds it: file:/path, env:NAME or '
      || 'command:program.'),
  ('secret setting', 'setting "%1$s" is called like a secret', null,
    'Move it to secrets, as file:/path, env:NAME or command:program.'),
  ('secret address', 'the address holds a password', null,
    'Leave it out of the address, and give it in secrets, as file:/path, env:NAME or command:program.'),
  ('stage', 'a pipeline to %1$s has no stage "%2$s"', null, 'Its stages are, in their order: %3$s.'),
  ('component', 'a component is %1$s', null, 'Give {"component": name, "settings": {...}}.'),
  ('order key', 'order_key is set, and ordered is not', null, 'Set ordered to true, or leave order_key out.'),
  ('no properties', 'property schema "%1$s" has no properties', null, 'Give {"Name": {"type": "text"}}.'),
  ('messages wait', 'send port "%1$s" cannot %2$s now', 'Messages wait for it.',
    'Let them be sent, or terminate them; stop what publishes them meanwhile.'),
  ('name taken', '"%1$s" is a send port and an orchestration', 'Both have lanes, which are called by their names.',
    'Give one of the two another name.'),
  ('activation', 'activation %1$s of an orchestration is %2$s', null,
    'Leave activations to parley flow apply, or give {"receive": path, "filter": [[...]], "convoy": [properties]}.'),
  ('convoys', 'the activations of orchestration "%1$s" belong together by different properties', null,
    'Have all receives that begin instances of it initialise the same correlation set.'),
  ('instances run', 'orchestration "%1$s" cannot %2$s now', 'It has %3$s instances.',
    'Let them end, or terminate them: parley flow instances terminate --orchestration ''%1$s''.')
) as t (situation, message, cause, remedy);

comment on view parley_flow._p_fault_text is 'The faults of definitions; %1$s and the like stand for a value.';

create function parley_flow._p_fault(path text[], situation text, variadic arguments text[] default '{}')
returns parley_flow.fault
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_text record;
  v_fault parley_flow.fault;
begin
  select t.message, t.cause, t.remedy into strict v_text
  from parley_flow._p_fault_text as t
  where t.situation = _p_fault.situation;
  v_fault.path := _p_fault.path;
  v_fault.situation := _p_fault.situation;
  v_fault.message := format(v_text.message, variadic arguments);
  v_fault.cause := format(v_text.cause, variadic arguments);
  v_fault.remedy := format(v_text.remedy, variadic arguments);
  return v_fault;
end
$$;

comment on function parley_flow._p_fault(text[], text, text[]) is
'Makes a fault.
Arguments: path; situation, which names a row of _p_fault_text; arguments, the values of its texts.';

create function parley_flow._p_pointer(path text[]) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(string_agg('/' || replace(replace(u.key, '~', '~0'), '/', '~1'), '' order by u.n), '')
  from unnest(path) with ordinality as u (key, n)
$$;

comment on function parley_flow._p_pointer(text[]) is 'Gives a path as a JSON Pointer (RFC 6901).';

create function parley_flow._p_kind_of_value(value jsonb) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when value is null or jsonb_typeof(value) = 'null' then 'null'
    when jsonb_typeof(value) in ('object', 'array') then 'an ' || jsonb_typeof(value)
    when length(value::text) > 60 then left(value::text, 60) || '...'
    else value::text
  end
$$;

comment on function parley_flow._p_kind_of_value(jsonb) is 'Gives a value for the text of a fault, shortened.';
