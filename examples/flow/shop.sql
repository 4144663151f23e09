-- Tables and services of the shop.
create schema shop;

-- Orders that wait to be taken away by the location "Table".
create table shop.orders_out (id bigint generated always as identity primary key, document text not null);

-- Rows that the port "Approvals" writes.
create table shop.approvals (
  arrival bigint generated always as identity primary key, message_id bigint not null, number text not null,
  document text not null
);

-- Orders that the program behind the service Billing has received.
create table shop.billed (arrival bigint generated always as identity primary key, document text not null);

select parley.create_queue('orders'), parley.create_queue('billing');

select
  parley.create_service('Orders', 'orders'),
  parley.create_service('Billing', 'billing', array['DEFAULT']);

create function shop.place_order(document text) returns void
language sql
as $$
  insert into shop.orders_out (document) values (place_order.document);
  notify orders_out;
$$;

create function shop.receive_billing() returns bigint
language sql
as $$
  with received as (
    select m.message_sequence_number, m.message_body from parley.receive('billing', top => 100, groups => 20) as m
  ),

  written as (
    insert into shop.billed (document)
    select convert_from(r.message_body, 'UTF8') from received as r
    order by r.message_sequence_number
    returning 1
  )

  select count(*) from written
$$;
