-- Attachments that are stored once and sent many times (spec mail 4.3, attachments by reference).
--
-- put_attachment stores bytes for the role that gives them and names them by their SHA-256; an attachment of send names
-- the hash instead of carrying the bytes. They are taken into the message when it is submitted: what is sent later is
-- in the message, and nothing refers to the stored attachment any more. So it may be removed at any time.
--
-- A hash is looked up among the attachments of its role, and nowhere else. A role that knows or guesses the hash of
-- another's bytes gets the answer for one that does not exist.
--
-- Invariants, and what keeps each:
--   a role has bytes once   the unique key on its number and hash
--   a role has no more than its quota   whoever puts changes the row of his role in _p_attachment_owner before he
--     counts, and the count is a statement of its own: it sees what the holder before has committed. At an older
--     snapshot the change fails with 40001
--   what is sent is what was put   the row is locked for key share until the submission commits, so that nobody removes
--     it in between, and the bytes are counted when they were read
-- The bytes are content of parley_store, of the system mail, whose holder is attachment_id: numbers of messages and of
-- attachments are of one sequence.
-- Locks: putting changes the row of the role, which is held to the end of the transaction: the puts of one role go one
-- after the other. Then a row of _p_attachment; submission has rows of it for key share, in the order of the array;
-- removal deletes one, expiry skips what is locked.

create table parley_mail._p_attachment (
  attachment_id bigint primary key,
  role_number integer not null,
  sha256 bytea not null check (octet_length(sha256) = 32),
  bytes bigint not null,
  content_id bigint,
  put_at timestamptz not null default clock_timestamp(),
  expires_at timestamptz not null,
  unique (role_number, sha256)
);

comment on table parley_mail._p_attachment is
'Attachments that roles have stored, until they expire. content_id is null only within the transaction that puts it.';

create index _p_attachment_expiry on parley_mail._p_attachment (expires_at);

create table parley_mail._p_attachment_owner (
  role_number integer primary key,
  puts bigint not null default 1
);

comment on table parley_mail._p_attachment_owner is
'A row for each role that has stored an attachment, which is locked by who counts what the role has.';
comment on column parley_mail._p_attachment_owner.puts is
'How often it put one: each changes the row, so that one at an older snapshot fails instead of counting too little.';

create function parley_mail._p_stored_bytes_max(role oid) returns bigint
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select q.stored_bytes
    from parley_mail._p_quota as q
    where q.role_number = any (parley._p_numbers_of(_p_stored_bytes_max.role) || 0)
    order by q.role_number desc
    limit 1
  ), 104857600)
$$;

comment on function parley_mail._p_stored_bytes_max(oid) is
'Gives how many bytes of attachments a role may have stored: 100 MB without a quota.';

create function parley_mail.put_attachment(
  content bytea, keep interval default '7 days', caller parley.caller default parley.current_caller()
) returns bytea
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_submitter parley_mail._p_submitter := parley_mail._p_submitter_of(parley.caller_role(caller));
  v_sha256 bytea;
  v_until timestamptz;
  v_id bigint;
  v_stored bigint;
  v_most bigint;
  v_numbers integer[];
