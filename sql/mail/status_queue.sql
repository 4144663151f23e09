-- The reader of parley_mail_status, the queue of the service in whose name mail transport sends: maintenance.
--
-- What comes there is the end of a conversation, with an error or without, and what a service answers. Each side of a
-- conversation that is over is ended here, so that neither it nor its message stays, and the next mail with its key
-- begins another. Answers reach nobody (docs/mail-services.md); they are removed too. Answers, and errors, behind which
-- there may be mail that nobody has received, are counted by service, for parley diagnose.
--
-- Whoever wants answers has from_service name a service of his own, whose queue nobody reads but he.
-- Locks: what RECEIVE and END CONVERSATION lock, where groups that somebody else holds are passed by; then rows of
-- _p_unread_reply by their key.

create table parley_mail._p_unread_reply (
  service text,
  is_error boolean,
  replies bigint not null,
  last_text text,
  last_at timestamptz not null,
  primary key (service, is_error)
);

comment on table parley_mail._p_unread_reply is
'What services have answered on conversations of mail transport, which nobody reads, and the errors by which these
ended; for a week after the last.';

create function parley_mail._p_receive_replies() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_reply record;
  v_done integer := 0;
  v_services text[] := array[]::text[];
  v_errors text[] := array[]::text[];
begin
  for v_reply in
    select r.conversation_handle,
      case r.message_type_name
        when 'http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog' then 'END'
        when 'http://schemas.microsoft.com/SQL/ServiceBroker/Error' then 'ERROR'
        else 'ANSWER'
      end as kind,
      r.message_body
    from parley.receive('parley_mail_status', 1000, groups => 1000, caller => parley.current_caller()) as r
  loop
    v_done := v_done + 1;
    if v_reply.kind <> 'END' then
      v_services := v_services || (
        select e.far_service
        from parley.conversation_endpoints as e
        where e.conversation_handle = v_reply.conversation_handle
      );
      v_errors := v_errors || case
        when v_reply.kind = 'ERROR'
          then coalesce(substring(encode(v_reply.message_body, 'escape') from '<Description>([^<]*)'), '')
      end;
    end if;
    if v_reply.kind <> 'ANSWER' then
      perform parley.end_conversation(v_reply.conversation_handle);
    end if;
  end loop;
  -- In one order: other daemons do the same.
  insert into parley_mail._p_unread_reply as u (service, is_error, replies, last_text, last_at)
  select a.service, a.error is not null, count(*), max(a.error), clock_timestamp()
  from unnest(v_services, v_errors) as a (service, error)
  where a.service is not null
  group by 1, 2
  order by 1, 2
  on conflict on constraint _p_unread_reply_pkey do update
  set replies = u.replies + excluded.replies, last_text = excluded.last_text, last_at = excluded.last_at;
  delete from parley_mail._p_unread_reply as u where u.last_at < clock_timestamp() - interval '7 days';
  return v_done;
end
$$;

comment on function parley_mail._p_receive_replies() is
'Receives what has come to the service parley_mail/Status, and ends its side of the conversations that are over; gives
how many messages there were.
Errors: those of RECEIVE and END CONVERSATION.
Source: spec mail 4.3, 12.2.';

create function parley_mail._p_read_status_queue() returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  return parley_mail._p_receive_replies();
exception
  when transaction_rollback or insufficient_resources or operator_intervention or system_error then
    raise;
  when others then
    -- A queue that is off keeps nothing else from being maintained.
    raise warning 'the queue parley_mail_status cannot be read: %', sqlerrm;
    return 0;
end
$$;

comment on function parley_mail._p_read_status_queue() is
'Does what _p_receive_replies does, or raises a warning where that cannot be.';
