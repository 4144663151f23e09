-- Notifications: what wakes daemons, consumers and other sleepers.
--
-- PostgreSQL refuses PREPARE TRANSACTION in a transaction that has executed NOTIFY. So a session that takes part in
-- distributed transactions sets parley.notify = off: its statements notify nobody, and whoever sleeps finds their
-- work at its next scan. Everybody who listens scans at intervals besides, because a notification can be lost.

create function parley._p_notify(channel text, payload text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if lower(current_setting('parley.notify', true) collate "C") in ('off', 'false', 'no', '0') then
    return false;
  end if;
  perform pg_notify(channel, payload);
  return true;
end
$$;

comment on function parley._p_notify(text, text) is
'Notifies whoever listens on a channel, when this transaction commits, and reports that; does nothing where the setting
parley.notify is off: such a transaction can be prepared. No other function of the broker calls pg_notify.
Arguments: channel; payload.';

create function parley._p_wake_readers(queue_id integer, wakeup regclass) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if pg_sequence_last_value(wakeup) > extract(epoch from clock_timestamp()) then
    perform parley._p_notify('parley', queue_id::text);
  end if;
end
$$;

comment on function parley._p_wake_readers(integer, regclass) is
'Notifies the sleepers of a queue, if there are any (parley.listen_for_messages).';
