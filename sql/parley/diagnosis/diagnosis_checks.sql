-- Diagnosis: what is wrong with the broker, and the statement that cures it (spec 9.4).
--
-- A check is a row of parley.diagnosis_checks and a function _p_find_... that gives findings of that code; one function
-- may give several codes. To add a check, add both: everything else (level, part, number, patience, --ignore, the
-- command line) follows from the row. The functions only read: they lock nothing that others need, and change nothing.
-- Each runs by itself: when one fails the others still report what they find.
-- Cost: that of a read of every conversation and every queue; nothing that sends or receives waits for it.

create type parley.finding as (
  code text,
  level text,
  part text,
  object_kind text,
  object_name text,
  cause text,
  since timestamptz,
  cure text,
  error_number integer
);

comment on type parley.finding is 'A finding of diagnosis: one thing that is wrong with one object.';
comment on column parley.finding.code is 'Which check found it; see parley.diagnosis_checks.';
comment on column parley.finding.level is
'ERROR: something does not work. WARNING: it works, but not for ever or not well. INFO: worth knowing.';
comment on column parley.finding.part is 'CONFIGURATION, RUNTIME, or PROBLEM when a check could not be made.';
comment on column parley.finding.object_kind is 'Such as queue, service, conversation, session or database.';
comment on column parley.finding.object_name is 'Name of the object, as statements take it.';
comment on column parley.finding.cause is 'The fault.';
comment on column parley.finding.since is 'Since when; null when nobody knows.';
comment on column parley.finding.cure is
'The cure, ready to paste: SQL, or a command that begins with parley. Parts to be filled in stand in <>; behind --
stands a hint to think of.';
comment on column parley.finding.error_number is 'Number that Service Broker gives to this, or null.';

-- The objects to check: nulls mean everything.
create type parley._p_scope as (
  from_service text,
  to_service text,
  contract text,
  queue_ids integer[],
  endpoint_ids bigint[],
  patience interval,
  reader oid
);

comment on type parley._p_scope is
'The objects that a check is about, how long things may last before they are wrong, and the role that will read the
findings.';

