-- Acceptance: messages that arrived come into the database, as many at once as arrived together (spec mail 13).
--
-- The transaction is the group commit of a daemon: each 250 that it gives follows the commit. A body of up to 8,000
-- bytes stands in the row of its message, a larger one is content of parley_store; one that is larger than a daemon
-- keeps in memory was written chunk by chunk before, under the number that _p_begin_body gave.
--
-- A daemon writes an envelope as JSON with the names of the columns of _p_message. So a new column of an envelope is
-- accepted without a change here.

create function parley_mail._p_refuse(message_ids bigint[], status text, reason text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_refused record;
begin
  insert into parley_mail._p_recipient (message_id, ordinal, address, notify, original_recipient)
  select m.message_id, r.ordinal, r.address, r.notify, r.original
  from parley_mail._p_message as m
  cross join unnest(m.recipients, m.notify, m.original_recipients) with ordinality
    as r (address, notify, original, ordinal)
  where m.message_id = any (message_ids);
  select array_agg(r.message_id) as ids, array_agg(r.ordinal) as ordinals, min(m.source) as source into v_refused
  from parley_mail._p_recipient as r
  join parley_mail._p_message as m using (message_id)
  where r.message_id = any (message_ids);
  perform parley_mail._p_fail_recipients(
    v_refused.ids, v_refused.ordinals, array_fill(status, array[cardinality(v_refused.ids)]),
    array_fill(reason, array[cardinality(v_refused.ids)]), v_refused.source
  );
end
$$;

comment on function parley_mail._p_refuse(bigint[], text, text) is
'Gives up all recipients of messages that were just stored, with a report to the sender where he wants one.
Arguments: message_ids; status, a code of RFC 3463; reason.
Source: spec mail 4.1.';

create function parley_mail._p_commit_durably() returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
end
$$;

comment on function parley_mail._p_commit_durably() is
'Has the commit of this transaction wait for the disk, also in a database or for a role that does not otherwise: what
follows it, such as a 250, cannot be taken back.
Source: spec mail 1 (rule 1), 13.';

create function parley_mail._p_begin_body(
  chunk_bytes integer default 524288, caller parley.caller default parley.current_caller()
) returns table (message_id bigint, content_id bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_id bigint;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  v_id := nextval('parley_mail._p_message_id');
  return query
  select v_id, c.content_id from parley_store.begin_content('mail', v_id, _p_begin_body.chunk_bytes) as c;
end
$$;

comment on function parley_mail._p_begin_body(integer, parley.caller) is
'Begins a body that is written chunk by chunk, and gives the number that its message will have. A body that is not
accepted within an hour is removed.
Arguments: chunk_bytes, 1 KB to 16 MB.
Errors: PM001 the role does not hold SERVE, PS002.';

create function parley_mail._p_put_body(
  body bytea, caller parley.caller default parley.current_caller()
) returns table (message_id bigint, content_id bigint)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  message_id := nextval('parley_mail._p_message_id');
  content_id := parley_store.put_body('mail', message_id, body);
  return next;
end
$$;

comment on function parley_mail._p_put_body(bytea, parley.caller) is
'Stores a whole body, and gives the number that its message will have; that is accepted in the same transaction.
Errors: PM001 the role does not hold SERVE.';

create function parley_mail._p_append_body(
  content_id bigint, number integer, body bytea, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_store.append_content(content_id, number, body);
end
$$;

comment on function parley_mail._p_append_body(bigint, integer, bytea, parley.caller) is
'Adds a chunk to a body that was begun.
Arguments: content_id; number, from 0 on; body, of the size that was announced, the last may be shorter.
Errors: PM001 the role does not hold SERVE, PS002, PS003.';

create function parley_mail._p_finish_body(
  content_id bigint, bytes bigint, sha256 bytea, caller parley.caller default parley.current_caller()
) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_store.finish_content(content_id, bytes, sha256);
end
$$;

comment on function parley_mail._p_finish_body(bigint, bigint, bytea, parley.caller) is
'Ends a body that was begun; its message is accepted in the same transaction.
Errors: PM001 the role does not hold SERVE, PS003, PS004.';

create function parley_mail._p_first_accepted(envelopes jsonb[], ids bigint[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_keyed record;
  v_first bigint;
  v_hash text;
begin
  -- In one order, so that two who accept the same ones do not wait for each other.
  for v_keyed in
    select k.n::integer as n, k.key, k.content_hash
    from (
      select e.n, e.envelope ->> 'idempotency_key' as key, e.envelope ->> 'content_hash' as content_hash
      from unnest(envelopes) with ordinality as e (envelope, n)
    ) as k
    where k.key is not null
    order by k.key, k.n
  loop
    insert into parley_mail._p_idempotency (submitted_by, key, content_hash, message_id)
    values (0, v_keyed.key, decode(coalesce(v_keyed.content_hash, ''), 'hex'), ids[v_keyed.n])
    on conflict on constraint _p_idempotency_pkey do nothing;
    if not found then
      select k.message_id, encode(k.content_hash, 'hex') into v_first, v_hash
      from parley_mail._p_idempotency as k
      where k.submitted_by = 0 and k.key = v_keyed.key;
      if v_hash <> v_keyed.content_hash then
        found := parley_mail._p_raise('other content', v_keyed.key, v_first::text);
      end if;
      ids[v_keyed.n] := -v_first;
    end if;
  end loop;
  return ids;
end
$$;

comment on function parley_mail._p_first_accepted(jsonb[], bigint[]) is
'Gives the numbers of messages, and in the place of one that was accepted before under its key the number of that one,
negative.
Errors: PM011 another message was accepted under the key.';

create function parley_mail._p_insert_arriving(envelopes jsonb[], bodies bytea[], ids bigint[]) returns smallint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  -- Only a submission by SQL says these, as a role that may.
  v_state constant jsonb := parley_mail._p_initial_state()
    || '{"submitted_by": null, "not_before": null, "on_status": null, "tag": null}';
  v_empty constant parley_mail._p_message := parley_mail._p_empty_message();
  v_large record;
  v_contents bigint[];
  v_expiry integer[];
  v_arrived record;
  v_message parley_mail._p_message;
  v_messages parley_mail._p_message[];
  v_priorities smallint[] := array_fill(null::smallint, array[cardinality(ids)]);
begin
  select array_agg(b.id order by b.n) as ids, array_agg(b.body order by b.n) as bodies into v_large
  from unnest(ids, bodies) with ordinality as b (id, body, n)
  where b.id > 0 and octet_length(b.body) > 8000;
  if v_large.ids is not null then
    v_contents := parley_store.put_content('mail', v_large.ids, v_large.bodies);
  end if;
  select o.expiry_seconds into v_expiry from parley_mail._p_organization as o;
  for v_arrived in
    select a.n::integer as n, a.id, a.envelope, octet_length(a.body) as bytes, l.content_id,
      case when octet_length(a.body) <= 8000 then a.body end as body
    from unnest(ids, envelopes, bodies) with ordinality as a (id, envelope, body, n)
    left join unnest(v_large.ids, v_contents) as l (id, content_id) on l.id = a.id
    where a.id > 0
    order by a.n
  loop
    v_message := jsonb_populate_record(v_empty, v_arrived.envelope || v_state);
    v_message.message_id := v_arrived.id;
    v_message.network_message_id := coalesce(v_message.network_message_id, gen_random_uuid());
    v_message.sender := coalesce(v_message.sender, '');
    v_message.priority := coalesce(v_message.priority, 1::smallint);
    if v_message.priority = 0 then
      v_message.priority := parley_mail._p_downgraded(
        v_message.priority, coalesce(v_message.size, v_arrived.bytes), v_message.sender
      );
    end if;
    v_message.received_at := coalesce(v_message.received_at, clock_timestamp());
    v_message.expires_at := coalesce(
      v_message.expires_at, clock_timestamp() + v_expiry[v_message.priority + 1] * interval '1 second'
    );
    v_message.content_id := coalesce((v_arrived.envelope ->> 'content_id')::bigint, v_arrived.content_id);
    -- A reader of the body compares its bytes with this number.
    if v_arrived.bytes is not null then
      v_message.size := v_arrived.bytes;
    elsif v_message.content_id is not null then
      v_message.size := coalesce(
        (select c.bytes from parley_store.contents as c where c.content_id = v_message.content_id), v_message.size
      );
    end if;
    if v_message.has_verp then
      found := parley_mail._p_require_return_paths(v_message.sender);
    end if;
    v_message.subject := left(v_message.subject, 500);
    v_message.receive_ms := greatest(v_message.receive_ms, 0);
    v_message.body := v_arrived.body;
    v_messages := v_messages || v_message;
    v_priorities[v_arrived.n] := v_message.priority;
  end loop;
  insert into parley_mail._p_message select m.* from unnest(v_messages) as m;
  return v_priorities;
end
$$;

comment on function parley_mail._p_insert_arriving(jsonb[], bytea[], bigint[]) is
'Stores messages that arrived under numbers, but those whose number is negative, and gives the priority of each in the
place of its number.
Errors: PM010 return paths that name the recipient are asked for, and the sender can have none.
Source: spec mail 10.';

create function parley_mail._p_accept(
  envelopes jsonb[], bodies bytea[], caller parley.caller default parley.current_caller()
) returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
  v_priorities smallint[];
  v_next record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_mail._p_commit_durably();
  v_ids := parley_mail._p_first_accepted(envelopes, array(
    select coalesce((e.envelope ->> 'message_id')::bigint, nextval('parley_mail._p_message_id'))
    from unnest(envelopes) with ordinality as e (envelope, n)
    order by e.n
  ));
  if exists (select from unnest(v_ids) as i (id) where i.id < 0) then
    -- The rows that were written for a message that is there already are not needed.
    perform parley_store.release_content('mail', array(
      select (e.envelope ->> 'message_id')::bigint
      from unnest(v_ids, envelopes) as e (id, envelope)
      where e.id < 0 and e.envelope ->> 'message_id' is not null
    ));
  end if;
  v_priorities := parley_mail._p_insert_arriving(envelopes, bodies, v_ids);
  for v_next in
    select a.priority, a.envelope ->> 'quarantine' as quarantine, a.envelope #>> '{refusal, status}' as status,
      a.envelope #>> '{refusal, reason}' as reason, array_agg(a.id order by a.n) as ids
    from unnest(v_ids, v_priorities, envelopes) with ordinality as a (id, priority, envelope, n)
    where a.id > 0
    group by 1, 2, 3, 4
  loop
    if v_next.status is not null then
      perform parley_mail._p_refuse(v_next.ids, v_next.status, v_next.reason);
    elsif v_next.quarantine is null then
      perform parley_mail._p_submit(v_next.ids, v_next.priority, null);
    else
      perform parley_mail._p_set_aside(v_next.ids, v_next.quarantine);
    end if;
  end loop;
  return query select abs(i.id) from unnest(v_ids) with ordinality as i (id, n) order by i.n;
end
$$;

comment on function parley_mail._p_accept(jsonb[], bytea[], parley.caller) is
'Accepts messages that arrived, in one transaction, and gives their numbers in the order of the arrays. With the commit
they are ours.
Arguments: envelopes, objects whose fields are columns of _p_message, but what only a submission by SQL says and what
becomes of a message later; bodies, the whole ones, null for one that _p_put_body or _p_begin_body has stored, whose
message_id and content_id stand in the envelope. expires_at: without, by priority. An envelope also has idempotency_key:
a message that was accepted under it before is the same; content_hash, in hexadecimal: what has to be the same under
that key, without: anything; quarantine: why it is set aside for an operator; refusal, of status and reason: why nobody
gets it and its sender a report.
Errors: PM001 the role does not hold SERVE, PM010 the sender can have no return paths that name the recipient, PM011
another message was accepted under the key, 23502 and 23514 malformed.
Source: spec mail 1 (rule 1), 3, 13.';
