-- First messages of secured dialogs that come again.
--
-- A broker that forwards a dialog that it cannot read can still keep its first message, and bring it again when both
-- sides have ended and forgotten it. Then the target would begin the dialog, and do the work, a second time. So each
-- transmission is sealed with its time (dialogsecurity), and the target (1) remembers which secured dialogs it has
-- begun, for longer than (2) it takes their first messages after they were sealed. The memory is opened_at in
-- _p_dialog_security: not the tombstone, whose time is a setting, and which goes with its service or by a cleanup. A
-- database that goes on from an older state has lost some of its memory: it takes only (3) what was sealed after it has
-- begun its epoch.
-- All of it allows for clocks of senders that are ahead by a minute. One that is behind, by half an hour, or ahead by
-- more, begins no dialog.
-- An honest sender that is refused seals its message anew at the next attempt, so nothing is lost however long it has
-- waited before.
-- Cost: an update for each secured dialog that is begun here, none for others or for further messages.

create function parley._p_was_opened(conversation_id uuid) returns boolean
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select
    from parley._p_dialog_security as s
    where s.conversation_id = _p_was_opened.conversation_id and not s.is_initiator and s.opened_at is not null
  )
$$;

comment on function parley._p_was_opened(uuid) is
'Reports whether a secured dialog has begun here, also when it is over, as far as that is remembered.';

create function parley._p_record_opened(conversation_id uuid) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  update parley._p_dialog_security as s
  set opened_at = clock_timestamp()
  where s.conversation_id = _p_record_opened.conversation_id and not s.is_initiator
$$;

comment on function parley._p_record_opened(uuid) is 'Records that a secured dialog has begun here.';

create function parley._p_refuse_replay(sealed_at timestamptz) returns parley._p_error
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_now timestamptz := clock_timestamp();
  v_here text := to_char(v_now at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"');
  v_sealed text := to_char(sealed_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"');
begin
  if sealed_at is null then
    return null;
  end if;
  -- A restored database must have its epoch before it reports what it remembers.
  perform parley._p_record_timeline()
  from parley._p_broker as b
  where b.timeline is null or not parley._p_is_epoch_current();
  return (
    select case
      when sealed_at > v_now + interval '1 minute' then parley._p_error_of(28066, 'ahead', v_sealed, v_here)
      when sealed_at <= v_now - interval '30 minutes' then parley._p_error_of(28066, 'too old', v_sealed, v_here)
      when sealed_at <= b.remembers_since + interval '1 minute' then
        parley._p_error_of(28066, 'older state', v_sealed, v_here)
    end
    from parley._p_broker as b
  );
end
$$;

comment on function parley._p_refuse_replay(timestamptz) is
'Explains why what would begin a dialog is not taken for the time at which it was sealed (28066): it may have been here
already, and be forgotten. Null when it is taken, and for what was not sealed.
Arguments: sealed_at, as the seal proves it.
Source: spec 3.3, 7.3.';
