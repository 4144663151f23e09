-- Messages: one row each, written when the message is accepted and hardly changed after that.
--
-- A row carries the envelope as it came: its recipients, before they are resolved, stand in arrays. The categorizer
-- makes rows of _p_recipient of them (messages/recipients.sql). A body of up to 8,000 bytes stands in the row, so that
-- accepting a small message is one insert; a larger one is content of parley_store, to which the message refers under
-- its own number. A fork has no body: body_message_id names the message whose body it shares, whose row stays as long.
--
-- That a message waits to be categorized is an item of the simple queue parley_mail_submission, which names one or
-- several: the categorizer takes it in the transaction in which it writes what it decided.
--
-- A column is one of the envelope or one of the state. A column of the envelope goes from the JSON of a daemon into the
-- row (arrival/accept.sql) and into forks (categorizer/categorize.sql), and neither names it. A column of the state is
-- named in _p_initial_state.
--
-- Invariants, and what keeps each:
--   what was committed is categorized   message and item are written in one transaction
--   a body is never changed   nothing updates it; retries send the same bytes

create sequence parley_mail._p_message_id cache 8;

create table parley_mail._p_message (
  message_id bigint primary key,
  network_message_id uuid not null,
  header_message_id text,
  sender text not null,
  recipients text[] not null,
  notify text[],
  original_recipients text[],
  ret text check (ret in ('FULL', 'HDRS')),
  envid text,
  priority smallint not null default 1 check (priority between 0 and 2),
  received_at timestamptz not null default clock_timestamp(),
  not_before timestamptz,
  expires_at timestamptz not null,
  source text not null,
  connector text,
  source_ip inet,
  server_ip inet,
  receive_ms integer,
  identity uuid,
  helo text,
  authenticated_as text,
  submitted_by integer,
  directionality text not null,
  size bigint not null,
  content_id bigint,
  body_message_id bigint,
  verdicts jsonb,
  parent_message_id bigint,
  has_utf8_addresses boolean not null default false,
  has_verp boolean not null default false,
  crash_count smallint not null default 0,
  on_status text,
  tag text,
  subject text,
  body bytea,
  is_eight_bit boolean not null default false,
  delay_reported_at timestamptz,
  is_resubmitted boolean not null default false,
  resubmissions smallint not null default 0,
  reports smallint not null default 0,
  reported_at timestamptz
) with (toast_tuple_target = 8160);

comment on table parley_mail._p_message is
'Messages that are under way. sender: the empty text is the null sender; recipients, notify and original_recipients: the
envelope as it came; priority: 0 high, 1 normal, 2 low; source: SMTP, SQL, HTTP, PICKUP, REPLAY, DSN;
directionality: ORIGINATING where it was submitted here by somebody of ours, INCOMING otherwise, and only what
originates here is signed (no default: whoever stores a message says which); server_ip: the address of ours at which it
came; receive_ms: how long its arrival took; body_message_id: the message
whose body this one shares; parent_message_id: the message that it was forked from, or submitted with; identity: what
two copies of a message that arrived twice have in common; has_verp: each recipient has a return path of its own;
submitted_by: the number of the role (base/role_numbers.sql); delay_reported_at: when the sender was informed of a
delay; is_resubmitted: recipients were added that are to be categorized anew (submission/submitted_again.sql), and
resubmissions, how often that was so; reports: how many reports were made of the message, the last at reported_at.';

alter table parley_mail._p_message alter column body set storage external;

create index _p_message_submitted on parley_mail._p_message (submitted_by, message_id) where submitted_by is not null;
create index _p_message_parent on parley_mail._p_message (parent_message_id) where parent_message_id is not null;
create index _p_message_body on parley_mail._p_message (body_message_id) where body_message_id is not null;
create index _p_message_undelayed on parley_mail._p_message (priority, received_at) where delay_reported_at is null;

create function parley_mail._p_initial_state() returns jsonb
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb '{
    "content_id": null, "body_message_id": null, "body": null, "crash_count": 0, "delay_reported_at": null,
    "is_resubmitted": false, "resubmissions": 0, "reports": 0, "reported_at": null
  }'
$$;

comment on function parley_mail._p_initial_state() is
'Gives what a message has that is no envelope: where its body is, and what became of it. So it is with a message that
arrives and with a fork, which has all else of its parent.';

create function parley_mail._p_empty_message() returns parley_mail._p_message
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_populate_record(null::parley_mail._p_message, parley_mail._p_initial_state() || '{
    "sender": "", "priority": 1, "directionality": "INCOMING", "has_utf8_addresses": false, "has_verp": false,
    "is_eight_bit": false
  }')
$$;

comment on function parley_mail._p_empty_message() is
'Gives a message of which an envelope says nothing: what every message has, where that has no null.';

create function parley_mail._p_envelope_text(message parley_mail._p_message, receivers text) returns text
language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select 'X-Sender: <' || message.sender || '>' || case when message.is_eight_bit then ' BODY=8BITMIME' else '' end
    || case when message.has_utf8_addresses then ' SMTPUTF8' else '' end
    || coalesce(' RET=' || message.ret, '') || coalesce(' ENVID=' || parley_mail._p_xtext(message.envid), '')
    || case when message.has_verp then ' XVERP' else '' end || E'\r\n'
    || receivers
    || E'X-CreatedBy: Parley\r\n'
    || coalesce('X-HeloDomain: ' || substring(message.helo from E'^[!-~]+$') || E'\r\n', '')
    || coalesce('X-SourceIPAddress: ' || host(message.source_ip) || E'\r\n', '')
    || 'X-Source: ' || message.source || E'\r\n'
    || 'X-Directionality: ' || message.directionality || E'\r\n'
    || E'X-EndOfInjectedXHeaders: 1\r\n'
$$;

comment on function parley_mail._p_envelope_text(parley_mail._p_message, text) is
'Gives an envelope as the fields with which a file of the replay folder begins; internal/mail/message reads them.
Arguments: message; receivers, the fields of its recipients, each with the end of its line.
Source: spec mail 4.2.';

create table parley_mail._p_idempotency (
  submitted_by integer not null,
  key text not null,
  content_hash bytea not null,
  message_id bigint not null,
  at timestamptz not null default clock_timestamp(),
  primary key (submitted_by, key)
);

comment on table parley_mail._p_idempotency is
'Keys under which roles, by their numbers, have submitted messages, and daemons (0) accepted some, for as long as the
setting idempotency_retention says: a second message of one key is the first one, or refused.';

create index _p_idempotency_at on parley_mail._p_idempotency (at);

create table parley_mail._p_submitted (
  submitted_by integer not null,
  at timestamptz not null default clock_timestamp(),
  messages integer not null,
  bytes bigint not null
);

comment on table parley_mail._p_submitted is
'The submissions of the last minutes of roles that have a quota. Appended to, so that sessions of a role do not wait
for each other; what others have not committed yet is not counted, so that what is under way at once may pass a quota.';

alter table parley_mail._p_submitted replica identity full;

create index _p_submitted_at on parley_mail._p_submitted (submitted_by, at);
