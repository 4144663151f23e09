-- The messages that were sent; the transaction that sends a message writes its row.
create table sent_ledger (
  conversation integer not null,
  sender integer not null,
  sequence integer not null,
  body_bytes integer not null
);
