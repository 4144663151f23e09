-- How errors leave mail transport.
--
-- A row is one situation: parley_mail._p_raise(situation, arguments...) makes the error of it. The SQLSTATE is class PM
-- and the number in three digits. %1$s, %1$I and %1$L stand for the first argument, as format() has it. The number is
-- the kind of error, on which programs decide: several situations can share it.

create view parley_mail.errors as
select e.number, 'PM' || lpad(e.number::text, 3, '0') as sqlstate, e.situation, e.message, e.cause, e.remedy
from (values
  (1, 'right', 'permission denied: %1$s mail', 'Role %2$I does not hold the right %1$s.',
    'An administrator of mail can grant it: select parley_mail.grant_right(%1$L, %2$L);'),
  (1, 'sender', 'permission denied: to send as %1$s', 'Role %2$I may send as %3$s.',
    'Send from one of these, or have an administrator of mail allow it: '
      || 'select parley_mail.set_quota(%2$L, allowed_senders => array[''%1$s'']);'),
  (1, 'grant option', 'permission denied: to grant %1$s', 'Role %2$I does not hold it with the option to grant it.',
    'Ask an administrator of mail: the owner of the schema parley_mail or of the database, or who holds ADMINISTER.'),
  (1, 'grant to itself', 'permission denied: to grant %1$s to %2$s',
    'The option to grant it is that of this role itself.',
    'Have it granted by an administrator of mail, or by another role that holds the option.'),
  (1, 'grant of others', 'permission denied: to revoke %1$s from %2$s', 'It was granted by %3$s.',
    'Have it revoked by who granted it, or by an administrator of mail.'),
  (1, 'binding', 'permission denied: to deliver for service binding "%1$s"',
    'It delivers as role %2$s, which made it, and may not %3$s.',
    'Grant that role what it lacks, or have a role that may do it change the binding.'),
  (3, 'contract', 'service binding "%1$s" cannot be delivered',
    'Service "%2$s" does not accept contract "%3$s": its conversation would end with an error, and lose the message.',
    'Have it accept the contract: select parley.alter_service(%2$L, add_contracts => array[%3$L]);'),
  (2, 'role', 'role "%1$s" does not exist', null, 'Name a role of this server, exactly as pg_roles has it.'),
  (2, 'unknown right', 'there is no right "%1$s"', null,
    'Name SEND, VIEW, OPERATE, ADMINISTER, READ_CONTENT or SERVE.'),
  (3, 'kind', 'there is no kind of object "%1$s"', 'Kinds are: %2$s.', 'Name one of them.'),
  (3, 'setting', 'a %1$s has no setting "%2$s"', 'Its settings are: %3$s.',
    'See parley_mail.setting_definitions.'),
  (3, 'type', '%1$s "%2$s": setting %3$s is %4$s', 'It has to be %5$s.', 'Give such a value, or null for the default.'),
  (3, 'missing', '%1$s "%2$s" has no %3$s', 'The setting is required.', 'Give it: %4$s.'),
  (3, 'name', 'a %1$s cannot be called "%2$s"', 'Its name is %3$s.', 'Choose another name.'),
  (3, 'configuration', 'the configuration is not an object of kinds', '%1$s',
    'Give {"kind": {"name": {"setting": value}}}, as parley_mail.export_configuration() writes it.'),
  (3, 'password again', '%1$s "%2$s" would send the password that is kept for other hosts',
    'This changes where it is sent, or how it is protected on the way: %3$s.',
    'Give the password again in the same change, or null to forget it.'),
  (3, 'conflict', '%1$s "%2$s" contradicts %3$s', '%4$s', '%5$s'),
  (4, 'part', 'the message has no part %1$s', 'It has %2$s.', 'Give the number of one of them.'),
  (4, 'exists', '%1$s "%2$s" exists already', null, 'Use parley_mail.alter_object, or choose another name.'),
  (4, 'absent', '%1$s "%2$s" does not exist', 'Names are compared without regard to case.',
    'See parley_mail.objects, or create it with parley_mail.create_object.'),
  (4, 'in use', '%1$s "%2$s" is in use', 'It is named by %3$s.', 'Change or drop that first.'),
  (5, 'set up', 'mail is not configured in this database', null,
    'Say what mail is ours and where it goes: parley mail apply FILE, or select parley_mail.apply(...).'),
  (10, 'address', '"%1$s" is no mail address', '%2$s', 'Write it as local-part@domain, or Name <local-part@domain>.'),
  (10, 'no recipients', 'a message needs a recipient', null, 'Give at least one address in recipients.'),
  (10, 'too many recipients', 'a message cannot have %1$s recipients', 'At most %2$s are allowed.',
    'Send it in parts, or to a distribution group; the setting is max_recipients of the organization.'),
  (10, 'header', 'header "%1$s" is not allowed', '%2$s', 'Leave it out, or give it a name and a value of one line.'),
  (10, 'control', '%1$s holds a control character', 'A line break there would be a header of somebody else''s making.',
    'Remove line breaks and other control characters from it.'),
  (10, 'body', 'a message has one body', '%1$s', 'Give raw alone, or subject, text, html and attachments.'),
  (10, 'raw', 'the raw message is malformed', '%1$s',
    'Give a whole message: header lines, an empty line, the body; lines have at most 998 bytes and end with CR LF.'),
  (10, 'attached', 'attachment %1$s is no message', '%2$s',
    'Give a whole message with lines of at most 998 bytes, or attach its bytes under another type.'),
  (10, 'choice', '%1$s is "%2$s"', null, 'It is one of %3$s.'),
  (10, 'variable', 'a template names {{%1$s}}, and there is no such variable', 'Variables are: %2$s.',
    'Give it in variables, for each recipient.'),
  (10, 'variables', 'variables do not fit the recipients', '%1$s',
    'Give one object for all recipients, or an array with an object for each, in their order.'),
  (10, 'times', 'the message would expire before it may be sent', null,
    'Let expires be later than not_before and now.'),
  (10, 'not stored', 'attachment %1$s names bytes that are not stored',
    'This role has stored none whose SHA-256 is %2$s, or their time is over.',
    'Store them by parley_mail.put_attachment(content), and submit again.'),
  (10, 'verp', 'sender "%1$s" cannot have a return path for each recipient', '%2$s',
    'Send from an address whose local part is short, needs no quotes and has no +, or leave verp off.'),
  (10, 'far time', 'a time is too far away', 'Years are from 1 to 9998.', 'Give a time that is nearer, or null.'),
  (10, 'attachment', 'attachment %1$s is malformed', '%2$s',
    'Make it with parley_mail.attachment(filename, content), or parley_mail.stored_attachment(filename, sha256).'),
  (10, 'nothing to store', 'an attachment without content cannot be stored', 'content is null.',
    'Give its bytes; those of an empty file are an empty bytea.'),
  (10, 'hash', 'attachment %1$s names a stored one by what is no SHA-256', '%2$s',
    'Give the bytea that parley_mail.put_attachment gave; from hexadecimal text it is decode(text, ''hex'').'),
  (10, 'quota', 'the quota of %1$s cannot be set so', '%2$s',
    'Give limits of 0 or more. Null leaves a limit as it is, without => array[''name''] lifts it.'),
  (10, 'service', 'service "%1$s" cannot take status events', '%2$s',
    'Name a service of this database that accepts the contract parley_mail/Status.'),
  (10, 'key', 'the idempotency key is malformed', 'It has 1 to 200 characters.', 'Give another key, or none.'),
  (10, 'filter', '%1$s is no filter', null,
    'Give an object of conditions, such as {"queue": "DNS/*", "older": "1 hour"}; {} is every message that waits.'),
  (10, 'condition', 'a filter has no condition "%1$s"', 'Conditions are: %2$s; none is null.',
    'See docs/mail/operations.md.'),
  (10, 'filter value', 'a condition of the filter cannot be read', '%1$s',
    'Numbers and times are written as in SQL, sizes also as 10 kB or 5 MB, older is an interval such as 1 hour.'),
  (10, 'bookmark', '"%1$s" is no bookmark', null, 'Give the column bookmark of the last message that was seen.'),
  (10, 'sort', '"%1$s" is nothing to sort by', 'Columns are: %2$s.',
    'Give one of them, and :desc behind it for what is last first.'),
  (10, 'sorted page', 'a list that is sorted has no bookmarks', 'It was asked to begin after "%1$s".',
    'Leave sort or after out, or give a larger top.'),
  (10, 'nothing to change', 'nothing is to be changed', null, 'Give a priority, an expiry or a time.'),
  (10, 'top', 'top is %1$s', null, 'Give a positive number: so many messages are touched in one call.'),
  (11, 'other content', 'idempotency key "%1$s" was used for another message',
    'Message %2$s was submitted under it, with other content.', 'Use a new key for a new message.'),
  (12, 'size', 'the message has %1$s bytes', 'At most %2$s are allowed.',
    'Send a link instead of the attachment, or raise the limit: %3$s.'),
  (13, 'messages', 'role %1$I has submitted %2$s messages in the last minute', 'Its quota is %3$s.',
    'Wait a minute, or have an administrator raise it: select parley_mail.set_quota(...).'),
  (13, 'stored', 'role %1$I has attachments of %2$s bytes stored', 'Its quota is %3$s.',
    'Remove some by parley_mail.remove_attachment(sha256), or have an administrator raise it: set_quota.'),
  (13, 'bytes', 'role %1$I has submitted %2$s bytes in the last minute', 'Its quota is %3$s.',
    'Wait a minute, or have an administrator raise it: select parley_mail.set_quota(...).'),
  (6, 'queue', 'there is no queue "%1$s"', 'Queues come with their first message and go when they are empty.',
    'See parley_mail.queues, or name SUBMISSION, UNREACHABLE/-/- or POISON/-/-.'),
  (6, 'raw message', 'raw message %1$s is not there',
    'It was released, its time is over, or this role may neither receive from the queue nor use the table that got it.',
    'Give the raw_reference of a payload that this role has received, before raw_retention of the binding is over.'),
  (6, 'message', 'message %1$s is not there', 'It was delivered, given up or never submitted.',
    'See what became of it: select * from parley_mail.tracking where internal_message_id = %1$L;'),
  (6, 'submission', 'messages cannot be removed from the submission queue',
    'They are not categorized yet, and not scheduled for later.',
    'Suspend what comes out of it, and remove it there.'),
  (6, 'domain', '"%1$s" is no domain', null, 'Write it as example.com.'),
  (14, 'pressure', 'mail transport takes no messages now', '%1$s',
    'Try again later; the transaction may go on without the message.'),
  (15, 'not suspended', 'message %1$s is not suspended', 'It is %2$s in queue %3$s.',
    'Hold it first: select parley_mail.suspend_messages(''{"messages": [%1$s]}''); what is under way is held when its '
      || 'attempt has failed, and what is in SUBMISSION/-/- can be held when it is categorized.'),
  (15, 'not changed', 'message %1$s: nothing to %2$s', 'It is %3$s in queue %4$s.', '%5$s'),
  (16, 'too late', 'message %1$s can no longer be withdrawn', 'It is being categorized, or was.',
    'See what became of it: select * from parley_mail.tracking where internal_message_id = %1$L;')
) as e (number, situation, message, cause, remedy);

