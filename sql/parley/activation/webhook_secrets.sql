-- Secrets of webhooks, until a daemon seals them.
--
-- SQL, in which a webhook is defined, has no master key: the secret is stored in clear. The daemon, which has the key
-- and is notified of each change of an activation, replaces it by the sealed secret. A daemon without a master key
-- leaves it alone, and parley.diagnose_configuration reports that (webhook-secret-plain). Sealing needs no term: it
-- changes only how the same secret is written down.
-- Locks: the queue's row, as the statements of activation take it, so that none of these puts back a
-- secret that it read before.

create function parley._p_plain_secrets() returns table (queue_id integer, secret text)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select a.queue_id, a.secret
  from parley._p_external_activation as a
  where a.secret is not null
$$;

comment on function parley._p_plain_secrets() is
'Gives the secrets of webhooks that are not sealed, of those that are switched off too.';

create function parley._p_seal_webhook_secret(queue_id integer, secret text, sealed_secret bytea) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- A session that holds the queue is not waited for: the daemon polls again, and has other things to do.
  perform from parley._p_queue as q where q.queue_id = _p_seal_webhook_secret.queue_id for no key update skip locked;
  if not found then
    return false;
  end if;
  update parley._p_external_activation as a
  set secret = null, sealed_secret = _p_seal_webhook_secret.sealed_secret
  where a.queue_id = _p_seal_webhook_secret.queue_id and a.secret = _p_seal_webhook_secret.secret;
  return found;
end
$$;

comment on function parley._p_seal_webhook_secret(integer, text, bytea) is
'Replaces the secret of a webhook by itself, sealed; false when it has been changed or sealed
meanwhile, or somebody holds the queue.
Arguments: queue_id; secret, as _p_plain_secrets gave it; sealed_secret, the same sealed under
the master key for this queue.';
