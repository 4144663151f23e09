-- Six ways to empty a queue in one session, each a procedure: message by message, with fewer commits, a group at a time, by the number of the
-- message type, and two that put what a group has into a table in one statement. Each ends when RECEIVE finds nothing. The queue holds
-- conversations of a hundred messages each; no other session receives.

create table bench.audit (
  id bigint generated always as identity,
  at timestamptz,
  payload text,
  audited_user text,
  original xml
);

-- One message a transaction, answered with an echo.
create procedure bench.drain_basic(queue text)
language plpgsql
as $$
declare
  v_message record;
begin
  loop
    select r.conversation_handle, r.message_type_name, r.message_body into v_message from parley.receive(queue, 1) as r;
    exit when not found;
    if v_message.message_type_name = 'bench' then
      perform parley.send(v_message.conversation_handle, 'bench', v_message.message_body);
    else
      perform parley.end_conversation(v_message.conversation_handle);
    end if;
    commit;
  end loop;
  commit;
end
$$;

-- The same, a commit every hundred messages.
create procedure bench.drain_batched(queue text)
language plpgsql
as $$
declare
  v_message record;
  v_open integer := 0;
begin
  loop
    select r.conversation_handle, r.message_type_name, r.message_body into v_message from parley.receive(queue, 1) as r;
    exit when not found;
    if v_message.message_type_name = 'bench' then
      perform parley.send(v_message.conversation_handle, 'bench', v_message.message_body);
    else
      perform parley.end_conversation(v_message.conversation_handle);
    end if;
    v_open := v_open + 1;
    if v_open >= 100 then
      commit;
      v_open := 0;
    end if;
  end loop;
  commit;
end
$$;

-- All messages of a group in one call and one transaction, and then one by one.
create procedure bench.drain_cursor(queue text)
language plpgsql
as $$
declare
  v_message record;
  v_count integer;
begin
  loop
    v_count := 0;
    for v_message in select r.conversation_handle, r.message_type_name, r.message_body from parley.receive(queue) as r loop
      v_count := v_count + 1;
      if v_message.message_type_name = 'bench' then
        perform parley.send(v_message.conversation_handle, 'bench', v_message.message_body);
      else
        perform parley.end_conversation(v_message.conversation_handle);
      end if;
    end loop;
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

-- The same by the number of the message type in place of its name.
create procedure bench.drain_cursor_by_id(queue text)
language plpgsql
as $$
declare
  v_message record;
  v_count integer;
  v_ours integer;
begin
  select t.message_type_id into strict v_ours from parley.service_message_types as t where t.name = 'bench';
  loop
    v_count := 0;
    for v_message in select r.conversation_handle, r.message_type_id, r.message_body from parley.receive(queue) as r loop
      v_count := v_count + 1;
      if v_message.message_type_id = v_ours then
        perform parley.send(v_message.conversation_handle, 'bench', v_message.message_body);
      else
        perform parley.end_conversation(v_message.conversation_handle);
      end if;
    end loop;
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

-- A group in one INSERT: XML whose attributes become columns, beside the XML itself. No answer.
create procedure bench.drain_set_xml(queue text)
language plpgsql
as $$
declare
  v_count integer;
begin
  loop
    insert into bench.audit (at, payload, audited_user, original)
    select x.at, x.payload, x.audited_user, d.document
    from parley.receive(queue) as r
    cross join lateral (select xmlparse(document convert_from(r.message_body, 'UTF8')) as document) as d
    cross join lateral xmltable(
      xmlnamespaces('http://bench.example/audit' as a), '/a:Datagram' passing d.document
      columns at timestamptz path '@date-time', payload text path '@payload', audited_user text path '@user'
    ) as x
    where r.message_type_name = 'bench';
    get diagnostics v_count = row_count;
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

-- The same of a body of bytes: the time in eight, the length of the payload in four, the payload, the length of the user in four, the user.
create procedure bench.drain_set_binary(queue text)
language plpgsql
as $$
declare
  v_count integer;
begin
  loop
    insert into bench.audit (at, payload, audited_user)
    select
      to_timestamp(('x' || encode(substr(r.message_body, 1, 8), 'hex'))::bit(64)::bigint / 1000000.0),
      convert_from(substr(r.message_body, 13, l.payload), 'UTF8'),
      convert_from(substr(r.message_body, 17 + l.payload), 'UTF8')
    from parley.receive(queue) as r
    cross join lateral (select ('x' || encode(substr(r.message_body, 9, 4), 'hex'))::bit(32)::integer as payload) as l
    where r.message_type_name = 'bench';
    get diagnostics v_count = row_count;
    commit;
    exit when v_count = 0;
  end loop;
end
$$;

-- Fills the queue: messages of the same body, a hundred a transaction, one conversation after the other.
create procedure bench.load(handles uuid[], messages integer, body bytea)
language plpgsql
as $$
declare
  v_open integer := 0;
begin
  for i in 1 .. cardinality(handles) loop
    for j in 1 .. messages loop
      perform parley.send(handles[i], 'bench', body);
      v_open := v_open + 1;
      if v_open >= 100 then
        commit;
        v_open := 0;
      end if;
    end loop;
  end loop;
  commit;
end
$$;
