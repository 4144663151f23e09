-- The outcomes of a message, sent to the Parley service that its submitter named, in the transaction of the outcome.

create function parley_mail._p_send_status(
  events text[], message_ids bigint[], addresses text[], statuses text[], texts text[]
) returns integer
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_event record;
  v_sent integer := 0;
begin
  for v_event in
    select m.message_id, m.parent_message_id, m.on_status, m.tag, u.status,
      -- The address that the submitter wrote: groups, aliases and forwarding are none of his business.
      case
        when w.is_written then u.address
        else (
          select regexp_replace(e.fields ->> 'text', '^(rfc822|utf-8);', '')
          from parley_store.tracking as e
          where e.system = 'mail' and e.message_id = m.message_id::text and u.address = any (e.recipients)
            and e.event in ('RESOLVE', 'EXPAND', 'REDIRECT', 'DUPLICATEEXPAND', 'DUPLICATEREDIRECT')
          limit 1
        )
      end as address,
      case when w.is_written then u.reason end as reason,
      case
        when u.event in ('FAIL', 'DELIVERFAIL') then 'FAILED'
        when u.event in ('DEFER', 'UNKNOWN') then 'DEFERRED'
        else 'DELIVERED'
      end as event
    from unnest(events, message_ids, addresses, statuses, texts) with ordinality
      as u (event, message_id, address, status, reason, n)
    join parley_mail._p_message as m using (message_id)
    cross join lateral (
      select exists (
        select
        from parley_mail._p_message as p
        where p.message_id in (m.message_id, m.parent_message_id) and u.address = any (p.recipients)
      ) as is_written
    ) as w
    where u.event in ('SEND', 'DELIVER', 'DUPLICATEDELIVER', 'FAIL', 'DELIVERFAIL', 'DEFER', 'UNKNOWN')
      and m.on_status is not null
    order by u.n
  loop
    begin
      perform parley.send(
        parley.get_conversation(
          'parley_mail/Status', v_event.on_status, 'parley_mail/Status', caller => parley.current_caller()
        ),
        'parley_mail/Status',
        jsonb_build_object(
          'event', v_event.event, 'message_id', coalesce(v_event.parent_message_id, v_event.message_id),
          'recipient', v_event.address, 'status', v_event.status, 'text', v_event.reason, 'tag', v_event.tag,
          'at', clock_timestamp()
        )
      );
      v_sent := v_sent + 1;
    exception
      when transaction_rollback or insufficient_resources or operator_intervention or system_error then
        raise;
      when others then
        -- A service that is gone holds up no mail.
        raise warning 'the status of message % cannot be sent to service "%": %', v_event.message_id,
          v_event.on_status, sqlerrm;
    end;
  end loop;
  return v_sent;
end
$$;

comment on function parley_mail._p_send_status(text[], bigint[], text[], text[], text[]) is
'Sends status events of messages whose submitter wants them; gives how many. An event that cannot be sent is a warning
in the log of the server: mail does not wait for it.
Arguments: those of _p_track.
Source: spec mail 4.3.';
