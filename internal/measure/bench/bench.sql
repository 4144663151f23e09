-- Tables and functions that the benchmark keeps beside the broker in each of its databases. Names are qualified as the
-- broker's own hot functions do it, as nothing here is to be slower than it must.

create schema bench;

-- The bare INSERT: a table without any index.
create table bench.bare (
  id bigint generated always as identity,
  body bytea
);

-- Counts the messages of a queue: what was sent in a batch is a row with many. It reads the rows themselves, as the
-- queue's view would build each message. Databases of peers have this without the broker.
create function bench.waiting(queue text) returns bigint
language plpgsql stable
as $$
begin
  return (
    select coalesce(sum(coalesce(cardinality(m.frame), 1)), 0)
    from parley.service_queues as q
    join parley._p_message as m
      on m.lane between parley._p_lane(q.object_id, 10) and parley._p_set_aside_lane(q.object_id)
    where q.name = queue
  );
end
$$;

-- The row that the paper's procedure writes.
create table bench.message_drop (
  body bytea
);

create table bench.receive_log (
  received_at timestamptz not null default clock_timestamp(),
  messages integer not null
);

-- The first row that work on a message writes, where latency is measured.
create table bench.begun (
  number bigint not null,
  begun_at timestamptz not null
);

-- The activation procedure whose latency is measured: records the number in each body, and when it had the message.
create procedure bench.begin_work()
language plpgsql
as $$
declare
  v_count integer;
begin
  loop
    insert into bench.begun (number, begun_at)
    select ('x' || encode(substr(r.message_body, 1, 8), 'hex'))::bit(64)::bigint, clock_timestamp()
    from parley.receive('latency', 100) as r;
    get diagnostics v_count = row_count;
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

create function bench.random_body(size integer) returns bytea
language plpgsql
as $$
declare
  v_body bytea := '';
begin
  while length(v_body) < size loop
    v_body := v_body || uuid_send(gen_random_uuid());
  end loop;
  return substr(v_body, 1, size);
end
$$;

-- Sends one message at a time, round robin over the conversations, in transactions of a hundred.
create procedure bench.send_singles(handles uuid[], size integer, messages bigint)
language plpgsql
as $$
declare
  v_body bytea := bench.random_body(size);
begin
  for i in 0 .. messages - 1 loop
    perform parley.send(handles[1 + i % cardinality(handles)], 'bench', v_body);
    if i % 100 = 99 then
      commit;
    end if;
  end loop;
  commit;
end
$$;

-- Sends batches of the same bodies, a transaction each: what a program in the server sends, without a client's encoding and the wire.
create procedure bench.send_batches(handle uuid, size integer, batch integer, calls integer)
language plpgsql
as $$
declare
  v_bodies bytea[] := array(select bench.random_body(size) from generate_series(1, batch));
begin
  for i in 1 .. calls loop
    perform parley.send_batch_binary(handle, 'bench', v_bodies);
    commit;
  end loop;
end
$$;

-- The same as one multi-row INSERT a transaction.
create procedure bench.insert_batches(size integer, batch integer, calls integer)
language plpgsql
as $$
declare
  v_bodies bytea[] := array(select bench.random_body(size) from generate_series(1, batch));
begin
  for i in 1 .. calls loop
    insert into bench.bare (body) select unnest(v_bodies);
    commit;
  end loop;
end
$$;

-- Receives until the queue is empty or so many messages were received, in a transaction each, and throws away what comes.
create procedure bench.drain(queue text, top integer, messages bigint)
language plpgsql
as $$
declare
  v_left bigint := messages;
  v_count integer;
begin
  while v_left > 0 loop
    select count(*) into v_count from parley.receive(queue, top);
    commit;
    exit when v_count = 0;
    v_left := v_left - v_count;
  end loop;
end
$$;

-- Receives all that waits, counts the rows where they are, and commits every per_transaction messages, so that what is
-- measured is RECEIVE and not how long the disk takes to sync.
create procedure bench.drain_counted(queue text, top integer, groups integer, per_transaction integer, inout received bigint)
language plpgsql
as $$
declare
  v_count integer;
  v_open integer := 0;
begin
  loop
    select count(*) into v_count from parley.receive(queue, top, groups => groups);
    received := received + v_count;
    v_open := v_open + v_count;
    if v_open >= per_transaction or v_count = 0 then
      commit;
      v_open := 0;
    end if;
    exit when v_count = 0;
  end loop;
end
$$;

-- The same of a simple queue.
create procedure bench.take_counted(queue text, count integer, per_transaction integer, inout taken bigint)
language plpgsql
as $$
declare
  v_count integer;
  v_open integer := 0;
begin
  loop
    select count(*) into v_count from parley.take(take_counted.queue, take_counted.count) as t;
    taken := taken + v_count;
    v_open := v_open + v_count;
    if v_open >= per_transaction or v_count = 0 then
      commit;
      v_open := 0;
    end if;
    exit when v_count = 0;
  end loop;
end
$$;

-- The paper's receive procedure: up to top messages into a table, 2,000 bytes of each, a log row, commit; until the queue is empty.
create procedure bench.paper_procedure(queue text, top integer)
language plpgsql
as $$
declare
  v_count integer;
begin
  loop
    insert into bench.message_drop (body)
    select substr(r.message_body, 1, 2000) from parley.receive(queue, top) as r;
    get diagnostics v_count = row_count;
    insert into bench.receive_log (messages) values (v_count);
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

-- Whole lives of conversations: begin, send, receive and end at the target, receive and end at the initiator. Sessions take work
-- of one another; whoever comes last with no conversations of his own ends what is left.
create procedure bench.live_shortly(name text, size integer, conversations bigint)
language plpgsql
as $$
declare
  v_body bytea := bench.random_body(size);
  v_left bigint := conversations;
  v_handle uuid;
  v_ended integer;
  v_answered integer;
begin
  loop
    for i in 1 .. least(100, v_left) loop
      v_handle := parley.begin_dialog(name || '_initiator', name, contract => 'bench');
      perform parley.send(v_handle, 'bench', v_body);
    end loop;
    commit;
    v_left := v_left - least(100, v_left);
    call bench.end_what_arrives(name, v_ended);
    call bench.end_what_arrives(name || '_initiator', v_answered);
    exit when v_left = 0 and v_ended = 0 and v_answered = 0;
  end loop;
end
$$;

-- Receives whole groups and ends their conversations, at most a hundred, ten to a transaction; returns how many.
create procedure bench.end_what_arrives(queue text, out ended integer)
language plpgsql
as $$
declare
  v_handle uuid;
begin
  ended := 0;
  loop
    select r.conversation_handle into v_handle from parley.receive(queue) as r limit 1;
    exit when v_handle is null;
    perform parley.end_conversation(v_handle);
    ended := ended + 1;
    if ended % 10 = 0 then
      commit;
    end if;
    exit when ended = 100;
  end loop;
  commit;
end
$$;

-- The activation procedure of dialogs between databases: as the paper's, it waits a while for more before it leaves.
create procedure bench.read_dialog()
language plpgsql
as $$
declare
  v_count integer;
begin
  loop
    insert into bench.message_drop (body)
    select substr(r.message_body, 1, 2000) from parley.receive('dialog', 10000, timeout => 3000) as r;
    get diagnostics v_count = row_count;
    exit when v_count = 0;
    insert into bench.receive_log (messages) values (v_count);
    commit;
  end loop;
end
$$;
