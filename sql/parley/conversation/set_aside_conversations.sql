-- The conversations that fail: which are set aside, and the last error of each.
--
-- A row of _p_set_aside says that RECEIVE passes a side of a conversation by (spec 5.6; docs/reference/differences.md).
-- Its messages leave the lanes of the queue for one of their own, and keep their positions; see poison/set_aside.sql.
-- Both tables have few rows, and are read only for conversations that are not plain, or after a failure.

create table parley._p_set_aside (
  endpoint_id bigint primary key,
  service_id integer not null,
  position bigint not null,
  moved_position bigint not null,
  rollbacks integer not null,
  set_aside_at timestamptz not null default clock_timestamp(),
  set_aside_by xid8 not null default pg_current_xact_id(),
  -- Until when it waits for another attempt (conversation/put_back.sql); null when it is poisonous.
  retry_at timestamptz
);

create index on parley._p_set_aside (set_aside_at);
create index on parley._p_set_aside (service_id);

comment on table parley._p_set_aside is
'Sides of conversations that are set aside, or wait for another attempt until retry_at. Their messages before
moved_position have left the lanes of the queue.';

create table parley._p_failure (
  endpoint_id bigint primary key,
  failed_at timestamptz not null,
  sqlstate text,
  error text not null,
  answer text,
  answered_at timestamptz
);

comment on table parley._p_failure is
'The last error that a reader of a conversation reported (parley.record_failure). Rows of endpoints that are
gone are removed a little later.';
comment on column parley._p_failure.answer is
'With what text a receiver outside of the database refused (parley.fail_delivery), at answered_at. It is that of this
error if both are of one time.';

create table parley._p_delivery_failure (
  endpoint_id bigint primary key,
  queue_id integer not null references parley._p_queue on delete cascade,
  conversation_handle uuid not null,
  failures integer not null,
  attempts integer not null,
  last_error text not null,
  first_failed_at timestamptz not null,
  failed_at timestamptz not null,
  retry_at timestamptz not null
);

comment on table parley._p_delivery_failure is
'Conversations whose next message was delivered and not accepted: not before retry_at.';

create index on parley._p_delivery_failure (queue_id);