comment on view parley_mail.errors is
'Each error of mail transport, a row for each situation: number and SQLSTATE, which programs decide on, the fact, the
cause (DETAIL) and the remedy (HINT).';

create function parley_mail._p_raise(situation text, variadic arguments text[] default '{}') returns boolean
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
  from parley_mail.errors as e
  where e.situation = _p_raise.situation;
  -- An empty detail would be sent, and shown as a line with nothing in it; null is refused.
  if v_error.cause is null then
    raise exception using errcode = v_error.sqlstate, message = v_error.message, hint = v_error.remedy;
  end if;
  raise exception using
    errcode = v_error.sqlstate, message = v_error.message, detail = v_error.cause, hint = v_error.remedy;
end
$$;

comment on function parley_mail._p_raise(text, text[]) is
'Raises one error of mail transport; never returns.
Arguments: situation, a constant that names a row of parley_mail.errors; arguments, the values of its texts.
Errors: always.';

create function parley_mail._p_require_set_up() returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (select from parley_mail._p_organization as o where o.is_set_up) then
    found := parley_mail._p_raise('set up');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_set_up() is
'Refuses while mail has no configuration.
Errors: PM005.';

create function parley_mail._p_require_top(top integer) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if top is null or top < 1 then
    found := parley_mail._p_raise('top', coalesce(top::text, 'null'));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_top(integer) is
'Refuses a number of messages that is null or not positive.
Errors: PM010.';
