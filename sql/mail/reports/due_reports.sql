-- Reports that are due: which are made when, and how many (spec mail 9).

create table parley_mail._p_report_rate (
  sender text not null,
  hour timestamptz not null,
  reports integer not null,
  primary key (sender, hour)
);

comment on table parley_mail._p_report_rate is 'How many reports each sender got in an hour; rows go after two hours.';

create index _p_report_rate_hour on parley_mail._p_report_rate (hour);

create function parley_mail._p_may_report(message_id bigint, sender text) returns boolean
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_most integer;
  v_sender constant text := coalesce(parley_mail._p_folded(sender), '');
begin
  select coalesce((o.settings ->> 'dsn_rate')::integer, 100) into v_most from parley_mail._p_organization as o;
  insert into parley_mail._p_report_rate as r (sender, hour, reports)
  values (v_sender, date_trunc('hour', clock_timestamp()), 1)
  on conflict on constraint _p_report_rate_pkey do update
  set reports = r.reports + 1 where r.reports < v_most;
  if not found then
    perform parley_mail._p_track(
      array['DROP'], array[_p_may_report.message_id], array[v_sender], null, array['too many reports in an hour'], null,
      array['DSN']
    );
    return false;
  end if;
  return true;
end
$$;

comment on function parley_mail._p_may_report(bigint, text) is
'Counts a report about a message to its sender, or to a return path of it; false when as many went there in this hour as
the setting dsn_rate says.
Source: spec mail 9.';

create function parley_mail._p_returns_whole(action text, sender text, ret text, size bigint) returns boolean
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
begin
  if action <> 'FAILED' or ret = 'HDRS' then
    return false;
  end if;
  return _p_returns_whole.size <= (
    select coalesce((o.settings ->> case
      when exists (
        select
        from parley_mail._p_accepted_domain as a
        where a.domain = any (parley_mail._p_domain_patterns(parley_mail._p_domain_of(_p_returns_whole.sender)))
      ) then 'dsn_return_limit_internal'
      else 'dsn_return_limit_external'
    end)::bigint, 10485760)
    from parley_mail._p_organization as o
  );
end
$$;

comment on function parley_mail._p_returns_whole(text, text, text, bigint) is
'Gives whether a report returns the whole message that it is about, and not the header alone.
Arguments: action; sender and size, of the message; ret, what its sender asked for (null: nothing).
Source: spec mail 9, RFC 3461.';

create function parley_mail._p_due_report(caller parley.caller default parley.current_caller())
returns table (
  message_id bigint, action text, sender text, is_whole boolean, envid text, received_at timestamptz, helo text,
  content_id bigint, body_holder bigint, body bytea, network_message_id uuid, expires_at timestamptz,
  addresses text[], original_recipients text[], statuses text[], codes integer[], reasons text[], hosts text[],
  attempted_at timestamptz[]
)
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  v_due record;
  v_about record;
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  loop
    select p.message_id, p.action, p.ordinal, p.address, p.original_recipient into v_due
    from parley_mail._p_report as p
    where p.due_at <= clock_timestamp()
    order by p.due_at
    limit 1
    for update skip locked;
    if not found then
      return;
    end if;
    -- Recipients that fail one after the other do not make a report each, but where each has a return path of its own.
    select
      case when not m.has_verp then m.reported_at + parley_mail._p_report_window() * (2 ^ least(m.reports, 10)) end
        as next,
      case
        when m.has_verp then parley_mail._p_return_path(
          m.sender, v_due.address, v_due.original_recipient, m.has_utf8_addresses
        )
        else m.sender
      end as sender,
      case when m.has_verp then v_due.ordinal end as ordinal
    into v_about
    from parley_mail._p_message as m
    where m.message_id = v_due.message_id;
    if v_about.next > clock_timestamp() then
      update parley_mail._p_report as p
      set due_at = v_about.next
      where p.message_id = v_due.message_id and p.action = v_due.action;
      continue;
    end if;
    exit when parley_mail._p_may_report(v_due.message_id, v_about.sender);
    delete from parley_mail._p_report as p
    where p.message_id = v_due.message_id and p.action = v_due.action
      and (v_about.ordinal is null or p.ordinal = v_about.ordinal);
    perform parley_mail._p_remove_finished(array[v_due.message_id]);
  end loop;
  return query
  with reported as (
    delete from parley_mail._p_report as p
    where p.message_id = v_due.message_id and p.action = v_due.action
      and (v_about.ordinal is null or p.ordinal = v_about.ordinal)
    returning p.ordinal, p.address, p.original_recipient, p.status, p.code, p.reason, p.host, p.attempted_at
  ),

  together as (
    select
      array_agg(r.address order by r.ordinal) as addresses,
      array_agg(r.original_recipient order by r.ordinal) as original_recipients,
      array_agg(r.status order by r.ordinal) as statuses, array_agg(r.code order by r.ordinal) as codes,
      array_agg(r.reason order by r.ordinal) as reasons, array_agg(r.host order by r.ordinal) as hosts,
      array_agg(r.attempted_at order by r.ordinal) as attempts
    from reported as r
  )

  select
    m.message_id, v_due.action, v_about.sender,
    parley_mail._p_returns_whole(v_due.action, m.sender, m.ret, m.size), m.envid, m.received_at, m.helo, b.content_id,
    b.message_id, b.body, m.network_message_id, m.expires_at, t.addresses, t.original_recipients, t.statuses, t.codes,
    t.reasons, t.hosts, t.attempts
  from parley_mail._p_message as m
  join parley_mail._p_message as b on b.message_id = coalesce(m.body_message_id, m.message_id)
  cross join together as t
  where m.message_id = v_due.message_id;
end
$$;

comment on function parley_mail._p_due_report(parley.caller) is
'Takes a report that is to be made now, with the message that it is about; no row when there is none. is_whole says
whether the message is returned whole. Reports about one message come further apart each time, and those to one sender
are no more than the setting dsn_rate says. Where each recipient has a return path of its own, each has a report of its
own, which goes there. In the same transaction the caller accepts the report as a message and calls _p_finish_report;
after a rollback it is to be made again.
Errors: PM001 the role does not hold SERVE.
Source: spec mail 9.';

create function parley_mail._p_finish_report(message_id bigint, caller parley.caller default parley.current_caller())
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  found := parley_mail._p_require(parley.caller_role(caller), 'SERVE');
  update parley_mail._p_message as m
  set reports = least(m.reports + 1, 10000), reported_at = clock_timestamp()
  where m.message_id = _p_finish_report.message_id;
  perform parley_mail._p_remove_finished(array[message_id]);
end
$$;

comment on function parley_mail._p_finish_report(bigint, parley.caller) is
'Removes the message that a report was about, when nothing else needs it.
Errors: PM001 the role does not hold SERVE.';