begin
  if content is null then
    found := parley_mail._p_raise('nothing to store');
  elsif keep between interval '1 minute' and interval '366 days' is not true then
    found := parley_mail._p_raise('choice', 'keep', coalesce(keep::text, 'null'), '1 minute to 366 days');
  elsif octet_length(content) > v_submitter.max_size then
    found := parley_mail._p_raise(
      'size', octet_length(content)::text, v_submitter.max_size::text, 'max_send_size of the organization'
    );
  end if;
  v_sha256 := sha256(content);
  v_until := clock_timestamp() + keep;
  v_submitter.number := parley._p_number_of(v_submitter.role);
  insert into parley_mail._p_attachment_owner as o (role_number)
  values (v_submitter.number)
  on conflict on constraint _p_attachment_owner_pkey do update
  set puts = o.puts + 1;
  v_numbers := parley._p_numbers_of(v_submitter.role);
  loop
    update parley_mail._p_attachment as a
    set expires_at = greatest(a.expires_at, v_until)
    where a.role_number = any (v_numbers) and a.sha256 = v_sha256;
    exit when found;
    insert into parley_mail._p_attachment as a (attachment_id, role_number, sha256, bytes, expires_at)
    values (nextval('parley_mail._p_message_id'), v_submitter.number, v_sha256, octet_length(content), v_until)
    on conflict (role_number, sha256) do nothing
    returning a.attachment_id into v_id;
    exit when found;
  end loop;
  if v_id is null then
    return v_sha256;
  end if;
  -- Each counts 500 bytes for its row, so that very many small ones count too.
  select sum(a.bytes + 500) into v_stored from parley_mail._p_attachment as a where a.role_number = any (v_numbers);
  v_most := parley_mail._p_stored_bytes_max(v_submitter.role);
  if v_stored > v_most then
    found := parley_mail._p_raise(
      'stored', pg_get_userbyid(v_submitter.role), (v_stored - octet_length(content) - 500)::text, v_most::text
    );
  end if;
  update parley_mail._p_attachment as a
  set content_id = parley_mail._p_stored_content(v_id, content)
  where a.attachment_id = v_id;
  return v_sha256;
end
$$;

comment on function parley_mail.put_attachment(bytea, interval, parley.caller) is
'Stores the bytes of an attachment for the current role, and gives their SHA-256, by which parley_mail.stored_attachment
names them. The same bytes again are stored once, and kept as long as the longest time says. No other role can use them.
Each counts 500 bytes more than it has. Other sessions of the role that store something wait for this transaction.
Arguments: content, of at most max_send_size; keep, for how long, 1 minute to 366 days.
Errors: PM001 the role does not hold SEND, PM010 malformed, PM012 too large, PM013 the role has as much as it may, PM014
resources are short, 40001 at an older snapshot.
Source: spec mail 4.3.';

create function parley_mail.stored_attachment(
  filename text, sha256 bytea, content_type text default null, content_id text default null
) returns parley_mail.attachment
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (a.filename, a.content_type, null, a.content_id, stored_attachment.sha256)::parley_mail.attachment
  from parley_mail.attachment(filename, null, content_type, content_id) as a
$$;

comment on function parley_mail.stored_attachment(text, bytea, text, text) is
'Makes an attachment for parley_mail.send of bytes that the current role has stored.
Arguments: filename, empty for none; sha256, the bytea that parley_mail.put_attachment gave; content_type (null: by the
ending of the name); content_id, under which HTML shows it as cid:...';

create function parley_mail.remove_attachment(sha256 bytea, caller parley.caller default parley.current_caller())
returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_role constant oid := parley.caller_role(caller);
  v_ids bigint[];
begin
  with removed as (
    delete from parley_mail._p_attachment as a
    where a.role_number = any (parley._p_numbers_of(v_role)) and a.sha256 = remove_attachment.sha256
    returning a.attachment_id
  )
  select array_agg(r.attachment_id) into v_ids from removed as r;
  if v_ids is null then
    return false;
  end if;
  perform parley_store.release_content('mail', v_ids);
  return true;
end
$$;

comment on function parley_mail.remove_attachment(bytea, parley.caller) is
'Removes an attachment that the current role has stored; false when it has none of this hash. Messages that were
submitted with it have their own copy. It waits for submissions that are being made with it.
Arguments: sha256, as parley_mail.put_attachment gave it.';

