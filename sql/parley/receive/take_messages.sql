-- The rows that RECEIVE takes of a conversation whose group it has locked.
--
-- The planner puts these functions in line, so that a DELETE that uses them is planned as if they were written there.
-- Each is given the first message's type: nearly always the others are of the same, and it need not be looked up for
-- each. Error and DialogTimer messages, 1 and 5, are left: receive/receive_group.sql takes those.

create function parley._p_rows_in_order(
  endpoint_id bigint, from_position bigint, rows_max bigint, known_id integer, known_name text, known_validation text
) returns table (row_id tid, "position" bigint, size integer, type_name text, validation text)
language sql stable
as $$
  select n.ctid, n.position, pg_catalog.cardinality(n.frame),
    case
      when n.message_type_id operator(pg_catalog.=) $4 then $5
      else (
        select t.name
        from parley._p_message_type as t
        where t.message_type_id operator(pg_catalog.=) n.message_type_id
      )
    end,
    case
      when n.message_type_id operator(pg_catalog.=) $4 then $6
      else (
        select t.validation::pg_catalog.text
        from parley._p_message_type as t
        where t.message_type_id operator(pg_catalog.=) n.message_type_id
      )
    end
  from parley._p_message as n
  where n.endpoint_id operator(pg_catalog.=) $1
    and n.position operator(pg_catalog.>=) $2
    and n.message_type_id operator(pg_catalog.<>) 1
    and n.message_type_id operator(pg_catalog.<>) 5
  order by n.position
  limit $3
$$;

comment on function parley._p_rows_in_order(bigint, bigint, bigint, integer, text, text) is
'Gives the first rows of a conversation; size is that of a frame, null of a message that was sent alone.
Arguments: endpoint_id; from_position, before which nothing waits; rows_max; the id, name and validation of the type
that most of them have.';

create function parley._p_rows_sent_alone(
  endpoint_id bigint, from_position bigint, rows_max integer, known_id integer, known_name text, known_validation text
) returns table (row_id tid, before bigint, type_name text, validation text)
language sql stable
as $$
  select o.row_id, o.number operator(pg_catalog.-) 1::pg_catalog.int8, o.type_name, o.validation
  from (
    select k.row_id, k.type_name, k.validation,
      pg_catalog.row_number() over (order by k.position rows unbounded preceding) as number,
      pg_catalog.count(k.size) over (order by k.position rows unbounded preceding) as frames
    from parley._p_rows_in_order($1, $2, $3::pg_catalog.int8, $4, $5, $6) as k
  ) as o
  where o.frames operator(pg_catalog.=) 0::pg_catalog.int8
$$;

comment on function parley._p_rows_sent_alone(bigint, bigint, integer, integer, text, text) is
'Gives the first rows of a conversation that hold one message each, up to the first frame, and how many are before each.
Arguments: as _p_rows_in_order.';

create function parley._p_whole_rows(
  endpoint_id bigint, from_position bigint, rows_max bigint, messages_max integer,
  known_id integer, known_name text, known_validation text
) returns table (row_id tid, before bigint, type_name text, validation text)
language sql stable
as $$
  select o.row_id, o.upto operator(pg_catalog.-) o.size, o.type_name, o.validation
  from (
    select k.row_id, k.type_name, k.validation, coalesce(k.size, 1) as size,
      pg_catalog.sum(coalesce(k.size, 1)) over (order by k.position rows unbounded preceding) as upto
    from parley._p_rows_in_order($1, $2, $3, $5, $6, $7) as k
  ) as o
  where o.upto operator(pg_catalog.<=) $4
$$;

comment on function parley._p_whole_rows(bigint, bigint, bigint, integer, integer, text, text) is
'Gives the first rows of a conversation, frames and single messages, as far as they hold no more than so many messages,
and how many messages are before each.
Arguments: as _p_rows_in_order; messages_max.';

create function parley._p_put_rest_back(message parley._p_message, taken integer, top integer) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley._p_message (position, endpoint_id, enqueued_at, lane, message_type_id, body, frame, trace_context)
  select message.position + f.first - 1, message.endpoint_id, message.enqueued_at, message.lane,
    message.message_type_id,
    case when top = 1 then message.frame[f.first] end,
    case when top > 1 then message.frame[f.first : f.first + top - 1] end, message.trace_context
  from generate_series(taken + 1, cardinality(message.frame), top) as f (first);
end
$$;

comment on function parley._p_put_rest_back(parley._p_message, integer, integer) is
'Puts back what a reader has left of a frame, in pieces no larger than it may take: the next one like it takes whole
rows.
Arguments: message, the row that was deleted; taken, how many of its messages were; top of the reader.';

create function parley._p_record_received(endpoint_id bigint, sequence bigint, count integer) returns boolean
language plpgsql
as $$
declare
  v_transaction_id pg_catalog.xid;
begin
  insert into parley._p_receive_progress (endpoint_id, sequence) values ($1, $2) returning xmin into v_transaction_id;
  if v_transaction_id operator(pg_catalog.<>) pg_catalog.pg_current_xact_id()::pg_catalog.xid then
    perform parley._p_keep(v_transaction_id, $1);
  end if;
  if $2 operator(pg_catalog./) $3 operator(pg_catalog./) 32
    operator(pg_catalog.<>) (($2 operator(pg_catalog.-) $3) operator(pg_catalog./) $3 operator(pg_catalog./) 32) then
    perform parley._p_forget_progress($1, $2, $3);
  end if;
  return true;
end
$$;

comment on function parley._p_record_received(bigint, bigint, integer) is
'Records how far a conversation has been received, and in a subtransaction that this transaction keeps it.
Arguments: endpoint_id; sequence, the number of the next message; count, how many this RECEIVE took, at least 1.';
