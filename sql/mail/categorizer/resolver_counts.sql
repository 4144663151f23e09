-- The categorizer's own counts, for the counters of the resolver (spec mail 18).
--
-- The counts of a batch are given to the daemon that had it categorized, and written nowhere: nobody waits for a row.
-- Cost: a pass over what was resolved, and a row of the directory for each sender of a batch.

create type parley_mail._p_categorizer_counts as (
  categorized integer,
  failed integer,
  set_aside integer,
  failed_recipients integer,
  loop_recipients integer,
  chipped integer,
  created integer,
  unresolved_recipients integer,
  unresolved_senders integer
);

comment on type parley_mail._p_categorizer_counts is
'The work and the findings of the categorizer, for its counters. categorized, failed and set_aside: messages;
failed_recipients: that it gave up, loop_recipients because forwarding goes in a circle and unresolved_recipients
because the directory does not know an address of ours; chipped and created: messages that were cut, and made;
unresolved_senders: messages of a sender of ours whom the directory does not know.';

create function parley_mail._p_count_resolved(message_ids bigint[], rows parley_mail._p_resolved[])
returns parley_mail._p_categorizer_counts
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  v_counts parley_mail._p_categorizer_counts;
begin
  select
    count(*) filter (where r.status is not null), count(*) filter (where r.status = '5.4.6'),
    count(distinct r.message_id) filter (where r.part > 0),
    count(distinct r.target_id) filter (where r.target_id <> r.message_id),
    count(*) filter (where r.status = '5.1.1')
  into v_counts.failed_recipients, v_counts.loop_recipients, v_counts.chipped, v_counts.created,
    v_counts.unresolved_recipients
  from unnest(rows) as r
  where r.part is not null;
  v_counts.categorized := cardinality(message_ids);
  v_counts.failed := 0;
  v_counts.set_aside := 0;
  -- Of many messages at once few senders are different.
  select coalesce(sum(s.messages), 0) into v_counts.unresolved_senders
  from (
    select parley_mail._p_folded(m.sender) as sender, count(*) as messages
    from parley_mail._p_message as m
    where m.message_id = any (message_ids) and m.sender <> '' and m.source <> 'DSN' and m.resubmissions = 0
    group by parley_mail._p_folded(m.sender)
  ) as s
  where not exists (select from parley_mail._p_directory_entry as d where d.address = s.sender)
    and exists (
      select
      from parley_mail._p_accepted_domain as a
      where a.domain = any (parley_mail._p_domain_patterns(parley_mail._p_domain_of(s.sender)))
        and a.type = 'AUTHORITATIVE'
    );
  return v_counts;
end
$$;

comment on function parley_mail._p_count_resolved(bigint[], parley_mail._p_resolved[]) is
'Counts what the categorizer came upon.
Arguments: message_ids; rows, what became of their recipients.
Source: spec mail 18.';

create function parley_mail._p_sum(one parley_mail._p_categorizer_counts, other parley_mail._p_categorizer_counts)
returns parley_mail._p_categorizer_counts
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select (
    one.categorized + other.categorized, one.failed + other.failed, one.set_aside + other.set_aside,
    one.failed_recipients + other.failed_recipients, one.loop_recipients + other.loop_recipients,
    one.chipped + other.chipped, one.created + other.created,
    one.unresolved_recipients + other.unresolved_recipients, one.unresolved_senders + other.unresolved_senders
  )::parley_mail._p_categorizer_counts
$$;

comment on function parley_mail._p_sum(parley_mail._p_categorizer_counts, parley_mail._p_categorizer_counts) is
'Adds counts.';