create function parley_mail._p_expire_attachments() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_ids bigint[];
begin
  select array_agg(a.attachment_id) into v_ids
  from (
    select o.attachment_id
    from parley_mail._p_attachment as o
    where o.expires_at < clock_timestamp()
      or o.role_number in (select k.number from parley._p_role_number as k where k.role = 0)
    order by o.attachment_id
    limit 1000
    for update of o skip locked
  ) as a;
  -- A session of a role that was dropped may hold its row.
  delete from parley_mail._p_attachment_owner as o
  where o.role_number in (
    select w.role_number
    from parley_mail._p_attachment_owner as w
    where w.role_number in (select k.number from parley._p_role_number as k where k.role = 0)
    for update skip locked
  );
  if v_ids is null then
    return 0;
  end if;
  -- One that was put again meanwhile stays.
  with expired as (
    delete from parley_mail._p_attachment as a
    where a.attachment_id = any (v_ids)
      and (
        a.expires_at < clock_timestamp()
        or a.role_number in (select k.number from parley._p_role_number as k where k.role = 0)
      )
    returning a.attachment_id
  )
  select array_agg(e.attachment_id) into v_ids from expired as e;
  perform parley_store.release_content('mail', v_ids);
  return coalesce(cardinality(v_ids), 0);
end
$$;

comment on function parley_mail._p_expire_attachments() is
'Removes attachments whose time is over, and those of roles that _p_follow_roles has seen to be gone; gives how many.
An attachment that a submission is taking stays until the next time.';

create function parley_mail._p_with_stored(submitter parley_mail._p_submitter, attachments parley_mail.attachment[])
returns parley_mail.attachment[]
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_attachment parley_mail.attachment;
  v_whole parley_mail.attachment[];
  v_stored record;
  v_number integer := 0;
  v_numbers integer[];
begin
  if not exists (select from unnest(attachments) as a where a.sha256 is not null) then
    return attachments;
  end if;
  v_numbers := parley._p_numbers_of(submitter.role);
  foreach v_attachment in array attachments loop
    v_number := v_number + 1;
    if v_attachment.sha256 is not null then
      if v_attachment.content is not null then
        found := parley_mail._p_raise('attachment', v_number::text, 'It has content and names a stored one.');
      elsif v_attachment.filename is null then
        found := parley_mail._p_raise('attachment', v_number::text, 'Its file name is null; an empty one is none.');
      elsif octet_length(v_attachment.sha256) <> 32 then
        found := parley_mail._p_raise('hash', v_number::text, case
          when encode(v_attachment.sha256, 'escape') ~* '^[0-9a-f]{64}$' then 'It is one in hexadecimal, as text.'
          else format('It has %s bytes, and a SHA-256 has 32.', octet_length(v_attachment.sha256))
        end);
      end if;
      select a.attachment_id, a.content_id into v_stored
      from parley_mail._p_attachment as a
      where a.role_number = any (v_numbers) and a.sha256 = v_attachment.sha256 and a.expires_at > clock_timestamp()
      for key share;
      if not found then
        found := parley_mail._p_raise('not stored', v_number::text, left(encode(v_attachment.sha256, 'hex'), 64));
      end if;
      v_attachment.content := parley_mail._p_read_stored(v_stored.content_id, v_stored.attachment_id);
      v_attachment.sha256 := null;
    end if;
    v_whole := v_whole || v_attachment;
  end loop;
  return v_whole;
end
$$;

comment on function parley_mail._p_with_stored(parley_mail._p_submitter, parley_mail.attachment[]) is
'Gives attachments with the bytes of those that name stored ones, which nobody removes before this transaction ends.
Errors: PM010 malformed, or the role has not stored it, or it has expired; PS010 bytes of it are missing; 40001.';

create function parley_mail._p_stored_attachments(caller parley.caller default parley.current_caller())
returns table (sha256 bytea, bytes bigint, put_at timestamptz, expires_at timestamptz)
language sql stable security definer
set search_path = pg_catalog, pg_temp
as $$
  select a.sha256, a.bytes, a.put_at, a.expires_at
  from parley_mail._p_attachment as a
  where a.role_number = any ((select parley._p_numbers_of(parley.caller_role(caller)))::integer[])
$$;

comment on function parley_mail._p_stored_attachments(parley.caller) is
'Gives what parley_mail.stored_attachments shows.';

create view parley_mail.stored_attachments as
select s.sha256, s.bytes, s.put_at, s.expires_at
from parley_mail._p_stored_attachments() as s;

comment on view parley_mail.stored_attachments is
'Attachments that the current role has stored; nobody else sees them here.';
