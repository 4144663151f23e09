-- As whom a role may send: one rule for SQL, HTTP and SMTP (spec mail 3.3, 4.3).
--
-- It holds for the sender of the envelope, and for everybody whom the header names as who wrote or sent the message:
-- From, Sender, Resent-From and Resent-Sender. A role without a list of allowed senders sends from the accepted domains
-- and the default domain; a list with "*" allows any sender. An administrator of mail may change the list, and is not
-- held to it.
--
-- The daemon keeps the same rule for users in internal/mail/receive.
-- Cost: nothing for a sender of the default domain; else one probe of the accepted domains.

create function parley_mail._p_may_send_as(submitter parley_mail._p_submitter, address text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_address text;
  v_patterns text[];
begin
  -- Most senders are written as their domain is stored: they need no pattern.
  if submitter.allowed_senders is null and (
    split_part(address, '@', -1) = submitter.default_domain
    or exists (select from parley_mail._p_accepted_domain as a where a.domain = split_part(address, '@', -1))
  ) then
    return true;
  end if;
  v_address := parley_mail._p_folded(address);
  v_patterns := parley_mail._p_domain_patterns(parley_mail._p_domain_of(v_address));
  if submitter.allowed_senders is not null then
    return v_address = any (submitter.allowed_senders) or '*' = any (submitter.allowed_senders)
      or v_patterns && submitter.allowed_senders;
  end if;
  return parley_mail._p_domain_of(v_address) = parley_mail._p_folded(submitter.default_domain)
    or exists (select from parley_mail._p_accepted_domain as a where a.domain = any (v_patterns));
end
$$;

comment on function parley_mail._p_may_send_as(parley_mail._p_submitter, text) is
'Reports whether the list of a role, or where it has none the domains that are ours, have a sender; null: it cannot be
said, which refuses.
Arguments: submitter; address, local-part@domain.
Source: spec mail 3.3.';

create function parley_mail._p_require_sender(submitter parley_mail._p_submitter, address text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_mail._p_may_send_as(submitter, address) is not true
    and parley_mail._p_holds(submitter.role, 'ADMINISTER') is not true then
    found := parley_mail._p_raise('sender', left(address, 320), pg_get_userbyid(submitter.role), coalesce(
      'these senders: ' || array_to_string(submitter.allowed_senders, ', '),
      'the accepted domains and the default domain, as it has no list of senders'
    ));
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_sender(parley_mail._p_submitter, text) is
'Refuses a sender as whom a role may not send.
Arguments: submitter; address, local-part@domain.
Errors: PM001.';

create function parley_mail._p_require_senders_of(submitter parley_mail._p_submitter, headers jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley_mail._p_require_sender(submitter, (parley_mail._p_parsed_mailbox(a.written)).address)
  from jsonb_each(headers) as h
  cross join lateral unnest(parley_mail._p_listed_addresses(parley_mail._p_joined_addresses(h.value))) as a (written)
  where lower(h.key collate "C") in ('from', 'sender');
  return true;
end
$$;

comment on function parley_mail._p_require_senders_of(parley_mail._p_submitter, jsonb) is
'Refuses headers that a role asks for which name a sender as whom it may not send. Headers of other senders are refused
when they are written.
Errors: PM001, PM010 malformed.';

create function parley_mail._p_require_senders_within(submitter parley_mail._p_submitter, content bytea)
returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_head bytea := substring(content from 1 for position(E'\\x0d0a0d0a'::bytea in content) + 1);
  v_field record;
  v_kept text;
  v_written text;
  v_has_author boolean := false;
begin
  for v_field in
    select m.parts[1] as name, replace(m.parts[2], E'\r\n', '') as value
    from regexp_matches(
      encode(v_head, 'escape'),
      E'(?:^|\n)(from|sender|resent-from|resent-sender)[ \t]*:((?:[^\r\n]|\r\n[ \t])*)', 'gi'
    ) as m (parts)
  loop
    -- A backslash quotes only as the byte that it is: never decide by the text that encode makes of it.
    begin
      v_field.value := convert_from(decode(v_field.value, 'escape'), 'UTF8');
    exception
      when character_not_in_repertoire or untranslatable_character then
        v_field.value := convert_from(decode(v_field.value, 'escape'), 'LATIN1');
    end;
    select c.kept into v_kept from parley_mail._p_without_comments(translate(v_field.value, E'\t', ' ')) as c;
    if v_kept is null then
      found := parley_mail._p_raise(
        'address', left(v_field.value, 100), format('It stands in %s, and a comment has no end.', v_field.name)
      );
    elsif regexp_replace(v_kept, E'"(?:[^"\\\\]|\\\\.)*"', '', 'g') like '%"%' then
      found := parley_mail._p_raise(
        'address', left(v_field.value, 100), format('It stands in %s, and a quote has no end.', v_field.name)
      );
    end if;
    for v_written in
      select a.written
      from unnest(parley_mail._p_listed_addresses(v_kept)) as a (written)
    loop
      -- To some readers a name in the form of an address is one: it stands in quotes, or the message is refused.
      if v_written !~ E'^("([^"\\\\]|\\\\.)*"|[^][<>()@",:;\\\\])*<[^<>]+>$' and v_written ~ '[<>]' then
        found := parley_mail._p_raise('address', left(v_written, 100), format('It stands in %s.', v_field.name));
      end if;
      found := parley_mail._p_require_sender(submitter, (parley_mail._p_parsed_mailbox(v_written)).address);
      v_has_author := v_has_author or lower(v_field.name collate "C") = 'from';
    end loop;
  end loop;
  if not v_has_author then
    found := parley_mail._p_raise('raw', 'Its field From has no address.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_require_senders_within(parley_mail._p_submitter, bytea) is
'Refuses a message that came whole and names a sender as whom a role may not send.
Arguments: submitter; content, lines end with CR LF.
Errors: PM001, PM010 an address that cannot be read, or no author.';
