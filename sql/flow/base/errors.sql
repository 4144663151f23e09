-- How errors leave the integration engine.
--
-- A row is one situation: parley_flow._p_raise(situation, arguments...) makes the error of it. The SQLSTATE is class PF
-- and the number in three digits. %1$s, %1$I and %1$L stand for the first argument, as format() has it. The number is
-- the kind of error, on which programs decide: several situations can share it. Those of number 3 are faults of
-- definitions: flow/definitions/faults.sql has them.

create view parley_flow._p_error as
select e.number, e.situation, e.message, e.cause, e.remedy
from (values
  (1, 'right', 'permission denied: %1$s in the integration engine', 'Role %2$I does not hold the right %1$s%3$s.',
    'An administrator of the engine can grant it: select parley_flow.grant_right(%1$L, %2$L);'),
  (1, 'host role', 'permission denied: to serve host "%1$s"',
    'There is no such host, or role %2$I is no member of its role.',
    'Name a host of parley_flow.hosts; a superuser, or who administers its role, can grant it: '
      || 'GRANT <role of the host> TO %2$I.'),
  (1, 'grant option', 'permission denied: to grant %1$s', 'Role %2$I does not hold it with the option to grant it.',
    'Ask an administrator of the engine: the owner of the schema parley_flow or of the database, or who holds '
      || 'ADMINISTER.'),
  (1, 'grant to itself', 'permission denied: to grant %1$s to %2$s',
    'The option to grant it is that of this role itself.',
    'Have it granted by an administrator of the engine, or by another role that holds the option.'),
  (1, 'grant of others', 'permission denied: to revoke %1$s from %2$s', 'It was granted by %3$s.',
    'Have it revoked by who granted it, or by an administrator of the engine.'),
  (2, 'role', 'role "%1$s" does not exist', null, 'Name a role of this server, exactly as pg_roles has it.'),
  (2, 'unknown right', 'there is no right "%1$s"', null,
    'Name PUBLISH, ANSWER, VIEW, OPERATE, READ_CONTENT or ADMINISTER.'),
  (2, 'scope', 'the right %1$s cannot be granted for %2$s', '%3$s',
    'PUBLISH and ANSWER are granted for all, an application or a receive port; VIEW, OPERATE and READ_CONTENT for all '
      || 'or an application; ADMINISTER for all.'),
  (3, 'definitions', 'the definitions have %1$s', '%2$s',
    'Mend them and apply again; nothing was changed. select * from parley_flow.check_definitions(...) gives the faults '
      || 'as rows.'),
  (4, 'absent', 'there is no %1$s "%2$s"', 'Names are compared exactly.',
    'See parley_flow.definitions, or define it by parley_flow.apply.'),
  (4, 'kind of state', 'a %1$s cannot be %2$s', null,
    'Start, stop, enlist and unenlist a send port, an orchestration or a send port group; enable and disable a receive '
      || 'location.'),
  (5, 'set up', 'the integration engine is not configured in this database', null,
    'Say what there is: parley flow apply DIR, or select parley_flow.apply(...).'),
  (6, 'location', 'there is no receive location "%1$s" of host "%2$s"', null,
    'Read the configuration again: it was dropped, or given to another host.'),
  (6, 'port of host', 'there is no send port "%1$s" of host "%2$s"', null,
    'Read the configuration again: it was dropped, or given to another host.'),
  (6, 'message', 'message %1$s is not there', 'It was finished and its retention is over, or it never was.',
    'See what became of it: select * from parley_flow.track(%1$s).'),
  (6, 'suspension', 'suspended message %1$s is not there', 'It was resumed, terminated or edited, or it never was.',
    'See parley_flow.suspended.'),
  (6, 'content', 'content %1$s is not a body that this host has begun',
    'It was used, its hour is over, or another host has begun it.', 'Begin again: _p_begin_body.'),
  (6, 'part', 'message %1$s has no part %2$s', null, 'See the column parts of parley_flow.messages.'),
  (6, 'request', 'no request has this token', 'It was answered a while ago, or it never was.',
    'Give the property CorrelationToken of a request, soon after it came.'),
  (7, 'lease', 'item %1$s is not in the hands of host "%2$s" under lease %3$s',
    'Its term ran out, or its outcome was recorded before.', 'Roll back: somebody else has the message.'),
  (10, 'lengths', 'arrays differ in length', '%1$s has %2$s elements, %3$s has %4$s.',
    'Give one element for each message.'),
  (10, 'missing', '%1$s is null', null, 'Give a value.'),
  (10, 'no body', 'message %1$s has no body', 'Neither bodies nor contents has it.', 'Give one of the two.'),
  (10, 'input', 'message %1$s is of input %2$s', 'There are %3$s.', 'Give the number of one of the elements of keys.'),
  (10, 'properties', 'properties are not an object of scalars', '%1$s',
    'Give {"namespace#Name": "value"}; texts, numbers, booleans, and null for what is not there.'),
  (10, 'reserved', 'property "%1$s" is set by the engine', null,
    'Leave it out: it follows from the port, the location and the type.'),
  (10, 'property name', '"%1$s" is no name of a property', '%2$s', 'Write it as namespace#Name.'),
  (10, 'message type', 'the message type is malformed', '%1$s',
    'Give a text of 1 to 1000 bytes, such as namespace#Root.'),
  (10, 'key', 'the key is malformed', '%1$s', 'Give a text of 1 to 1000 bytes, or none.'),
  (10, 'key of many', 'an idempotency key is given with %1$s messages', null, 'Publish each by itself, under its key.'),
  (10, 'choice', '%1$s is "%2$s"', null, 'It is one of %3$s.'),
  (10, 'filter', '%1$s is no filter', null,
    'Give an object of conditions, such as {"send_port": "ERP", "older": "1 hour"}; {} is every suspended message.'),
  (10, 'condition', 'a filter has no condition "%1$s"', 'Conditions are: %2$s; none is null.',
    'Leave it out, or write it as listed.'),
  (10, 'filter value', 'condition "%1$s" of the filter cannot be read', '%2$s',
    'Numbers and times are written as in SQL; older is an interval such as 1 hour.'),
  (10, 'top', 'top is %1$s', null, 'Give a positive number: so many messages are touched in one call.'),
  (10, 'retention', 'the retention of %1$s is %2$s', 'It is at least %3$s, and at most 100 years.',
    'Give a time between the two, or null for the default.'),
  (10, 'rate', 'the rate is %1$s', null, 'Give a positive number of messages a second, or null for no limit.'),
  (10, 'code', 'there is no failure code "%1$s"', null,
    'See parley_flow.failure_codes; a code of one''s own begins with x-.'),
  (10, 'quota', 'the quota of %1$s cannot be set so', '%2$s', 'Give limits of 0 or more; null is no limit.'),
  (11, 'other content', 'idempotency key "%1$s" was used for another message',
    'Message %2$s was published under it, with another body.', 'Use a new key for a new message.'),
  (13, 'messages', 'role %1$I has published %2$s messages in the last minute', 'Its quota is %3$s.',
    'Wait a minute, or have an administrator raise it: select parley_flow.set_quota(...).'),
  (13, 'bytes', 'role %1$I has published %2$s bytes in the last minute', 'Its quota is %3$s.',
    'Wait a minute, or have an administrator raise it: select parley_flow.set_quota(...).'),
  (15, 'disabled', 'receive location "%1$s" is disabled', 'Nothing is taken from it.',
    'Give back what was taken from the source; enable it by parley_flow.enable(%1$L).'),
  (15, 'not resumable', 'suspended message %1$s cannot be resumed', '%2$s',
    'Edit and resubmit it, or terminate it: parley_flow.resubmit, parley_flow.terminate_suspended.'),
  (6, 'instance', 'instance %1$s is not there', 'It is over, or it never was.',
    'See what became of it: select * from parley_flow.track_instance(%1$s).'),
  (6, 'wait', 'wait "%1$s" is none of orchestration "%2$s" in version %3$s',
    'Its definition has no such correlation set, or does not receive messages of that type.',
    'Serve the host with the version of Parley that this database has; if it has it, see who else uses the login.'),
  (6, 'activity', 'there is no such activity', 'Its outcome was told before, or its instance wants it no more.',
    'Roll back what was done for it, or leave it: nothing waits for the outcome.'),
  (10, 'parameters', 'parameters are %1$s', null, 'Give an object, such as {"order": 7}.'),
  (15, 'migration', 'an instance of orchestration "%1$s" is not as it was read',
    'It has ended, or was migrated before.', 'Read the instances again: parley_flow.instances_to_migrate.'),
  (15, 'not enlisted', 'orchestration "%1$s" is not enlisted', 'Nothing is begun of one that is Bound.',
    'Enlist or start it: select parley_flow.start(%1$L, ''orchestration'');'),
  (16, 'isolation', 'this needs READ COMMITTED',
    'The transaction is %1$s and does not see what others have done since it began.',
    'Begin with BEGIN ISOLATION LEVEL READ COMMITTED.'),
  (17, 'node name', 'another process serves host "%2$s" as node "%1$s"',
    'It began at %3$s, and reported %4$s seconds ago.',
    'Give each node a name of its own: parley flow serve --node NAME. A process that was killed has the name until it '
      || 'has not reported for fifteen seconds.'),
  (18, 'attempt', 'attempt %1$s of the activity was given up',
    'It failed, or its time was over: attempt %2$s is under way.',
    'Roll back what was done for it, and take the next message. Call parley_flow.renew_activity during long work.')
) as e (number, situation, message, cause, remedy);

