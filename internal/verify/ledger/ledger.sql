-- The ledger of a workload: rows are written in the transaction that sends or receives, so they are there exactly when the message is.
-- There are no keys on what is recorded: a duplicate is to be seen, not to be refused.

create schema ledger;

create table ledger.sent (dialog uuid, from_initiator boolean, stream text, n bigint, hash text, begun bigint, handle uuid);
create table ledger.received (dialog uuid, from_initiator boolean, stream text, n bigint, hash text, seq bigint);
create table ledger.ended (dialog uuid, from_initiator boolean, is_error boolean, text text);
create table ledger.end_received (dialog uuid, from_initiator boolean, is_error boolean, text text, code integer, seq bigint);

-- Numbers without gaps: a counter that is rolled back with its transaction.
create table ledger.sent_counter (dialog uuid, from_initiator boolean, stream text, n bigint, primary key (dialog, from_initiator, stream));
create table ledger.received_counter (dialog uuid, from_initiator boolean, n bigint, primary key (dialog, from_initiator));

create function ledger.send(
  handle uuid, stream text, fill text, begun bigint, out n bigint, out dialog uuid, out from_initiator boolean, out hash text
) returns record
language plpgsql
as $$
#variable_conflict use_column
declare
  v_body bytea;
begin
  select e.conversation_id, e.is_initiator = 1 into send.dialog, send.from_initiator
  from parley.conversation_endpoints as e where e.conversation_handle = send.handle;
  if not found then
    raise exception 'conversation handle % not found', send.handle using errcode = parley.sqlstate_of(8426);
  end if;
  insert into ledger.sent_counter as c (dialog, from_initiator, stream, n) values (send.dialog, send.from_initiator, send.stream, 1)
  on conflict on constraint sent_counter_pkey do update set n = c.n + 1
  returning c.n into send.n;
  v_body := convert_to(send.stream || '|' || send.n || '|' || send.fill, 'UTF8');
  send.hash := md5(v_body);
  perform parley.send(send.handle, 'DEFAULT', v_body);
  insert into ledger.sent values (send.dialog, send.from_initiator, send.stream, send.n, send.hash, send.begun, send.handle);
end
$$;

create function ledger.end_conversation(handle uuid, error text) returns void
language plpgsql
as $$
begin
  insert into ledger.ended
  select e.conversation_id, e.is_initiator = 1, error is not null, coalesce(error, '')
  from parley.conversation_endpoints as e where e.conversation_handle = handle;
  if not found then
    raise exception 'conversation handle % not found', handle using errcode = parley.sqlstate_of(8426);
  end if;
  if error is null then
    perform parley.end_conversation(handle);
  else
    perform parley.end_conversation(handle, 1, error);
  end if;
end
$$;

create function ledger.receive(
  queue text, top integer, groups integer default null, out handle uuid, out conversation_group uuid, out is_end boolean,
  out is_error boolean, out dialog uuid,
  out from_initiator boolean, out stream text, out n bigint, out hash text, out seq bigint
) returns setof record
language plpgsql
as $$
#variable_conflict use_column
declare
  v_message parley.received_message;
begin
  for v_message in select * from parley.receive(queue, top => receive.top, groups => receive.groups) loop
    receive.handle := v_message.conversation_handle;
    receive.conversation_group := v_message.conversation_group_id;
    receive.is_end := v_message.message_type_name like any (array['%/EndDialog', '%/Error']);
    receive.is_error := v_message.message_type_name like '%/Error';
    receive.stream := null;
    receive.n := null;
    receive.hash := null;
    if v_message.message_type_name like '%/DialogTimer' then
      -- It stands outside all order.
      return next;
      continue;
    end if;
    -- The dialog is that of the endpoint, not what the body says: a message that went astray is a phantom there.
    select e.conversation_id, e.is_initiator = 0 into receive.dialog, receive.from_initiator
    from parley.conversation_endpoints as e where e.conversation_handle = v_message.conversation_handle;
    insert into ledger.received_counter as c (dialog, from_initiator, n) values (receive.dialog, receive.from_initiator, 1)
    on conflict on constraint received_counter_pkey do update set n = c.n + 1
    returning c.n into receive.seq;
    if receive.is_end then
      insert into ledger.end_received values (
        receive.dialog, receive.from_initiator, receive.is_error,
        coalesce(substring(convert_from(v_message.message_body, 'UTF8') from '<Description>(.*)</Description>'), ''),
        coalesce(substring(convert_from(v_message.message_body, 'UTF8') from '<Code>(.*)</Code>')::integer, 0), receive.seq
      );
    else
      receive.stream := split_part(convert_from(v_message.message_body, 'UTF8'), '|', 1);
      receive.n := split_part(convert_from(v_message.message_body, 'UTF8'), '|', 2)::bigint;
      receive.hash := md5(v_message.message_body);
      insert into ledger.received values (receive.dialog, receive.from_initiator, receive.stream, receive.n, receive.hash, receive.seq);
    end if;
    return next;
  end loop;
end
$$;

create view ledger.waiting as
select e.conversation_id as dialog, e.is_initiator = 0 as from_initiator, split_part(convert_from(m.message_body, 'UTF8'), '|', 1) as stream,
  split_part(convert_from(m.message_body, 'UTF8'), '|', 2)::bigint as n, md5(m.message_body) as hash, 0 as seq
from (select * from parley_queue.target_queue union all select * from parley_queue.initiator_queue) as m
join parley.conversation_endpoints as e using (conversation_handle)
where m.message_type_name = 'DEFAULT';

-- The verdict once more, by other means than the checker's.
create view ledger.verdict as
select 'S1' as invariant, count(*) as violations
from ledger.received as r
where not exists (select from ledger.sent as s where (s.dialog, s.from_initiator, s.stream, s.n) = (r.dialog, r.from_initiator, r.stream, r.n))
union all
select 'S2', count(*)
from ledger.sent as s
where not exists (select from ledger.received as r where (s.dialog, s.from_initiator, s.stream, s.n) = (r.dialog, r.from_initiator, r.stream, r.n))
  and not exists (select from ledger.waiting as r where (s.dialog, s.from_initiator, s.stream, s.n) = (r.dialog, r.from_initiator, r.stream, r.n))
  -- Messages sent to a side that ends may vanish with it, as may the messages of a side that ends with an error.
  and not exists (select from ledger.ended as e where e.dialog = s.dialog and (e.from_initiator <> s.from_initiator or e.is_error))
union all
select 'S3', count(*) from (select from ledger.received group by dialog, from_initiator, stream, n having count(*) > 1) as d
union all
select 'S4', count(*)
from (
  select r.n, row_number() over (partition by r.dialog, r.from_initiator, r.stream order by r.seq) as place from ledger.received as r
) as o
where o.n <> o.place
union all
select 'S5', count(*)
from ledger.received as r
join ledger.sent as s using (dialog, from_initiator, stream, n)
where r.hash <> s.hash
union all
select 'S11', count(*)
from ledger.end_received as e
where not e.is_error
  and (
    exists (select from ledger.received as r where (r.dialog, r.from_initiator) = (e.dialog, e.from_initiator) and r.seq > e.seq)
    or not exists (select from ledger.ended as d where (d.dialog, d.from_initiator) = (e.dialog, e.from_initiator))
    or (select count(*) from ledger.end_received as o where (o.dialog, o.from_initiator) = (e.dialog, e.from_initiator)) > 1
  );
