-- Session keys of anonymous dialogs, and the end of what is recorded of dialogs.
--
-- In full security each daemon makes its own keys, and nothing has to be kept. In an anonymous dialog the target can
-- only use the key of the initiator, so both sides keep it as long as a dialog has it, sealed under the master key of
-- each side.
-- Locks: none but the rows themselves. Cost: one row for some hours of dialogs.

create table parley._p_session_key (
  key_id bytea primary key,
  sealed_key bytea not null,
  created_at timestamptz not null default clock_timestamp()
);

comment on table parley._p_session_key is
'Session keys of anonymous dialogs, sealed under the master key: replies are sealed with the initiator''s key, also
after a restart (spec 7.3).';

create function parley._p_keep_session_key(key_id bytea, sealed_key bytea) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  insert into parley._p_session_key as k (key_id, sealed_key)
  values ($1, $2)
  on conflict on constraint _p_session_key_pkey do nothing
$$;

comment on function parley._p_keep_session_key(bytea, bytea) is
'Stores the session key of anonymous dialogs.
Arguments: key_id; sealed_key, sealed under the master key.';

create function parley._p_read_session_key(key_id bytea) returns bytea
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select k.sealed_key from parley._p_session_key as k where k.key_id = $1
$$;

comment on function parley._p_read_session_key(bytea) is 'Gives a session key, sealed under the master key, or null.';

create function parley._p_forget_dialogs(dialogs_max integer) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_forgotten integer;
begin
  delete from parley._p_dialog_security as s
  using (
    select d.conversation_id, d.is_initiator
    from parley._p_dialog_security as d
    where d.secured_at < clock_timestamp() - interval '10 minutes'
      and (d.opened_at is null or d.opened_at < clock_timestamp() - parley._p_replay_memory())
      and not exists (
        select
        from parley._p_endpoint as e
        where e.conversation_id = d.conversation_id and e.is_initiator = d.is_initiator
      )
    limit dialogs_max
    for update skip locked
  ) as g
  where s.conversation_id = g.conversation_id and s.is_initiator = g.is_initiator;
  get diagnostics v_forgotten = row_count;
  -- A daemon uses a key for new dialogs for some hours.
  delete from parley._p_session_key as k
  where k.created_at < clock_timestamp() - interval '12 hours'
    and not exists (select from parley._p_dialog_security as s where s.key_id = k.key_id);
  return v_forgotten;
end
$$;

comment on function parley._p_forget_dialogs(integer) is
'Removes what is recorded of secured dialogs that have ended, once a replay is recognised by its age, and session keys
that no dialog has any more; gives the number of dialogs.
Arguments: dialogs_max, how many at most.';

create function parley._p_replay_memory() returns interval
language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select interval '40 minutes'
$$;

comment on function parley._p_replay_memory() is
'Gives how long a target remembers at least that it has begun a secured dialog. It is longer than a first message is
taken after it was sealed (half an hour), by more than the clocks of senders may be ahead (a minute).';
