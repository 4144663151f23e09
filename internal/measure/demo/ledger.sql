-- What was sent, written by the transaction that sent it.
create table sent_ledger (
  conversation integer not null,
  sender integer not null,
  sequence integer not null,
  body_bytes integer not null
);
