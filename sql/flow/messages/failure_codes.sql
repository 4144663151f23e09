-- Why messages fail: codes as data, with cause and remedy.
--
-- A host gives one of these, or one of its own that begins with x-. original: the number by which BizTalk knows the
-- failure, which filters of applications that were carried over ask for: ErrorReport.FailureCode has it then.

create view parley_flow.failure_codes as
select c.code, c.category, c.original, c.cause, c.remedy
from (values
  ('routing.no-subscription', 'routing', '0xc0c01680', 'No send port that is enlisted asks for the message.',
    'See parley_flow.routing_failures: it says which subscription was nearest, and what it missed.'),
  ('routing.late-answer', 'routing', null,
    'Nobody waits for the answer any more: its client has gone, or another answer was first.',
    'Raise response_timeout of the receive port, or have it drop late answers; terminate the answer.'),
  ('receive.pipeline', 'receive', '0xc0c01657', 'A component of the receive pipeline refused the message.',
    'Read the error: it names component and place. Mend the message by parley_flow.resubmit, or the definition.'),
  ('receive.disassemble', 'receive', '0xc0c01657',
    'The message could not be taken apart: it is not what its schema says.',
    'Read the error: it names record, field, line, column and byte. Mend and resubmit it.'),
  ('receive.record', 'receive', '0xc0c01657', 'One record of an interchange is wrong; the others have gone on.',
    'Mend the record and resubmit it.'),
  ('receive.validate', 'receive', '0xc0c01657', 'The message is not valid by its schema.', 'Mend and resubmit it.'),
  ('receive.charset', 'receive', '0xc0c01657', 'The bytes are not of the charset that was declared.',
    'Set the charset of the location, or have the sender declare it.'),
  ('receive.empty', 'receive', '0xc0c01657', 'The source was empty.',
    'Have the location pass or remove what is empty.'),
  ('receive.incomplete', 'receive', null, 'The source ended before, or after, the size that it had when it was found.',
    'Have the sender write it whole, under another name first, and send it again.'),
  ('receive.too-large', 'receive', '0xc0c01657', 'The message is larger than the location allows.',
    'Raise the limit of the location, or have the sender split it.'),
  ('receive.unauthenticated', 'receive', null, 'Its sender could not be identified.',
    'Give the sender a key that the location accepts.'),
  ('receive.map', 'receive', null, 'A map of the receive port refused the message.',
    'Read the error: it names the map, its line and the node of the message. Mend either, and resume or resubmit it.'),
  ('receive.location-gone', 'receive', null, 'The location was dropped before the resubmitted message was there.',
    'Apply a receive location of this name and resume the message, or terminate it.'),
  ('receive.killed', 'receive', null, 'Hosts have died of the message again and again.',
    'Save it, find out why, and resubmit it.'),
  ('send.pipeline', 'send', null, 'A component of the send pipeline refused the message.',
    'Read the error: it names component and place.'),
  ('send.map', 'send', null, 'A map of the send port refused the message.',
    'Read the error: it names the map, its line and the node of the message. Mend either, and resume it.'),
  ('send.transport', 'send', '0xc0c0167a', 'The adapter could not transmit the message, and its retries are over.',
    'Have the destination work again, and resume what is suspended.'),
  ('send.refused', 'send', '0xc0c0167a', 'The destination refused the message for good.',
    'Read its answer; mend and resubmit the message.'),
  ('send.unreachable', 'send', '0xc0c0167a', 'The destination cannot be reached.',
    'Look at the address and the network; messages go on by themselves.'),
  ('send.timeout', 'send', '0xc0c0167a', 'The destination has not answered in time.',
    'It may have got the message: ask it before the message is resumed.'),
  ('send.port-gone', 'send', null, 'The send port was dropped while the message was on its way to it.',
    'Apply a send port of this name and resume the message, or terminate it.'),
  ('send.killed', 'send', null, 'Hosts have died of the message again and again.',
    'Save it, find out why, and resume or terminate it.'),
  ('process.unread', 'process', null,
    'The instance to which the message came has ended, or passed the receive for it.',
    'Resume it: it begins a new instance where it may. Or terminate it.'),
  ('process.fault', 'process', null, 'An orchestration has met an error that nothing in it caught.',
    'Read the error: it names the shape. Mend what it names, and resume the instance.'),
  ('process.step', 'process', null, 'A step of an instance could not be run, and its retries are over.',
    'Read the error. Mend its cause, and resume the instance.'),
  ('process.killed', 'process', null, 'Hosts have died of a step of the instance again and again.',
    'See what the step does, such as a document that is too large; resume or terminate the instance.'),
  ('operator', 'operator', null, 'An operator has suspended the message.', 'Resume or terminate it.')
) as c (code, category, original, cause, remedy);

comment on view parley_flow.failure_codes is
'Why messages fail: code, category (routing, receive, send, process, operator), the number under which BizTalk knows it,
cause and remedy.';

create function parley_flow._p_require_code(code text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if code is null or octet_length(code) > 100 or (
    not starts_with(code, 'x-') and not exists (select from parley_flow.failure_codes as c where c.code = $1)
  ) then
    found := parley_flow._p_raise('code', coalesce(left(code, 100), 'null'));
  end if;
  return true;
end
$$;

comment on function parley_flow._p_require_code(text) is
'Refuses what is no failure code.
Errors: PF010.';

create function parley_flow._p_reported_code(code text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((select c.original from parley_flow.failure_codes as c where c.code = $1), $1)
$$;

comment on function parley_flow._p_reported_code(text) is
'Gives what ErrorReport.FailureCode says: the number of the original where there is one.';
