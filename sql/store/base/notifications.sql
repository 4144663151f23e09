-- Notifications of the store and of the systems that stand on it. They can be off: parley/base/notifications.sql says
-- why.

create function parley_store.notify(channel text, payload text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if lower(current_setting('parley.notify', true) collate "C") in ('off', 'false', 'no', '0') then
    return;
  end if;
  perform pg_notify(channel, payload);
end
$$;

comment on function parley_store.notify(text, text) is
'Notifies whoever listens on a channel, when this transaction commits; does nothing where the setting parley.notify is
off: such a transaction can be prepared.
Arguments: channel; payload.';
