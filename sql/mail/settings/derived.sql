-- Tables that are derived from what is configured, for what is looked up for each message.
--
-- parley_mail._p_derive writes the rows of one object anew in the transaction that changes it. They are never written
-- otherwise. An address belongs to one object: the primary key holds that, whatever order sessions come in.

create table parley_mail._p_directory_entry (
  address text primary key,
  kind text not null,
  entry text not null,
  store text,
  forward_to text[],
  forwarding text not null default 'NONE',
  max_receive_size bigint,
  internal_senders_only boolean not null default false,
  accept_from text[] not null default '{}',
  reject_from text[] not null default '{}',
  max_send_size bigint,
  max_recipients integer,
  downgrade_high boolean not null default false,
  report_to text,
  manager text
);

comment on table parley_mail._p_directory_entry is
'Each address that the directory knows, in lower case: entry is the primary address of the mailbox or group that it
belongs to, or the target of an alias.';

create index _p_directory_entry_of on parley_mail._p_directory_entry (entry);

create table parley_mail._p_group_member (
  entry text not null,
  member text not null,
  primary key (entry, member)
);

comment on table parley_mail._p_group_member is 'Members of distribution groups, by primary address of the group.';

create table parley_mail._p_accepted_domain (
  domain text primary key,
  type text not null
);

comment on table parley_mail._p_accepted_domain is 'Domains of this organization: d, or *.d for all below d.';

create table parley_mail._p_address_space (
  connector text not null,
  ordinal integer not null,
  type text not null,
  pattern text not null,
  cost integer not null,
  hops integer not null,
  max_message_size bigint not null,
  delivery_kind text not null,
  next_hop text,
  primary key (connector, ordinal)
);

comment on table parley_mail._p_address_space is
'Address spaces of send connectors that are enabled; cost is that of the space and of the connector. delivery_kind: the
setting routing; next_hop is null where it is the domain of the recipient.';

create index _p_address_space_pattern on parley_mail._p_address_space (pattern);

create table parley_mail._p_service_pattern (
  binding text primary key,
  pattern text not null,
  domain text not null,
  service text,
  from_service text,
  contract text not null,
  message_type text not null,
  conversation_key text not null,
  conversation_age integer not null,
  target_table text,
  raw text not null,
  raw_retention integer not null,
  max_size bigint not null,
  author integer not null
);

comment on table parley_mail._p_service_pattern is
'Service bindings: which addresses go to a Parley service or a table of this database. domain is that of the pattern;
author the number of the role that wrote it last, whose rights count when it delivers.';

create index _p_service_pattern_domain on parley_mail._p_service_pattern (domain);

create table parley_mail._p_receive_range (
  connector text not null,
  binding text not null,
  low inet not null,
  high inet not null,
  primary key (connector, binding, low)
);

comment on table parley_mail._p_receive_range is
'Local addresses and remote ranges of receive connectors that are enabled: the smallest range that has a peer wins.';

create function parley_mail._p_text_array(list jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(e.v order by e.n), '{}') from jsonb_array_elements_text(list) with ordinality as e (v, n)
$$;

comment on function parley_mail._p_text_array(jsonb) is 'Gives the texts of a list.';

create function parley_mail._p_folded_array(list jsonb) returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(parley_mail._p_folded(e.v) order by e.n), '{}')
  from jsonb_array_elements_text(list) with ordinality as e (v, n)
$$;

comment on function parley_mail._p_folded_array(jsonb) is
'Gives the addresses and domains of a list in the form in which they are compared.';

