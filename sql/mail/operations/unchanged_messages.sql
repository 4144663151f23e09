-- Why an operation on messages that are named by number changes nothing (spec mail 17).

create function parley_mail._p_remedy_of(operation text, message_id bigint, status text, queue text) returns text
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select case
    when status = 'SCHEDULED' then format(
      'It goes at its time; to give it up before: select parley_mail.remove_messages(''{"messages": [%s]}'');',
      message_id
    )
    when queue = 'SUBMISSION/-/-' then
      'It can be when it is categorized; if that is suspended: select parley_mail.resume_queue(''SUBMISSION'');'
    when status = 'PENDING_REMOVE' then 'It was removed, and goes when its attempt has failed.'
    when operation = 'suspend' then 'It is held already.'
    when operation in ('retry', 'resubmit') and status in ('SUSPENDED', 'PENDING_SUSPEND') then format(
      'Let it go on: select parley_mail.resume_messages(''{"messages": [%s]}'');', message_id
    )
    when status = 'ACTIVE' then 'Do it again when its attempt has ended.'
    when operation = 'resubmit' then 'That is for what waits for a retry, or is unreachable.'
    when operation = 'change' then 'It is so already.'
    else format('Nothing holds it. If its queue is suspended: select parley_mail.resume_queue(%L);', queue)
  end
$$;

comment on function parley_mail._p_remedy_of(text, bigint, text, text) is
'Gives what to do about a message to which an operation does nothing.
Arguments: operation; message_id; status and queue of the message.';

create function parley_mail._p_require_changeable(
  operation text, filter jsonb, caller parley.caller default parley.current_caller()
) returns boolean
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_named record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'OPERATE');
  with named as (
    select n.id, n.n
    from unnest((parley_mail._p_parsed_filter(filter)).messages) with ordinality as n (id, n)
  )

  select n.id, w.status, w.queue,
    exists (
      select
      from parley_mail._p_listed_messages(filter, null, 0, '') as m
      where m.message_id = n.id and m.queue = w.queue
    ) as is_chosen
  into v_named
  from named as n
  left join parley_mail._p_listed_messages(
    jsonb_build_object('messages', (select coalesce(jsonb_agg(o.id), '[]') from named as o)), null, 0, ''
  ) as w on w.message_id = n.id
  order by n.n, is_chosen desc, w.queue collate "C"
  limit 1;
  if not found then
    return true;
  elsif v_named.status is null then
    found := parley_mail._p_raise('message', v_named.id::text);
  end if;
  found := parley_mail._p_raise(
    'not changed', v_named.id::text, operation, v_named.status, v_named.queue,
    case
      when v_named.is_chosen then
        parley_mail._p_remedy_of(operation, v_named.id, v_named.status, v_named.queue)
      else 'It does not fulfil the other conditions that were given.'
    end
  );
  return true;
end
$$;

comment on function parley_mail._p_require_changeable(text, jsonb, parley.caller) is
'Says, by an error, why an operation has done nothing to messages that a filter names by number: of the first. True
where it names none.
Arguments: operation: suspend, resume, retry, resubmit, remove or change; filter.
Errors: PM001 not allowed, PM006 no such message, PM010 malformed filter, PM015 the operation is not for it.';
