-- Rates of send connectors as they are configured: how many messages may leave in a time, by destination, sender or
-- source (spec mail 11.3). queues/rates.sql counts by them.

create table parley_mail._p_rate (
  connector text not null,
  ordinal integer not null,
  key text not null,
  match text,
  amount integer not null,
  is_of_recipients boolean not null,
  per integer not null,
  burst integer not null,
  primary key (connector, ordinal)
);

comment on table parley_mail._p_rate is
'Rates of send connectors: amount messages or recipients in per seconds, burst at once. match: the value for which it
is; *.d is one bucket for all below d; null: a bucket for each value.';

create function parley_mail._p_is_rate(rate jsonb) returns boolean
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    upper((rate ->> 'key') collate "C") in ('DOMAIN', 'HOST', 'REMOTE_IP', 'SENDER_DOMAIN', 'ROLE', 'TAG', 'SOURCE')
    and (rate ? 'messages') <> (rate ? 'recipients')
    and coalesce(rate ->> 'messages', rate ->> 'recipients') ~ '^[1-9][0-9]{0,8}$'
    and rate ->> 'per' ~ '^[1-9][0-9]{0,5}$'
    and coalesce(rate ->> 'burst', '1') ~ '^[1-9][0-9]{0,8}$'
    and rate - array['key', 'match', 'messages', 'recipients', 'per', 'burst'] = '{}', false
  )
$$;

comment on function parley_mail._p_is_rate(jsonb) is 'Reports whether an element of the setting rates is well-formed.';

create function parley_mail._p_derive_rates(connector text, settings jsonb) returns void
language sql
set search_path = pg_catalog, pg_temp
as $$
  delete from parley_mail._p_rate as r where r.connector = _p_derive_rates.connector;
  insert into parley_mail._p_rate (connector, ordinal, key, match, amount, is_of_recipients, per, burst)
  select _p_derive_rates.connector, s.n, upper((s.v ->> 'key') collate "C"), parley_mail._p_folded(s.v ->> 'match'),
    coalesce(s.v ->> 'messages', s.v ->> 'recipients')::integer, s.v ? 'recipients', (s.v ->> 'per')::integer,
    coalesce(s.v ->> 'burst', s.v ->> 'messages', s.v ->> 'recipients')::integer
  from jsonb_array_elements(settings -> 'rates') with ordinality as s (v, n)
  -- Malformed values are refused when the change is complete.
  where parley_mail._p_is_rate(s.v)
$$;

comment on function parley_mail._p_derive_rates(text, jsonb) is 'Writes the rates of a send connector.';

create function parley_mail._p_check_rates(name text, settings jsonb) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_rate jsonb;
begin
  for v_rate in select s.v from jsonb_array_elements(settings -> 'rates') as s (v) loop
    if not parley_mail._p_is_rate(v_rate) then
      found := parley_mail._p_contradicts('send connector', name, 'itself', format('%s is no rate.', v_rate),
        'Write {"key": "DOMAIN", "match": "example.com", "messages": 100, "per": 60}: key is DOMAIN, HOST, '
        || 'REMOTE_IP, SENDER_DOMAIN, ROLE, TAG or SOURCE, messages (or recipients) in per seconds, match and burst as '
        || 'you like.');
    end if;
  end loop;
  return true;
end
$$;

comment on function parley_mail._p_check_rates(text, jsonb) is
'Refuses rates of a send connector that are malformed.
Errors: PM003.';
