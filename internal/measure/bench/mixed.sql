-- A business transaction of three writes: an order, the balance of an account, and a line of the account's ledger.

create table bench.account (
  id integer primary key,
  balance bigint not null
) with (fillfactor = 50);

create table bench.placed_order (
  id bigint generated always as identity primary key,
  account_id integer not null,
  amount integer not null,
  placed_at timestamptz not null default now()
);

create table bench.account_line (
  id bigint generated always as identity primary key,
  account_id integer not null,
  amount integer not null
);

-- The table of a program that keeps its messages for a relay to fetch.
create table bench.outbox (
  id bigint generated always as identity primary key,
  body bytea not null,
  created_at timestamptz not null default now()
);