create function parley_mail._p_derive_directory(kind text, name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  v_other record;
begin
  select e.address, e.kind, e.entry into v_other
  from parley_mail._p_directory_entry as e
  where e.address = _p_derive_directory.name or settings -> 'aliases' ? e.address
  limit 1;
  if found then
    found := parley_mail._p_raise(
      'conflict', kind, name, format('%s "%s"', v_other.kind, v_other.entry),
      format('Both have the address %s.', v_other.address),
      'An address belongs to one object: take it from one of them.'
    );
  end if;
  insert into parley_mail._p_directory_entry (
    address, kind, entry, store, forward_to, forwarding, max_receive_size, internal_senders_only, accept_from,
    reject_from, max_send_size, max_recipients, downgrade_high, report_to, manager
  )
  select a.address, _p_derive_directory.kind,
    coalesce(parley_mail._p_folded(settings ->> 'target'), _p_derive_directory.name),
    settings ->> 'store', parley_mail._p_text_array(settings -> 'forward_to'),
    coalesce(settings ->> 'forwarding', 'NONE'), (settings ->> 'max_receive_size')::bigint,
    coalesce((settings ->> 'internal_senders_only')::boolean, false),
    parley_mail._p_folded_array(settings -> 'accept_from'), parley_mail._p_folded_array(settings -> 'reject_from'),
    (settings ->> 'max_send_size')::bigint, (settings ->> 'max_recipients')::integer,
    coalesce((settings ->> 'downgrade_high')::boolean, false), settings ->> 'report_to', settings ->> 'manager'
  from (
    select _p_derive_directory.name as address
    union
    select jsonb_array_elements_text(settings -> 'aliases')
  ) as a;
  insert into parley_mail._p_group_member (entry, member)
  select distinct _p_derive_directory.name, m.member
  from jsonb_array_elements_text(settings -> 'members') as m (member);
end
$$;

comment on function parley_mail._p_derive_directory(text, text, jsonb) is
'Writes the addresses of a mailbox, a distribution group or an alias, and the members of a group.
Errors: PM003 an address that another object has.';

create function parley_mail._p_derive_connector(name text, settings jsonb) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  insert into parley_mail._p_address_space (
    connector, ordinal, type, pattern, cost, hops, max_message_size, delivery_kind, next_hop
  )
  select _p_derive_connector.name, s.n, upper(coalesce(s.v ->> 'type', 'SMTP') collate "C"),
    parley_mail._p_folded(s.v ->> 'pattern'),
    coalesce((s.v ->> 'cost')::integer, 1) + (settings ->> 'cost')::integer, (settings ->> 'hops')::integer,
    (settings ->> 'max_message_size')::bigint,
    k.kind,
    case when not k.next_hop_is_domain then (
      select string_agg(h.v ->> 'host' || coalesce(':' || (h.v ->> 'port'), ''), ',' order by h.n)
      from jsonb_array_elements(settings -> 'smart_hosts') with ordinality as h (v, n)
    ) end
  from jsonb_array_elements(settings -> 'address_spaces') with ordinality as s (v, n)
  join parley_mail._p_delivery_kind as k on k.kind = settings ->> 'routing'
  where (settings ->> 'enabled')::boolean;
end
$$;

comment on function parley_mail._p_derive_connector(text, jsonb) is 'Writes the address spaces of a send connector.';

create function parley_mail._p_derive(kind text, name text, settings jsonb, author oid) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if kind in ('mailbox', 'distribution group', 'alias') then
    perform parley_mail._p_derive_directory(kind, name, settings);
  elsif kind = 'send connector' then
    perform parley_mail._p_derive_connector(name, settings);
    perform parley_mail._p_derive_rates(name, settings);
  elsif kind = 'accepted domain' then
    insert into parley_mail._p_accepted_domain (domain, type) values (_p_derive.name, settings ->> 'type');
  elsif kind = 'service binding' then
    insert into parley_mail._p_service_pattern (
      binding, pattern, domain, service, from_service, contract, message_type, conversation_key, conversation_age,
      target_table, raw, raw_retention, max_size, author
    )
    values (
      _p_derive.name, parley_mail._p_folded(settings ->> 'pattern'), parley_mail._p_domain_of(settings ->> 'pattern'),
      settings ->> 'service', settings ->> 'from_service', settings ->> 'contract', settings ->> 'message_type',
      settings ->> 'conversation_key', (settings ->> 'conversation_age')::integer, settings ->> 'table',
      settings ->> 'raw', (settings ->> 'raw_retention')::integer,
      (settings ->> 'max_size')::bigint, parley._p_number_of(_p_derive.author)
    );
  elsif kind = 'receive connector' and (settings ->> 'enabled')::boolean then
    insert into parley_mail._p_receive_range (connector, binding, low, high)
    select distinct _p_derive.name, b.binding, r.range[1], r.range[2]
    from jsonb_array_elements_text(settings -> 'bindings') as b (binding)
    cross join (
      select parley_mail._p_range(w.written) as range
      from jsonb_array_elements_text(settings -> 'remote_ranges') as w (written)
    ) as r
    on conflict do nothing;
  elsif kind = 'organization' then
    update parley_mail._p_organization as o
    set settings = _p_derive.settings,
      default_domain = _p_derive.settings ->> 'default_domain',
      max_send_size = (_p_derive.settings ->> 'max_send_size')::bigint,
      max_recipients = (_p_derive.settings ->> 'max_recipients')::integer,
      expiry_seconds = array[
        (_p_derive.settings ->> 'expiry_high')::integer, (_p_derive.settings ->> 'expiry')::integer,
        (_p_derive.settings ->> 'expiry_low')::integer
      ],
      max_high_priority_size = (_p_derive.settings ->> 'max_high_priority_size')::bigint;
  end if;
end
$$;

comment on function parley_mail._p_derive(text, text, jsonb, oid) is
'Writes the rows that are derived from one object; parley_mail._p_forget_derived has removed the old ones.
Arguments: kind, name; settings, all of them, with defaults; author, the role that writes them.';

create function parley_mail._p_forget_derived(kind text, name text) returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from parley_mail._p_directory_entry as e
  where e.kind = _p_forget_derived.kind
    and case _p_forget_derived.kind when 'alias' then e.address else e.entry end = _p_forget_derived.name;
  delete from parley_mail._p_group_member as m
  where kind = 'distribution group' and m.entry = _p_forget_derived.name;
  delete from parley_mail._p_address_space as s where kind = 'send connector' and s.connector = _p_forget_derived.name;
  delete from parley_mail._p_rate as r where kind = 'send connector' and r.connector = _p_forget_derived.name;
  delete from parley_mail._p_accepted_domain as d where kind = 'accepted domain' and d.domain = _p_forget_derived.name;
  delete from parley_mail._p_service_pattern as p where kind = 'service binding' and p.binding = _p_forget_derived.name;
  delete from parley_mail._p_receive_range as r
  where kind = 'receive connector' and r.connector = _p_forget_derived.name;
end
$$;

comment on function parley_mail._p_forget_derived(text, text) is 'Removes the rows that are derived from one object.';
