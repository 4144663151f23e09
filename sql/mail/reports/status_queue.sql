-- The reader of parley_mail_status, the queue of the service in whose name mail transport sends: maintenance.
--
-- It gets the ends of conversations, with an error or without, and the answers of services. Each side of a conversation
-- that is over is recorded with its message, and ended after that, so that it does not stay, and the next mail with its
-- key begins another. To end it locks the far side, which its owner can hold for as long as he likes. A conversation
-- that is held is let go of at once and tried again later, so that no owner holds up the rest. Answers reach nobody
-- (docs/mail/services.md); they are removed too. Answers, and errors, behind which there may be mail that nobody has
-- received, are counted by service, for parley diagnose.
--
-- A submitter that wants answers has from_service name a service of its own, whose queue it alone reads.
-- Locks: what RECEIVE locks, where groups that somebody else holds are passed by; rows of _p_unread_reply by their key.
-- Then rows of _p_ended_conversation that nobody holds, and what END CONVERSATION locks.

create table parley_mail._p_unread_reply (
  service text,
  is_error boolean,
  replies bigint not null,
  last_text text,
  last_at timestamptz not null,
  primary key (service, is_error)
);

comment on table parley_mail._p_unread_reply is
'The answers of services on conversations of mail transport, which no program reads, and the errors by which these
ended; kept for a week after the last.';

create table parley_mail._p_ended_conversation (
  conversation_handle uuid primary key,
  tries integer not null default 0,
  due_at timestamptz not null default clock_timestamp()
);

comment on table parley_mail._p_ended_conversation is
'Conversations of mail transport that services have ended, until our side is ended too. tries: how often that could not
be, because somebody held them.';

create index _p_ended_conversation_due on parley_mail._p_ended_conversation (tries, due_at);

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
      insert into parley_mail._p_ended_conversation (conversation_handle)
      values (v_reply.conversation_handle)
      on conflict on constraint _p_ended_conversation_pkey do nothing;
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
'Receives what has come to the service parley_mail/Status, and records which conversations are over; gives how many
messages there were.
Errors: those of RECEIVE.
Source: spec mail 4.3, 12.2.';

create function parley_mail._p_end_conversations(held integer default 50) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
set lock_timeout = '10ms'
as $$
declare
  v_handle uuid;
  v_ended integer := 0;
  v_held integer := 0;
begin
  -- Those that were held before come last, and ever more rarely.
  foreach v_handle in array array(
    select c.conversation_handle
    from parley_mail._p_ended_conversation as c
    where c.due_at <= clock_timestamp()
    order by c.tries, c.due_at
    limit 1000
    for update skip locked
  ) loop
    begin
      if exists (
        select
        from parley.conversation_endpoints as e
        where e.conversation_handle = v_handle and e.state not in ('DO', 'CD')
      ) then
        perform parley.end_conversation(v_handle);
      end if;
      delete from parley_mail._p_ended_conversation as c where c.conversation_handle = v_handle;
      v_ended := v_ended + 1;
    exception
      when others then
        update parley_mail._p_ended_conversation as c
        set tries = c.tries + 1, due_at = clock_timestamp() + interval '1 second' * 2 ^ least(c.tries, 10)
        where c.conversation_handle = v_handle;
        if sqlstate <> '55P03' then
          raise warning 'a conversation that a service has ended cannot be ended: %', sqlerrm;
        end if;
        v_held := v_held + 1;
    end;
    exit when v_held >= held;
  end loop;
  return v_ended;
end
$$;

comment on function parley_mail._p_end_conversations(integer) is
'Ends our side of conversations that services have ended, each for itself; gives how many. One that somebody holds is
tried again later, and takes ten milliseconds.
Arguments: held, after how many that are held it is enough.
Source: spec mail 12.2.';
