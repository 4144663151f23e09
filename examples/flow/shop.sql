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

-- An order of a partner, which is JSON, as one of the shop.
create function shop.map_partner_order(partner_order jsonb) returns xml
language sql
stable
begin atomic
  select xmlelement(
    name "o:Order", xmlattributes('http://shop.example/orders' as "xmlns:o"),
    xmlelement(
      name "Head", xmlelement(name "Number", o.id), xmlelement(name "Customer", o.buyer),
      xmlelement(name "Region", o.delivery ->> 'region'), xmlelement(name "Amount", o.total)
    ),
    xmlelement(name "Note", o.remark)
  )
  from jsonb_to_record(partner_order) as o (id text, buyer text, delivery jsonb, total text, remark text);
end;

-- Questions to the two back ends, as the ports "Stock" and "Credit" write them.
create table shop.questions (
  arrival bigint generated always as identity primary key, back_end text not null, number text not null,
  document text not null, is_done boolean not null default false
);

create index questions_to_do on shop.questions (back_end, arrival) where not is_done;

-- Goods and credit that the back ends hold for orders.
create table shop.held (back_end text, number text, primary key (back_end, number));

-- Answers that wait to be taken away by the location "Answers", and all that have come.
create table shop.answers_out (id bigint generated always as identity primary key, document text not null);
create table shop.answers (arrival bigint generated always as identity primary key, document text not null);

-- The mail transport of the shop, which takes what the port "Outcome mails" submits.
select parley_mail.apply('{
  "organization": {"organization": {"default_domain": "shop.example", "fqdn": "mail.shop.example"}},
  "accepted domain": {"shop.example": {}}
}');

-- How the orders of partners have ended.
create table shop.outcomes (
  arrival bigint generated always as identity primary key, number text not null, state text not null
);

-- A back end: it holds what is asked for and answers, and frees what is taken back. Of orders whose number ends in
-- "quiet" it never says that the credit is granted, as if the answer were lost.
create function shop.answer(back_end text) returns bigint
language sql
as $$
  with question as (
    update shop.questions as q set is_done = true
    where q.arrival = (
      select o.arrival from shop.questions as o
      where not o.is_done and o.back_end = answer.back_end
      order by o.arrival limit 1
    )
    returning q.number, q.document like '<Ask %' as is_ask
  ),

  held as (
    insert into shop.held (back_end, number) select answer.back_end, q.number from question as q where q.is_ask
  ),

  freed as (
    delete from shop.held as h using question as q
    where not q.is_ask and h.back_end = answer.back_end and h.number = q.number
  ),

  answered as (
    insert into shop.answers_out (document)
    select format('<Answer xmlns="http://shop.example/%s"><Number>%s</Number></Answer>', answer.back_end, q.number)
    from question as q
    where q.is_ask and not (answer.back_end = 'credit' and q.number like '%quiet')
  )

  select count(*) from question
$$;

-- Says to the location "Answers" that there is one.
create function shop.announce_answer() returns trigger
language plpgsql
as $$
begin
  notify answers_out;
  return null;
end
$$;

create trigger announce_answer after insert on shop.answers_out
for each statement execute function shop.announce_answer();