comment on view parley_flow._p_error is 'The errors of the engine; %1$s and the like stand for a value.';

create view parley_flow.errors as
select e.number, 'PF' || lpad(e.number::text, 3, '0') as sqlstate, e.situation, e.message, e.cause, e.remedy
from parley_flow._p_error as e;

comment on view parley_flow.errors is
'Each error of the integration engine, a row for each situation: number and SQLSTATE, which programs decide on, the
fact, the cause (DETAIL) and the remedy (HINT).';

create function parley_flow._p_raise(situation text, variadic arguments text[] default '{}') returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_error record;
begin
  select e.sqlstate, format(e.message, variadic arguments) as message,
    nullif(format(e.cause, variadic arguments), '') as cause, format(e.remedy, variadic arguments) as remedy
  into strict v_error
  from parley_flow.errors as e
  where e.situation = _p_raise.situation;
  -- An empty detail would be sent, and shown as a line with nothing in it; null is refused.
  if v_error.cause is null then
    raise exception using errcode = v_error.sqlstate, message = v_error.message, hint = v_error.remedy;
  end if;
  raise exception using
    errcode = v_error.sqlstate, message = v_error.message, detail = v_error.cause, hint = v_error.remedy;
end
$$;

comment on function parley_flow._p_raise(text, text[]) is
'Raises one error of the engine; never returns.
Arguments: situation, a constant that names a row of parley_flow.errors; arguments, the values of its texts.
Errors: always.';

create function parley_flow._p_require_read_committed() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    found := parley_flow._p_raise('isolation', upper(current_setting('transaction_isolation') collate "C"));
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_read_committed() is
'Refuses a transaction with an old snapshot.
Errors: PF016.';

create function parley_flow._p_require_top(top integer) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if (top > 0) is not true then
    found := parley_flow._p_raise('top', coalesce(top::text, 'null'));
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_top(integer) is
'Refuses a number of messages that is not positive.
Errors: PF010.';
