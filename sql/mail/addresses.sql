-- Mail addresses: what one is, and in which form two are compared (RFC 5321, RFC 6531, spec mail 6.1).
--
-- The directory compares addresses as _p_folded gives them (mail/domains.sql), local part too. An envelope keeps the
-- local part as it was written.

create function parley_mail._p_is_domain(domain text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  return octet_length(domain) between 1 and 255
    and domain ~ E'^[^][:space:]"(),:;<>@[\\\\.\x01-\x20\x7f]+(\\.[^][:space:]"(),:;<>@[\\\\.\x01-\x20\x7f]+)*$'
    and parley_mail._p_a_labels(domain) is not null;
end
$$;

comment on function parley_mail._p_is_domain(text) is
'Reports whether a text has the form of a domain, in ASCII or in letters that can be written so.';

create function parley_mail._p_is_address(address text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Local part: words with dots between, or a quoted string; domain: the same words, or an address literal.
  return octet_length(address) between 3 and 571
    and address ~ (E'^([^][:space:]"(),:;<>@[\\\\.\x01-\x20\x7f]+(\\.[^][:space:]"(),:;<>@[\\\\.\x01-\x20\x7f]+)*'
      || E'|"([^"\\\\\x01-\x1f\x7f]|\\\\[\x20-\x7e])*")'
      || E'@([^][:space:]"(),:;<>@[\\\\.\x01-\x20\x7f]+(\\.[^][:space:]"(),:;<>@[\\\\.\x01-\x20\x7f]+)*'
      || E'|\\[[0-9A-Za-z:.]+\\])$')
    and octet_length(address) - strpos(reverse(address), '@') <= 315
    and strpos(reverse(address), '@') <= 256
    and parley_mail._p_with_a_labels(address) is not null;
end
$$;

comment on function parley_mail._p_is_address(text) is
'Reports whether a text is an address, local-part@domain, within 315 octets before the @, 255 behind it and 571 in
all.';

create function parley_mail._p_domain_of(address text) returns text
language sql immutable parallel safe
as $$
  select parley_mail._p_folded(pg_catalog.split_part(address, '@', '-1'::pg_catalog.int4))
$$;

comment on function parley_mail._p_domain_of(text) is
'Gives the domain of an address, in lower case and in ASCII; of the empty address the empty text.';

create function parley_mail._p_require_address(address text) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_mail._p_is_address(address) is not true then
    found := parley_mail._p_raise(
      'address', coalesce(left(address, 100), 'null'),
      case
        when octet_length(address) > 571 then 'It has more than 571 octets.'
        when address ~ '[[:cntrl:]]' then 'It has control characters.'
        when address !~ '@' then 'There is no @ in it.'
        else 'A part of it is empty, too long, or has characters that need quotes.'
      end
    );
  end if;
  return parley_mail._p_with_a_labels(address);
end
$$;

comment on function parley_mail._p_require_address(text) is
'Gives the address back, with its domain in ASCII, or refuses it.
Errors: PM010.';

create type parley_mail._p_mailbox_of as (display_name text, address text);

comment on type parley_mail._p_mailbox_of is
'What Name <local-part@domain> names; display_name is null where it is bare.';

create function parley_mail._p_parsed_mailbox(written text) returns parley_mail._p_mailbox_of
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_open integer;
  v_name text;
begin
  if written ~ '[[:cntrl:]]' then
    found := parley_mail._p_raise('control', 'an address');
  end if;
  written := btrim(written);
  if right(written, 1) is distinct from '>' or strpos(written, '<') = 0 then
    return (null, parley_mail._p_require_address(written))::parley_mail._p_mailbox_of;
  end if;
  v_open := length(written) - strpos(reverse(written), '<') + 1;
  v_name := btrim(left(written, v_open - 1));
  if v_name ~ '^".*"$' then
    v_name := regexp_replace(substr(v_name, 2, length(v_name) - 2), E'\\\\(.)', E'\\1', 'g');
  end if;
  return (
    nullif(v_name, ''), parley_mail._p_require_address(substr(written, v_open + 1, length(written) - v_open - 1))
  )::parley_mail._p_mailbox_of;
end
$$;

comment on function parley_mail._p_parsed_mailbox(text) is
'Takes Name <local-part@domain>, "Name" <...> or a bare address apart.
Errors: PM010 malformed, or control characters.';

create function parley_mail._p_matches_pattern(pattern text, address text) returns boolean
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_domain constant text := split_part(parley_mail._p_folded(address), '@', -1);
  v_of_pattern constant text := split_part(pattern, '@', -1);
  v_local constant text := left(parley_mail._p_folded(address), -length(v_domain) - 1);
  v_local_pattern text := '*';
begin
  if pattern like '%@%' then
    v_local_pattern := left(pattern, -length(v_of_pattern) - 1);
    v_local_pattern := replace(replace(v_local_pattern, E'\\', E'\\\\'), '%', E'\\%');
    v_local_pattern := replace(replace(v_local_pattern, '_', E'\\_'), '*', '%');
  end if;
  return (
      v_of_pattern = '*' or v_of_pattern = v_domain
      or (left(v_of_pattern, 2) = '*.' and right(v_domain, length(v_of_pattern) - 1) = substr(v_of_pattern, 2))
    )
    and (v_local_pattern = '*' or v_local like v_local_pattern);
end
$$;

comment on function parley_mail._p_matches_pattern(text, text) is
'Reports whether an address matches a pattern: local@domain, where * in the local part stands for any characters and
the domain may be *.d for all below d, or a domain alone.
Arguments: pattern, in lower case; address.';