create view parley.diagnosis_checks as
select c.code, c.part, c.level, c.error_number, c.patience, c.meaning, c.check_function
from (
  values
    ('broker-disabled', 'CONFIGURATION', 'ERROR', 9791, interval '0', '_p_find_broker_state',
      'The broker is disabled in this database.'),
    ('broker-elsewhere', 'CONFIGURATION', 'ERROR', 9776, interval '0', '_p_find_broker_state',
      'The database was restored, copied or moved, and nobody has said which.'),
    ('damaged', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_damage',
      'A definition refers to something that does not exist.'),
    ('sequence-behind', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_sequences_behind',
      'A sequence is behind the rows that have its numbers, as in a copy by logical replication.'),
    ('messages-passed-by', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_sequences_behind',
      'Messages stand before where readers begin, because a sequence was behind when they were sent.'),
    ('rights-lost', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_lost_rights',
      'The grants of the schema are not there, as after a restore without privileges.'),
    ('owner-missing', 'CONFIGURATION', 'ERROR', 15517, interval '0', '_p_find_missing_owners',
      'The owner of an object does not exist any more.'),
    ('autovacuum-off', 'CONFIGURATION', 'WARNING', null, interval '0', '_p_find_autovacuum',
      'Dead rows of the broker are not removed.'),
    ('read-only-default', 'CONFIGURATION', 'ERROR', null, interval '0', '_p_find_settings',
      'Transactions are read-only unless they begin otherwise: nobody sends or receives.'),
    ('isolation-default', 'CONFIGURATION', 'WARNING', null, interval '0', '_p_find_settings',
      'Transactions begin at a level at which they do not see what others commit meanwhile.'),
    ('time-out-short', 'CONFIGURATION', 'WARNING', null, interval '0', '_p_find_settings',
      'A time-out ends sessions that listen, or readers after less than ten seconds.'),
    ('time-out', 'CONFIGURATION', 'INFO', null, interval '0', '_p_find_settings',
      'A time-out ends readers that wait or work for long.'),
    ('service-missing', 'CONFIGURATION', 'ERROR', 9796, interval '0', '_p_find_dialog_faults',
      'A service does not exist in this database.'),
    ('route-missing', 'CONFIGURATION', 'ERROR', 9750, interval '0', '_p_find_missing_routes',
      'No route leads to a service that is wanted.'),
    ('route-expired', 'CONFIGURATION', 'WARNING', 9750, interval '0', '_p_find_route_faults',
      'The route to a service that is wanted has expired.'),
    ('route-to-nowhere', 'CONFIGURATION', 'WARNING', 9796, interval '0', '_p_find_route_faults',
      'A route says that a service is in this server, and this database does not have it.'),
    ('route-to-old-broker', 'CONFIGURATION', 'WARNING', 9795, interval '0', '_p_find_route_faults',
      'A route to a service of this database names another broker instance, as after NEW_BROKER.'),
    ('contract-missing', 'CONFIGURATION', 'ERROR', 8425, interval '0', '_p_find_dialog_faults',
      'A contract does not exist.'),
    ('contract-not-accepted', 'CONFIGURATION', 'ERROR', 8408, interval '0', '_p_find_dialog_faults',
      'The target service does not accept the contract.'),
    ('send-not-permitted', 'CONFIGURATION', 'ERROR', 8494, interval '0', '_p_find_dialog_faults',
      'The owner of the initiating service may not SEND to the target service.'),
    ('queue-off', 'CONFIGURATION', 'ERROR', 9617, interval '0', '_p_find_queues_off', 'A queue is switched off.'),
    ('queue-poisoned', 'CONFIGURATION', 'ERROR', 9617, interval '0', '_p_find_queues_off',
      'Poison message handling has disabled a queue.'),
    ('readers-paused', 'CONFIGURATION', 'WARNING', null, interval '0', '_p_find_queues_off',
      'The readers of a queue are paused.'),
    ('activation-without-readers', 'CONFIGURATION', 'ERROR', 9648, interval '0', '_p_find_activation_faults',
      'Activation is on, but max_queue_readers is 0.'),
    ('activation-procedure-missing', 'CONFIGURATION', 'ERROR', 9706, interval '0', '_p_find_activation_faults',
      'The procedure of activation does not exist, or is none that can be called without arguments.'),
    ('activation-role-missing', 'CONFIGURATION', 'ERROR', 9707, interval '0', '_p_find_activation_faults',
      'The role that activation runs as does not exist.'),
    ('activation-not-permitted', 'CONFIGURATION', 'ERROR', 229, interval '0', '_p_find_activation_faults',
      'The role that activation runs as may not call the procedure, or who set it may not act as that role.'),
    ('receive-not-permitted', 'CONFIGURATION', 'ERROR', 229, interval '0', '_p_find_activation_faults',
      'The role that activation runs as may not RECEIVE from the queue.'),

    ('send-not-granted', 'CONFIGURATION', 'WARNING', 8494, interval '0', '_p_find_security_faults',
      'A dialog comes from another database, and nobody but its owner may SEND to the target service.'),
    ('binding-role-missing', 'CONFIGURATION', 'ERROR', 9728, interval '0', '_p_find_security_faults',
      'The role that stands for a remote service does not exist.'),
    ('binding-certificate-missing', 'CONFIGURATION', 'ERROR', 9731, interval '0', '_p_find_security_faults',
      'The role that stands for a remote service has no certificate that messages can be sealed for.'),
    ('dialog-certificate-missing', 'CONFIGURATION', 'ERROR', 9731, interval '0', '_p_find_security_faults',
      'The owner of an initiating service has no certificate to sign with, and a remote service binding asks for one.'),
    ('endpoint-missing', 'CONFIGURATION', 'ERROR', 29950, interval '0', '_p_find_endpoint_faults',
      'A route leads to another server, and no daemon of this database listens for other servers.'),
    ('peer-not-trusted', 'CONFIGURATION', 'ERROR', 28034, interval '0', '_p_find_endpoint_faults',
      'At the address of a route is a peer that is not trusted.'),
    ('peer-unknown', 'CONFIGURATION', 'WARNING', 28034, interval '0', '_p_find_endpoint_faults',
      'A route leads to another server, and no peer is known that could answer there.'),
    ('certificate-expired', 'CONFIGURATION', 'ERROR', 28023, interval '0', '_p_find_certificate_faults',
      'The certificate of a daemon has expired.'),
    ('certificate-expiring', 'CONFIGURATION', 'WARNING', 28023, interval '0', '_p_find_certificate_faults',
      'The certificate of a daemon expires within 30 days.'),
    ('peer-expired', 'CONFIGURATION', 'ERROR', 28023, interval '0', '_p_find_certificate_faults',
      'The last key of a peer has expired.'),
    ('peer-expiring', 'CONFIGURATION', 'WARNING', 28023, interval '0', '_p_find_certificate_faults',
      'The last key of a peer expires within 30 days.'),
    ('peer-role-missing', 'CONFIGURATION', 'ERROR', 9728, interval '0', '_p_find_certificate_faults',
      'The role that a peer acts as does not exist.'),

    ('no-daemon', 'RUNTIME', 'ERROR', null, interval '0', '_p_find_missing_daemon',
      'Activation is on for some queues, or there are schedules, and no daemon runs.'),
    ('daemon-superuser', 'RUNTIME', 'WARNING', null, interval '0', '_p_find_superuser_daemon',
      'The daemon logs in as a superuser, which code that it runs can take on.'),
    ('queue-full', 'RUNTIME', 'ERROR', 10928, interval '0', '_p_find_full_queues',
      'The quota of a queue is used up; senders are refused.'),
    ('queue-nearly-full', 'RUNTIME', 'WARNING', 10928, interval '0', '_p_find_full_queues',
      'Four fifths of the quota of a queue are used.'),
    ('no-reader', 'RUNTIME', 'ERROR', null, interval '1 minute', '_p_find_unread_queues',
      'Messages wait, and nobody receives from the queue.'),
    ('reader-slow', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_unread_queues',
      'Messages wait although somebody listens on the queue, or activation has as many readers as it may have.'),
    ('reader-failing', 'RUNTIME', 'ERROR', 28087, interval '0', '_p_find_failing_readers',
      'The readers that activation starts fail.'),
    ('schedule-failing', 'RUNTIME', 'ERROR', null, interval '0', '_p_find_failing_schedules',
      'The daemon cannot put the message of a schedule, or the schedule is never due.'),
    ('webhook-secret-plain', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_plain_secrets',
      'The secret of a webhook stands in the database as it is: no daemon with a master key has sealed it.'),
    ('group-held', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_held_groups',
      'A session has held a conversation group for long, and messages wait for it.'),
    ('poison', 'RUNTIME', 'ERROR', null, interval '0', '_p_find_poison',
      'A conversation was set aside because its message always fails.'),
    ('messages-set-aside', 'RUNTIME', 'ERROR', null, interval '0', '_p_find_set_aside_messages',
      'Messages of a simple queue were set aside because they always fail.'),
    ('undeliverable', 'RUNTIME', 'ERROR', null, interval '1 minute', '_p_find_undeliverable',
      'Messages wait in the transmission queue.'),
    ('destination-unreachable', 'RUNTIME', 'ERROR', 9753, interval '1 minute', '_p_find_unreachable_destinations',
      'Another database or server to which messages go cannot be reached.'),
    ('transmission-backlog', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_transmission_backlog',
      'Messages to another database or server wait, although it can be reached.'),
    ('conversation-not-ended', 'RUNTIME', 'WARNING', null, interval '1 hour', '_p_find_leaks',
      'Conversations that the other side has ended, or that have failed, were read to the end and not ended here.'),
    ('conversation-one-way', 'RUNTIME', 'WARNING', null, interval '1 hour', '_p_find_one_way',
      'Dialogs were begun for one message, which was read; nobody answers and nobody ends them.'),
    ('conversation-not-used', 'RUNTIME', 'WARNING', null, interval '1 hour', '_p_find_leaks',
      'Dialogs were begun, and nothing was ever sent.'),
    ('timers-late', 'RUNTIME', 'WARNING', null, interval '10 seconds', '_p_find_late_timers',
      'Timers, ends of lifetimes or messages for later are overdue: nobody fires or sends them.'),
    ('tombstones', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_tombstones',
      'Closed conversations are remembered past their time: nobody fires timers.'),
    ('sender-open', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_open_senders',
      'A transaction that has sent is open for long, and readers of the queue have to scan more than they need.'),
    ('old-snapshot', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_old_snapshots',
      'A session keeps dead rows from being removed.'),
    ('old-slot', 'RUNTIME', 'WARNING', null, interval '5 minutes', '_p_find_old_snapshots',
      'A replication slot that nobody uses keeps dead rows from being removed.'),
    ('old-prepared-transaction', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_prepared_transactions',
      'A prepared transaction keeps its locks, and dead rows from being removed.'),
    ('reader-keeps-snapshot', 'RUNTIME', 'WARNING', null, interval '1 minute', '_p_find_waiting_readers',
      'A session waits for messages inside a statement, and keeps dead rows from being removed.'),
    ('commit-waits-for-standby', 'RUNTIME', 'ERROR', null, interval '1 minute', '_p_find_waiting_commits',
      'Commits wait for a synchronous standby, and nothing that was sent in them is seen.'),
    ('messages-from-the-future', 'RUNTIME', 'WARNING', null, interval '1 second', '_p_find_clock_faults',
      'Messages arrived later than it is now: the clock of the server was set back.')
) as c (code, part, level, error_number, patience, check_function, meaning);

comment on view parley.diagnosis_checks is 'The checks of parley.diagnose_configuration and parley.diagnose_runtime.';
comment on column parley.diagnosis_checks.code is 'Names the check, in findings and in what is ignored.';
comment on column parley.diagnosis_checks.part is 'CONFIGURATION or RUNTIME.';
comment on column parley.diagnosis_checks.level is 'ERROR, WARNING or INFO.';
comment on column parley.diagnosis_checks.error_number is 'Number that Service Broker gives to this, or null.';
comment on column parley.diagnosis_checks.patience is 'For how long it may last before it is a finding.';
comment on column parley.diagnosis_checks.meaning is 'The texts of a finding.';
comment on column parley.diagnosis_checks.check_function is 'Function that checks.';
