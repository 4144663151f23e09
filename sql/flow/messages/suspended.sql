-- Suspended messages: what cannot go on without an operator, one row for a message and the place where it failed.
--
-- No item of work stands behind one, but where an order waits for it: lane says then in which lane its item is, and the
-- lane is suspended.

create table parley_flow._p_suspended (
  suspension_id bigint generated always as identity primary key,
  message_id bigint not null,
  stage text not null check (stage in ('RECEIVE', 'ROUTE', 'SEND', 'PROCESS')),
  application text,
  receive_port text,
  location text,
  send_port text,
  code text not null,
  error text not null,
  is_resumable boolean not null,
  attempts integer not null default 0,
  order_key text,
  system text,
  lane text,
  message_type text,
  size bigint not null,
  cause_id bigint,
  suspended_at timestamptz not null default clock_timestamp()
);

comment on table parley_flow._p_suspended is
'Messages that wait for an operator. stage: where they failed; lane: in which lane of which system the item is, where
others of its order wait behind it; cause_id: the cause of a routing failure.';

create index _p_suspended_message on parley_flow._p_suspended (message_id);
create index _p_suspended_port on parley_flow._p_suspended (send_port, suspension_id) where send_port is not null;
create index _p_suspended_code on parley_flow._p_suspended (code, suspension_id);
create index _p_suspended_application on parley_flow._p_suspended (application, suspension_id);
create index _p_suspended_receive_port on parley_flow._p_suspended (receive_port, suspension_id)
  where receive_port is not null;
create index _p_suspended_location on parley_flow._p_suspended (location, suspension_id) where location is not null;

create function parley_flow._p_suspend_message(
  id bigint, stage text, location text, send_port text, code text, error text, is_resumable boolean, attempts integer,
  order_key text default null, system text default null, lane text default null, cause_id bigint default null
) returns bigint
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_suspension bigint;
begin
  insert into parley_flow._p_suspended as u (
    message_id, stage, application, receive_port, location, send_port, code, error, is_resumable, attempts, order_key,
    system, lane, message_type, size, cause_id
  )
  select m.message_id, $2, coalesce(s.application, p.application), p.name, coalesce($3, l.name), $4, $5,
    left(coalesce($6, ''), 10000), $7, coalesce($8, 0), $9, $10, $11, m.message_type, m.size, $12
  from parley_flow._p_message as m
  left join parley_flow._p_receive_port as p on p.receive_port_id = m.receive_port_id
  left join parley_flow._p_receive_location as l on l.location_id = m.location_id
  left join parley_flow._p_send_port as s on s.name = $4
  where m.message_id = $1
  returning u.suspension_id into v_suspension;
  return v_suspension;
end
$$;

comment on function parley_flow._p_suspend_message(
  bigint, text, text, text, text, text, boolean, integer, text, text, text, bigint
) is
'Records that a message waits for an operator; gives the number of the suspension.
Arguments: id; stage; location, null for that of the message; send_port; code and error; is_resumable; attempts;
order_key, system and lane, where the item of an order stays; cause_id.';

create function parley_flow._p_shown_key(send_port text, order_key text) returns text
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if order_key is null or not exists (
    select
    from parley_flow._p_send_port as s
    join parley_flow._p_property as y on y.name = s.order_key
    where s.name = send_port and y.is_sensitive
  ) then
    return order_key;
  end if;
  -- An operator who guesses the value cannot compute this.
  return 'hidden:' || left(encode(sha256(
    (select c.key_secret from parley_flow._p_configuration as c) || convert_to(order_key, 'UTF8')
  ), 'hex'), 16);
end
$$;

comment on function parley_flow._p_shown_key(text, text) is
'Gives what operators see of the key of an order, and find it by: the key, or where its property is sensitive another
name for it, which is the same for the same key.
Arguments: send_port; order_key.';
