-- Views of messages for operators, one by one (spec mail 2, 17): a list by filter and page, and a view of all.

create type parley_mail.waiting_message as (
  message_id bigint,
  queue text,
  status text,
  sender text,
  recipients text[],
  recipient_count integer,
  subject text,
  size bigint,
  priority text,
  source text,
  tag text,
  attempts integer,
  next_attempt_at timestamptz,
  last_error text,
  reason text,
  received_at timestamptz,
  expires_at timestamptz,
  network_message_id uuid,
  header_message_id text,
  parent_message_id bigint,
  submitted_by text,
  bookmark text
);

comment on type parley_mail.waiting_message is
'A message in a queue. status: READY, ACTIVE, RETRY, SUSPENDED, PENDING_SUSPEND, PENDING_REMOVE or SCHEDULED (for
next_attempt_at); recipients, the first 20 of those in this queue; reason, of a suspension; bookmark, for the next page
of a list.';

create function parley_mail._p_unrouted(messages bigint[] default null)
returns table (message_id bigint, status text, next_attempt_at timestamptz)
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  with waiting as (
    select i.id::bigint as id
    from parley.peek_messages('parley_mail_submission', null, caller => parley.current_caller()) as p
    cross join unnest(string_to_array(convert_from(p.body, 'UTF8'), ' ')) as i (id)
    union
    select m.message_id
    from parley_mail._p_message as m
    where not exists (select from parley_mail._p_recipient as r where r.message_id = m.message_id)
      and not exists (select from parley_mail._p_report as r where r.message_id = m.message_id)
      and not exists (select from parley_mail._p_message as f where f.body_message_id = m.message_id)
      and not exists (
        select from parley_mail._p_waiting_item as w where w.queue = 'POISON/-/-' and w.message_id = m.message_id
      )
  )

  select
    w.id,
    case
      when exists (
        select from parley_mail._p_categorizing as c where w.id = any (c.message_ids) and c.begun_at is not null
      ) then 'ACTIVE'
      when m.not_before > clock_timestamp() then 'SCHEDULED'
      else 'READY'
    end,
    case when m.not_before > clock_timestamp() then m.not_before end
  from waiting as w
  join parley_mail._p_message as m on m.message_id = w.id
  where messages is null or w.id = any (messages)
$$;

comment on function parley_mail._p_unrouted(bigint[]) is
'Gives the messages of the submission queue.
Arguments: messages, only these (null: all).';

create function parley_mail._p_listed_messages(filter jsonb, top integer, after_id bigint, after_queue text)
returns setof parley_mail.waiting_message
language plpgsql stable
set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_custom_plan
as $$
declare
  v_filter parley_mail._p_filter := parley_mail._p_parsed_filter(filter);
begin
  return query
  with waiting as (
    select w.message_id, w.queue, w.status, w.attempts, w.next_attempt_at, w.last_error, w.reason,
      coalesce(w.expires_at, m.expires_at) as expires_at
    from parley_mail._p_matching(filter, 'list', null) as w
    join parley_mail._p_message as m using (message_id)
    union all
    select u.message_id, 'SUBMISSION/-/-', u.status, 0, u.next_attempt_at, null, null, m.expires_at
    from parley_mail._p_unrouted(v_filter.messages) as u
    join parley_mail._p_message as m using (message_id)
    where 'submission/-/-' like coalesce(v_filter.queue, '%') escape '!' and not filter ? 'not' and not filter ? 'error'
      and (v_filter.statuses is null or u.status = any (v_filter.statuses))
      and (v_filter.sender is null or lower(m.sender) like v_filter.sender escape '!')
      and (v_filter.subject is null or lower(m.subject) like v_filter.subject escape '!')
      and (v_filter.tag is null or lower(m.tag) like v_filter.tag escape '!')
      and (v_filter.source is null or lower(m.source) like v_filter.source escape '!')
      and (v_filter.priority is null or m.priority = v_filter.priority)
      and (v_filter.before is null or m.received_at < v_filter.before)
      and (v_filter.larger is null or m.size > v_filter.larger)
      and coalesce(v_filter.attempts, 0) = 0
      and (
        v_filter.conditions is null
        or parley_mail._p_is_chosen(parley_mail._p_shown_message(jsonb_populate_record(
          null::parley_mail._p_waiting_item, jsonb_build_object('message_id', u.message_id, 'queue', 'SUBMISSION/-/-',
            'status', u.status, 'attempts', 0, 'next_attempt_at', u.next_attempt_at)
        )), v_filter.conditions, null)
      )
      and (
        v_filter.recipient is null
        or exists (
          select from unnest(m.recipients) as r (address) where lower(r.address) like v_filter.recipient escape '!'
        )
      )
  )

  select
    p.message_id, p.queue, p.status, m.sender, r.addresses[1:20], cardinality(r.addresses), m.subject, m.size,
    (array['HIGH', 'NORMAL', 'LOW'])[m.priority + 1], m.source, m.tag, greatest(p.attempts, r.attempts),
    p.next_attempt_at, coalesce(p.last_error, r.error), p.reason, m.received_at, p.expires_at, m.network_message_id,
    m.header_message_id, m.parent_message_id, parley._p_name_with(m.submitted_by),
    p.message_id || ' ' || p.queue
  from (
    select w.*
    from waiting as w
    where (w.message_id, w.queue collate "C") > (after_id, after_queue collate "C")
    order by w.message_id, w.queue collate "C"
    limit top
  ) as p
  join parley_mail._p_message as m using (message_id)
  cross join lateral (
    select coalesce(array_agg(q.address order by q.ordinal), m.recipients) as addresses, max(q.attempts) as attempts,
      min(concat_ws(' ', q.last_status, q.last_text)) filter (where q.attempts > 0) as error
    from parley_mail._p_recipient as q
    where q.message_id = p.message_id and q.lane = p.queue
  ) as r
  order by p.message_id, p.queue collate "C";
