-- Changing the master key: every secret in the database is sealed anew, by a program that has
-- the old key and the new one.
--
-- Here are only the bytes. A secret that was changed meanwhile is left alone, and is identified by the
-- key that its first bytes name.
-- Locks: the rows of the secrets, all of them, in one transaction.

create function parley._p_sealed_secrets() returns table (kind text, id bytea, sealed bytea)
language sql
set search_path = pg_catalog, pg_temp
as $$
  select 'certificate', c.fingerprint, c.private_key
  from parley._p_certificate as c
  where c.private_key is not null
  union all
  select 'session key', k.key_id, k.sealed_key
  from parley._p_session_key as k
  union all
  select 'webhook', int4send(a.queue_id), a.sealed_secret
  from parley._p_external_activation as a
  where a.sealed_secret is not null
$$;

comment on function parley._p_sealed_secrets() is
'Gives every secret that is sealed under a master key: kind, certificate, session key or webhook; id, of a
webhook that of its queue; sealed.';

create function parley._p_replace_sealed_secret(kind text, id bytea, sealed bytea, sealed_anew bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind = 'certificate' then
    update parley._p_certificate as c
    set private_key = sealed_anew
    where c.fingerprint = id and c.private_key = sealed;
  elsif kind = 'webhook' then
    -- As _p_seal_webhook_secret: nobody puts back a secret that he read before.
    perform from parley._p_queue as q where int4send(q.queue_id) = id for no key update;
    update parley._p_external_activation as a
    set sealed_secret = sealed_anew
    where int4send(a.queue_id) = id and a.sealed_secret = sealed;
  else
    update parley._p_session_key as k
    set sealed_key = sealed_anew
    where k.key_id = id and k.sealed_key = sealed;
  end if;
  return found;
end
$$;

comment on function parley._p_replace_sealed_secret(text, bytea, bytea, bytea) is
'Replaces a secret by itself, sealed under another master key; false when it has been changed meanwhile.
Arguments: kind and id, as _p_sealed_secrets gives them; sealed, as it was; sealed_anew.';
