-- Acceptance: messages that arrived come into the database, as many at once as arrived together (spec mail 13).
--
-- The transaction is the group commit of a daemon: each 250 that it gives follows the commit. A body of up to 8,000
-- bytes stands in the row of its message, a larger one is content of parley_store; one that is larger than a daemon
-- keeps in memory was written chunk by chunk before, under the number that _p_begin_body gave.

create type parley_mail._p_arriving as (
  message_id bigint,
  content_id bigint,
  body bytea,
  sender text,
  recipients text[],
  notify text[],
  original_recipients text[],
  ret text,
  envid text,
  priority smallint,
  source text,
  connector text,
  source_ip inet,
  helo text,
  authenticated_as text,
  directionality text,
  size bigint,
  header_message_id text,
  subject text,
  is_eight_bit boolean,
  has_utf8_addresses boolean,
  verdicts jsonb,
  expires_at timestamptz,
  parent_message_id bigint,
  network_message_id uuid,
  received_at timestamptz,
  idempotency_key text,
  quarantine text,
  content_hash text,
  refused_status text,
  refused_reason text,
  server_ip inet,
  receive_ms integer,
  identity uuid,
  has_verp boolean
);

comment on type parley_mail._p_arriving is
'A message that arrived. message_id and content_id are those of _p_begin_body, null where body has the whole of it;
source: SMTP, HTTP, PICKUP, REPLAY or DSN; directionality: INCOMING, or ORIGINATING from a sender of ours; expires_at
null: by priority; parent_message_id, of a report the message that it is about; idempotency_key: a message that was
accepted under it before is the same; quarantine: why it is set aside for an operator, null: it is not; content_hash, in
hexadecimal: with an idempotency key, of what has to be the same under that, null: anything; refused_status and
refused_reason: why nobody gets it and its sender a report, null: it goes on; server_ip, receive_ms, identity and
has_verp: as _p_message has them.';

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

create function parley_mail._p_first_accepted(messages parley_mail._p_arriving[], ids bigint[]) returns bigint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_first bigint;
  v_hash text;
  v_n integer;
begin
  -- In one order, so that two who accept the same ones do not wait for each other.
  for v_n in
    select g.n
    from generate_series(1, cardinality(messages)) as g (n)
    where messages[g.n].idempotency_key is not null
    order by messages[g.n].idempotency_key, g.n
  loop
    insert into parley_mail._p_idempotency (submitted_by, key, content_hash, message_id)
    values (
      0, messages[v_n].idempotency_key, decode(coalesce(messages[v_n].content_hash, ''), 'hex'), ids[v_n]
    )
    on conflict on constraint _p_idempotency_pkey do nothing;
    if not found then
      select k.message_id, encode(k.content_hash, 'hex') into v_first, v_hash
      from parley_mail._p_idempotency as k
      where k.submitted_by = 0 and k.key = messages[v_n].idempotency_key;
      if v_hash <> messages[v_n].content_hash then
        found := parley_mail._p_raise('other content', messages[v_n].idempotency_key, v_first::text);
      end if;
      ids[v_n] := -v_first;
    end if;
  end loop;
  return ids;
end
$$;

comment on function parley_mail._p_first_accepted(parley_mail._p_arriving[], bigint[]) is
'Gives the numbers of messages, and in the place of one that was accepted before under its key the number of that one,
negative.
Errors: PM011 another message was accepted under the key.';

create function parley_mail._p_priorities(messages parley_mail._p_arriving[]) returns smallint[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select case
      when a.priority = 0 then parley_mail._p_downgraded(0::smallint, coalesce(a.size, octet_length(a.body)), a.sender)
      else coalesce(a.priority, 1::smallint)
    end
    from generate_series(1, cardinality(messages)) as g (n)
    cross join lateral (
      select messages[g.n].priority as priority, messages[g.n].size as size, messages[g.n].body as body,
        messages[g.n].sender as sender
    ) as a
    order by g.n
  );
end
$$;

comment on function parley_mail._p_priorities(parley_mail._p_arriving[]) is
'Gives the priorities that messages which arrived may have.
Source: spec mail 10.';

create function parley_mail._p_insert_arriving(
  messages parley_mail._p_arriving[], ids bigint[], priorities smallint[]
) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_large record;
  v_contents bigint[];
  v_expiry integer[];
