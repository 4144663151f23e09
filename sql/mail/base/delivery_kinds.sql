-- The kinds of deliveries: by which ways a message reaches a recipient, as data.
--
-- Where a recipient goes next is a lane of parley_store, KIND/CONNECTOR/NEXT_HOP. Its first word is a row here, and the
-- columns of that row are all that depends on it. Nothing else asks for the first word: a test refuses the name of a
-- kind in other files, but for the whole names of the queues of which there is one, such as POISON/-/-.
-- Cost: one page, which the statements about claims and outcomes join.

create table parley_mail._p_delivery_kind (
  kind text primary key check (kind ~ '^[A-Z][A-Z_]*$'),
  ordinal smallint not null unique,
  system text,
  object_kind text,
  next_hop_is_domain boolean not null default false,
  is_local boolean not null default false,
  tracking_source text,
  keeps_duplicates boolean not null default false,
  connections_setting text,
  first_connections_setting text,
  has_priority_shares boolean not null default false,
  retry_policy text,
  counter text,
  goes_to text not null
);

comment on table parley_mail._p_delivery_kind is
'The kinds of deliveries, the first words of lanes. ordinal: the order in which they are listed; system: the system of
parley_store that has their lanes, null for the submission queue, which is one of the broker; object_kind: the kind of
the object that the second word of a lane names, such as a send connector, null for a kind that has the one queue
KIND/-/-; next_hop_is_domain: the third word is the domain of the recipients; is_local: the message arrives there, so
that mail makes the report of its delivery, names no host in reports, and tracks DELIVER in place of SEND;
tracking_source: of its events, null where nothing is delivered; keeps_duplicates: for as long as the setting
duplicate_window of the object says, a recipient gets no copy of a message that it has; goes_to: the way in words, a
format whose first argument is the object and whose second is the next hop.';
comment on column parley_mail._p_delivery_kind.connections_setting is
'The setting of the object that bounds the connections to a next hop; null: no object sets limits for its lanes.';
comment on column parley_mail._p_delivery_kind.first_connections_setting is
'The setting that says with how many connections a next hop begins; null: with as many as there may be.';
comment on column parley_mail._p_delivery_kind.has_priority_shares is
'Whether the settings high_share, normal_share and low_share say which part of the connections a priority may have.';
comment on column parley_mail._p_delivery_kind.retry_policy is
'The policy of its next hops where neither a retry rule nor the setting retry_policy names one.';
comment on column parley_mail._p_delivery_kind.counter is
'Among which of the counters of queues its lanes are counted: Remote, Mailbox, Non-Smtp, Unreachable or Poison.';

insert into parley_mail._p_delivery_kind (
  kind, ordinal, system, object_kind, next_hop_is_domain, is_local, tracking_source, keeps_duplicates,
  connections_setting, first_connections_setting, has_priority_shares, retry_policy, counter, goes_to
)
values
  ('DNS', 1, 'mail', 'send connector', true, false, 'SMTP', false,
    'max_connections_per_domain', 'initial_connections', true, 'default', 'Remote',
    'the hosts of domain %2$s, by send connector %1$s'),
  ('SMART_HOST', 2, 'mail', 'send connector', false, false, 'SMTP', false,
    'max_connections_per_domain', 'initial_connections', true, 'default', 'Remote',
    'smart host %2$s, by send connector %1$s'),
  ('MAILBOX', 3, 'mail', 'mailbox store', false, true, 'STOREDRIVER', true,
    'max_connections', null, false, 'mail_store', 'Mailbox', 'mailbox store %1$s'),
  ('SERVICE', 4, 'mail_service', 'service binding', false, true, 'STOREDRIVER', false,
    null, null, false, null, 'Non-Smtp', 'service binding %1$s'),
  ('SUBMISSION', 5, null, null, false, false, null, false, null, null, false, null, null, 'the categorizer'),
  ('UNREACHABLE', 6, 'mail', null, false, false, null, false, null, null, false, null, 'Unreachable',
    'nobody: no send connector has its address space; it waits for an operator'),
  ('POISON', 7, 'mail', null, false, false, null, false, null, null, false, null, 'Poison',
    'nobody: it waits for an operator');

create function parley_mail._p_parts_of_lane(lane text) returns table (kind text, connector text, next_hop text)
language sql immutable parallel safe
as $$
  select pg_catalog.split_part(lane, '/', 1), pg_catalog.split_part(lane, '/', 2), pg_catalog.split_part(lane, '/', 3)
$$;

comment on function parley_mail._p_parts_of_lane(text) is
'Takes the name of a lane apart: its kind, a row of parley_mail._p_delivery_kind; its connector, the name of an object;
its next hop. A part that there is not is -, and all are null for null.';

create function parley_mail._p_queue_named(written text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce((
    select k.kind || '/-/-'
    from parley_mail._p_delivery_kind as k
    where k.object_kind is null and upper(written collate "C") in (k.kind, k.kind || '/-/-')
  ), written)
$$;

comment on function parley_mail._p_queue_named(text) is
'Gives the whole name of a queue that an operator writes as its kind alone, such as SUBMISSION, where the kind has one
queue; every other name as it is written.';
