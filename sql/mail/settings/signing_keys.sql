-- The check of the keys by which mail is signed (RFC 6376, RFC 8301).

create function parley_mail._p_check_signing_key(name text, settings jsonb, private_key text) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_parts text[] := regexp_match(
    private_key, E'^\\s*-----BEGIN ((?:RSA )?PRIVATE KEY)-----[ \t\r]*\n([A-Za-z0-9+/=\\s]+)-----END \\1-----\\s*$'
  );
  v_key bytea;
  v_length integer;
  v_kind text;
  v_at integer;
begin
  begin
    v_key := decode(regexp_replace(v_parts[2], E'\\s', '', 'g'), 'base64');
  exception
    when invalid_parameter_value then
      v_key := null;
  end;
  -- The outermost SEQUENCE of DER says how long the key is: what was cut off or put together wrongly does not fit.
  if octet_length(v_key) > 40 and get_byte(v_key, 0) = 48 then
    v_length := case
      when get_byte(v_key, 1) < 128 then 2 + get_byte(v_key, 1)
      when get_byte(v_key, 1) = 129 then 3 + get_byte(v_key, 2)
      when get_byte(v_key, 1) = 130 then 4 + get_byte(v_key, 2) * 256 + get_byte(v_key, 3)
    end;
  end if;
  if v_length = octet_length(v_key) then
    v_kind := case
      when v_parts[1] = 'RSA PRIVATE KEY' or position(E'\\x2a864886f70d010101'::bytea in v_key) > 0 then 'RSA-SHA256'
      when position(E'\\x06032b6570'::bytea in v_key) > 0 then 'ED25519-SHA256'
    end;
  end if;
  if v_kind is null then
    found := parley_mail._p_contradicts('signing key', name, 'itself',
      'private_key is no key of RSA or Ed25519 in PEM form.',
      'Give the whole text from -----BEGIN PRIVATE KEY----- on (PKCS 8), or make one: parley mail key create DOMAIN.');
  elsif v_kind <> settings ->> 'algorithm' then
    found := parley_mail._p_contradicts('signing key', name, 'its setting algorithm',
      format('private_key is one for %s.', v_kind), format('Set algorithm to %s, or give another key.', v_kind));
  end if;
  -- The modulus stands behind the version, 0; it begins with a zero byte where it has 1,024 bits.
  v_at := position(E'\\x02010002'::bytea in v_key);
  if v_kind = 'RSA-SHA256' and v_at > 0 and (
    get_byte(v_key, v_at + 3) < 129 or get_byte(v_key, v_at + 3) = 129 and get_byte(v_key, v_at + 4) < 129
  ) then
    found := parley_mail._p_contradicts('signing key', name, 'itself',
      'private_key has fewer than 1,024 bits, and receivers ignore what it signs (RFC 8301).',
      'Make another: parley mail key create DOMAIN.');
  elsif v_kind = 'RSA-SHA256' and v_at > 0 and (
    get_byte(v_key, v_at + 3) > 130
    or get_byte(v_key, v_at + 3) = 130 and get_byte(v_key, v_at + 4) * 256 + get_byte(v_key, v_at + 5) > 513
  ) then
    found := parley_mail._p_contradicts('signing key', name, 'itself',
      'private_key has more than 4,096 bits, and receivers need not verify what it signs (RFC 8301).',
      'Make another: parley mail key create DOMAIN.');
  elsif parley_mail._p_is_domain(settings ->> 'selector') is not true then
    found := parley_mail._p_contradicts('signing key', name, 'its setting selector',
      format('"%s" cannot stand in a name of DNS.', left(settings ->> 'selector', 100)),
      'Give labels of letters, digits and hyphens, such as s1.');
  end if;
  return true;
end
$$;

comment on function parley_mail._p_check_signing_key(text, jsonb, text) is
'Refuses a signing key that no daemon could read or sign with: no PEM, cut off, of another algorithm, too short, too
long.
Errors: PM003.';
