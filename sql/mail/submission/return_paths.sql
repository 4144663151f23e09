-- Return paths that name a recipient (VERP, variable envelope return path; spec mail 4.3, 11.4).
--
-- local-part+user=domain@domain-of-sender: a bounce comes back to the address that says whom it is about: the one to
-- which the sender wrote, which he knows and has in his lists, and not that to which an alias, a group or forwarding of
-- ours led. So what comes back names no member and no address behind ours. It is made when a message is sent, and again
-- when a report is made: nothing of it is stored. An address that cannot be written so keeps the sender itself: a
-- recipient gets his mail whatever his address is.

create function parley_mail._p_return_path(sender text, recipient text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_at constant integer := length(sender) - strpos(reverse(sender), '@') + 1;
  v_at_recipient constant integer := length(recipient) - strpos(reverse(recipient), '@') + 1;
  v_local text;
begin
  if sender = '' or left(sender, 1) = '"' or left(recipient, 1) = '"' or substr(recipient, v_at_recipient + 1, 1) = '['
    or strpos(recipient, '@') = 0 then
    return sender;
  end if;
  v_local := left(sender, v_at - 1) || '+' || left(recipient, v_at_recipient - 1) || '='
    || substr(recipient, v_at_recipient + 1);
  if octet_length(v_local) > 64 or octet_length(v_local) + octet_length(substr(sender, v_at)) > 254 then
    return sender;
  end if;
  return v_local || substr(sender, v_at);
end
$$;

comment on function parley_mail._p_return_path(text, text) is
'Gives the return path of a recipient. It is the sender where that is null, where a local part is quoted or the domain
of the recipient a literal, and where it would be longer than hosts take: 64 octets before the @, 254 in all.
Source: spec mail 11.4; RFC 5321 section 4.5.3.1.';

create function parley_mail._p_return_path(
  sender text, recipient text, original_recipient text, has_utf8_addresses boolean
) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_original constant text := substring(original_recipient from '(?i)^(?:rfc822|utf-8);(.*)$');
begin
  -- An original recipient may come from elsewhere, and be of any form. A message with addresses in ASCII alone goes to
  -- hosts that take no others.
  return parley_mail._p_return_path(
    sender,
    case
      when (has_utf8_addresses or v_original ~ '^[ -~]+$') and parley_mail._p_is_address(v_original) then v_original
      else recipient
    end
  );
end
$$;

comment on function parley_mail._p_return_path(text, text, text, boolean) is
'Gives the return path of a recipient of a message: it names the original recipient where there is one. That is the
address as it was submitted, of an alias, a group or a mailbox that forwards, unless the submitter named another by
ORCPT. One beyond ASCII is named where the message needs a host that takes such addresses anyhow.
Arguments: sender; recipient, the address to which the message goes; original_recipient, with its type, such as
rfc822;ann@example.com; has_utf8_addresses, whether the message goes only to hosts with SMTPUTF8.
Source: spec mail 6.3, 11.4; RFC 3461 section 4.2.';

create function parley_mail._p_require_return_paths(sender text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if sender = '' then
    found := parley_mail._p_raise('verp', '<>', 'It is the null sender, to which nothing comes back.');
  elsif left(sender, 1) = '"' then
    found := parley_mail._p_raise('verp', sender, 'Its local part is quoted.');
  elsif strpos(sender, '+') > 0 then
    found := parley_mail._p_raise('verp', sender, 'Its local part has a +, behind which the recipient stands.');
  elsif octet_length(sender) - octet_length(split_part(sender, '@', -1)) - 1 > 58 then
    found := parley_mail._p_raise('verp', sender, 'Its local part has more than 58 octets.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_return_paths(text) is
'Refuses a sender of which no return path can be made that says who the recipient is.
Errors: PM010.';