begin
  select array_agg(i.id order by i.n) as ids, array_agg(messages[i.n].body order by i.n) as bodies into v_large
  from unnest(ids) with ordinality as i (id, n)
  where i.id > 0 and octet_length(messages[i.n].body) > 8000;
  if v_large.ids is not null then
    v_contents := parley_store.put_content('mail', v_large.ids, v_large.bodies);
  end if;
  select o.expiry_seconds into v_expiry from parley_mail._p_organization as o;
  insert into parley_mail._p_message (
    message_id, network_message_id, header_message_id, sender, recipients, notify, original_recipients, ret, envid,
    priority, received_at, expires_at, source, connector, source_ip, helo, authenticated_as, directionality, size,
    content_id, verdicts, parent_message_id, has_utf8_addresses, has_verp, is_eight_bit, subject, server_ip, receive_ms,
    identity, body
  )
  select
    i.id, coalesce(a.network_message_id, gen_random_uuid()), a.header_message_id, coalesce(a.sender, ''), a.recipients,
    a.notify, a.original_recipients, a.ret, a.envid, p.priority, coalesce(a.received_at, clock_timestamp()),
    coalesce(a.expires_at, clock_timestamp() + v_expiry[p.priority + 1] * interval '1 second'),
    a.source, a.connector, a.source_ip, a.helo, a.authenticated_as, coalesce(a.directionality, 'INCOMING'),
    -- A reader of the body compares its bytes with this number.
    coalesce(
      octet_length(a.body), (select c.bytes from parley_store.contents as c where c.content_id = a.content_id), a.size
    ),
    coalesce(a.content_id, l.content_id), a.verdicts, a.parent_message_id,
    coalesce(a.has_utf8_addresses, false),
    case when a.has_verp then parley_mail._p_require_return_paths(coalesce(a.sender, '')) else false end,
    coalesce(a.is_eight_bit, false),
    left(a.subject, 500), a.server_ip, greatest(a.receive_ms, 0), a.identity,
    case when octet_length(a.body) <= 8000 then a.body end
  from unnest(ids) with ordinality as i (id, n)
  cross join lateral (select (messages[i.n]).*) as a
  cross join lateral (select priorities[i.n] as priority) as p
  left join unnest(v_large.ids, v_contents) as l (id, content_id) on l.id = i.id
  where i.id > 0;
end
$$;

comment on function parley_mail._p_insert_arriving(parley_mail._p_arriving[], bigint[], smallint[]) is
'Stores messages that arrived under numbers, but those whose number is negative.
Errors: PM010 return paths that name the recipient are asked for, and the sender can have none.';

create function parley_mail._p_accept(
  messages parley_mail._p_arriving[], caller parley.caller default parley.current_caller()
) returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
  v_priorities smallint[] := parley_mail._p_priorities(messages);
  v_next record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  perform parley_mail._p_commit_durably();
  v_ids := array(
    select coalesce(messages[g.n].message_id, nextval('parley_mail._p_message_id'))
    from generate_series(1, cardinality(messages)) as g (n)
    order by g.n
  );
  v_ids := parley_mail._p_first_accepted(messages, v_ids);
  if exists (select from unnest(v_ids) as i (id) where i.id < 0) then
    -- The rows that were written for a message that is there already are not needed.
    perform parley_store.release_content('mail', array(
      select messages[i.n].message_id
      from unnest(v_ids) with ordinality as i (id, n)
      where i.id < 0 and messages[i.n].message_id is not null
    ));
  end if;
  perform parley_mail._p_insert_arriving(messages, v_ids, v_priorities);
  for v_next in
    select v_priorities[i.n] as priority, messages[i.n].quarantine as quarantine,
      messages[i.n].refused_status as status, messages[i.n].refused_reason as reason,
      array_agg(i.id order by i.n) as ids
    from unnest(v_ids) with ordinality as i (id, n)
    where i.id > 0
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

comment on function parley_mail._p_accept(parley_mail._p_arriving[], parley.caller) is
'Accepts messages that arrived, in one transaction, and gives their numbers in the order of the array. With the commit
they are ours.
Errors: PM001 the role does not hold SERVE, PM010 the sender can have no return paths that name the recipient, 23502 and
23514 malformed.
Source: spec mail 1 (rule 1), 3, 13.';

create function parley_mail._p_accept_envelopes(
  envelopes jsonb[], bodies bytea[], caller parley.caller default parley.current_caller()
) returns setof bigint
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_messages parley_mail._p_arriving[];
  v_message parley_mail._p_arriving;
  v_ids bigint[];
  v_contents bigint[];
  v_large integer := 0;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  -- Large bodies go where they are kept at once: an array of messages that has them is copied again and again.
  v_ids := array(
    select nextval('parley_mail._p_message_id') from unnest(bodies) as b (body) where octet_length(b.body) > 8000
  );
  if v_ids <> '{}' then
    v_contents := parley_store.put_content('mail', v_ids, array(
      select b.body
      from unnest(bodies) with ordinality as b (body, n)
      where octet_length(b.body) > 8000
      order by b.n
    ));
  end if;
  for i in 1..cardinality(envelopes) loop
    v_message := jsonb_populate_record(null::parley_mail._p_arriving, envelopes[i]);
    if octet_length(bodies[i]) > 8000 then
      v_large := v_large + 1;
      v_message.message_id := v_ids[v_large];
      v_message.content_id := v_contents[v_large];
      v_message.size := coalesce(v_message.size, octet_length(bodies[i]));
    else
      v_message.body := bodies[i];
    end if;
    v_messages[i] := v_message;
  end loop;
  return query select a.id from parley_mail._p_accept(v_messages, caller) as a (id);
end
$$;

comment on function parley_mail._p_accept_envelopes(jsonb[], bytea[], parley.caller) is
'Accepts messages as _p_accept does, for programs that have no composite types.
Arguments: envelopes, objects with the fields of _p_arriving; bodies, null for what was written by _p_begin_body.
Errors: PM001 the role does not hold SERVE, 23502 and 23514 malformed.';