end
$$;

comment on function parley_mail._p_listed_messages(jsonb, integer, bigint, text) is
'Gives messages that a filter matches, the oldest first.
Arguments: filter; top, how many at most; after_id and after_queue, behind this one.
Errors: PM010 malformed filter.';

create function parley_mail.find_messages(
  filter jsonb, top integer default 100, after text default null, sort text default null,
  caller parley.caller default parley.current_caller()
) returns setof parley_mail.waiting_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_sort parley_mail._p_sort;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'VIEW');
  found := parley_mail._p_require_set_up();
  found := parley_mail._p_require_top(top);
  if after !~ '^[0-9]{1,18} .' then
    found := parley_mail._p_raise('bookmark', after);
  elsif sort is not null then
    v_sort := parley_mail._p_parsed_sort(sort, after, parley_mail._p_message_properties());
    return query
    select m.*
    from parley_mail._p_listed_messages(filter, null, 0, '') as m
    order by
      parley_mail._p_sort_number(to_jsonb(m), v_sort) nulls last,
      parley_mail._p_sort_text(to_jsonb(m), v_sort, false) collate "C" nulls last,
      parley_mail._p_sort_text(to_jsonb(m), v_sort, true) collate "C" desc nulls last,
      m.message_id, m.queue collate "C"
    limit top;
    return;
  end if;
  return query
  select m.*
  from parley_mail._p_listed_messages(
    filter, top, coalesce(split_part(after, ' ', 1)::bigint, 0), coalesce(substr(after, strpos(after, ' ') + 1), '')
  ) as m;
end
$$;

comment on function parley_mail.find_messages(jsonb, integer, text, text, parley.caller) is
'Gives messages that wait and that a filter matches, the oldest first; one that waits in several queues for each.
Arguments: filter, an object of conditions as docs/mail/operations.md lists them; top, how many at most; after, the
bookmark of the last one that was seen (null: from the beginning); sort, a column, with :desc behind it for what is last
first: then there is no after, and all that matches is read.
Errors: PM001 not allowed, PM005 mail is not configured, PM010 malformed filter, bookmark or sort.
Source: spec mail 17.';

create function parley_mail._p_messages(caller parley.caller default parley.current_caller())
returns setof parley_mail.waiting_message
language plpgsql stable security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if parley_mail._p_holds(parley.caller_role(caller), 'VIEW') is true
    and exists (select from parley_mail._p_organization as o where o.is_set_up) then
    return query select m.* from parley_mail._p_listed_messages('{}', null, 0, '') as m;
  end if;
end
$$;

comment on function parley_mail._p_messages(parley.caller) is 'Gives what parley_mail.messages shows.';

create view parley_mail.messages as
select m.message_id, m.queue, m.status, m.sender, m.recipients, m.recipient_count, m.subject, m.size, m.priority,
  m.source, m.tag, m.attempts, m.next_attempt_at, m.last_error, m.reason, m.received_at, m.expires_at,
  m.network_message_id, m.header_message_id, m.parent_message_id, m.submitted_by
from parley_mail._p_messages() as m;

comment on view parley_mail.messages is
'Messages that wait, a row for each queue that one waits in, for who holds VIEW. Where there are many,
parley_mail.find_messages gives them by filter and page.
Columns: those of parley_mail.waiting_message.';
