-- Keys of an order whose head cannot be sent now.
--
-- The keys of an ordered send port share 16 lanes, each with one lease at a time. A key whose head failed is held: it
-- has a lane of its own, with its head and all behind it in order, and what of it comes out of the shared lane later is
-- moved behind them (flow/send/held_keys.sql). So a key waits for its own head and for nobody else's.
--
-- An ordered port without a key has the key '', whose lane is that of the port.

create table parley_flow._p_held_key (
  send_port_id integer not null,
  order_key text not null,
  system text not null,
  lane text not null,
  attempts integer not null default 0,
  is_waiting boolean not null default false,
  error text,
  held_at timestamptz not null default clock_timestamp(),
  primary key (send_port_id, order_key)
);

comment on table parley_flow._p_held_key is
'Keys that are held. attempts: how many of the head have failed; is_waiting: its retries are over, and an operator has
to say what becomes of it.';

create index _p_held_key_lane on parley_flow._p_held_key (system, lane);
