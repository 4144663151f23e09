-- The statements that a shop would write. Each order sends its confirmation in its own transaction. Answers arrive as
-- messages of a service, and the program that receives them writes them to a table.
create table orders (order_id bigint generated always as identity primary key, letter text not null unique);

create table answers (letter text, raw bytea not null);

select parley.create_queue('answers');

select parley.create_service('shop', 'answers', array['DEFAULT']);

create function place_order(letter text, customer text, message bytea) returns bigint
language plpgsql
as $$
begin
  insert into orders (letter) values (place_order.letter);
  return parley_mail.send('shop@shop.example', array[customer], raw => message);
end
$$;

create function receive_answers() returns bigint
language sql
as $$
  with received as (
    select m.message_body from parley.receive('answers', top => 100) as m
  ),

  written as (
    insert into answers (raw)
    select decode(convert_from(r.message_body, 'UTF8')::jsonb ->> 'raw', 'base64') from received as r
    returning 1
  )

  select count(*) from written
$$;
