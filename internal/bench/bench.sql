-- What the benchmark keeps beside the broker in each of its databases. Names are qualified as the broker's own hot functions
-- do it, as nothing here is to be slower than it must.

create schema bench;

-- The bare INSERT: a table without any index.
create table bench.bare (
  id bigint generated always as identity,
  body bytea
);

-- What the paper's procedure writes.
create table bench.message_drop (
  body bytea
);

create table bench.receive_log (
  received_at timestamptz not null default clock_timestamp(),
  messages integer not null
);

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

-- Whole lives of conversations: begin, send, receive and end at the target, receive and end at the initiator. Other sessions may
-- take part of the work of this one, and the other way round; each goes on until nothing is left to do.
create procedure bench.live_shortly(name text, size integer, conversations bigint)
language plpgsql
as $$
declare
  v_body bytea := bench.random_body(size);
  v_begun bigint := 0;
  v_handle uuid;
begin
  loop
    for i in 1 .. least(100, conversations - v_begun) loop
      v_handle := parley.begin_dialog(name || '_initiator', name, contract => 'bench');
      perform parley.send(v_handle, 'bench', v_body);
      v_begun := v_begun + 1;
    end loop;
    commit;
    call bench.end_what_arrives(name);
    call bench.end_what_arrives(name || '_initiator');
    exit when v_begun >= conversations;
  end loop;
end
$$;

-- Receives whole groups and ends their conversations, at most a hundred, ten to a transaction.
create procedure bench.end_what_arrives(queue text)
language plpgsql
as $$
declare
  v_handle uuid;
begin
  for i in 1 .. 100 loop
    select r.conversation_handle into v_handle from parley.receive(queue) as r limit 1;
    exit when v_handle is null;
    perform parley.end_conversation(v_handle);
    if i % 10 = 0 then
      commit;
    end if;
  end loop;
  commit;
end
$$;
