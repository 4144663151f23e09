-- Attaching: what a program that works for the broker for long calls first, and how a broker that finds itself
-- elsewhere is switched off (spec 9.1).

create function parley._p_throw_switch(is_enabled boolean) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  alter sequence parley._p_broker_switch restart;
  if not is_enabled then
    perform setval('parley._p_broker_switch', 1);
  end if;
  -- Daemons have to begin or to stop activation.
  perform parley._p_notify('parley', 'queues');
end
$$;

comment on function parley._p_throw_switch(boolean) is
'Throws the switch of the broker, once everybody who has asked for its position has finished.
Errors: 55P03 when somebody does not finish within lock_timeout.';

create function parley._p_switch_off() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform parley._p_throw_switch(false);
  perform from parley._p_endpoint as e where e.destination_lane is not null order by e.endpoint_id for no key update;
  perform parley._p_forget_routes(
    array(select e.endpoint_id from parley._p_endpoint as e where e.destination_lane is not null)
  );
  update parley._p_broker as b set is_broker_enabled = false, disabled_at = clock_timestamp();
end
$$;

comment on function parley._p_switch_off() is
'Disables the broker. Errors: 55P03 when senders do not finish within lock_timeout.';

create function parley.attach_broker(
  out schema_version integer, out oldest_client_version integer, out release text,
  out service_broker_guid uuid, out broker_state text, out advice text, out fingerprint text
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  v_is_enabled boolean;
begin
  select i.schema_version, i.oldest_client_version, i.release, i.fingerprint
  into schema_version, oldest_client_version, release, fingerprint
  from parley._p_installation as i;
  select b.service_broker_guid, b.is_broker_enabled into service_broker_guid, v_is_enabled from parley._p_broker as b;
  broker_state := parley._p_broker_state();
  if broker_state = 'ELSEWHERE' then
    advice := parley._p_advice_when_elsewhere();
    if v_is_enabled and not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' then
      begin
        perform parley._p_switch_off();
      exception
        -- A sender is under way. The next attach tries again.
        when lock_not_available then
          null;
      end;
    end if;
  elsif broker_state = 'DISABLED' then
    advice := 'The broker is disabled: messages are neither delivered nor read by activation. Switch it on: select '
      || 'parley.enable_broker();';
  end if;
end
$$;

comment on function parley.attach_broker() is
'Every program that works for this broker for long calls this first, and again when it has lost its connection. A broker
that finds itself in another database than the one in which it was enabled last is switched off, until somebody says
whether it has moved or was copied. Anybody may call it. Gives schema_version; oldest_client_version, which programs
need to know at least; release; fingerprint, of the files that made the schema; service_broker_guid; broker_state,
ENABLED, DISABLED or ELSEWHERE; advice, what to do when the state is not ENABLED.
Errors: none of its own.
Source: spec 9.1.';
