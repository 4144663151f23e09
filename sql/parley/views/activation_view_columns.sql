-- What the columns of the views of external activation and of event notifications mean;
-- views/view_columns.sql holds the others.

comment on column parley.external_activations.queue_name is 'Queue, as statements take it.';
comment on column parley.external_activations.service_queue_id is 'Identity of the queue.';
comment on column parley.external_activations.kind is 'program or webhook.';
comment on column parley.external_activations.is_enabled is 'Whether anything is started.';
comment on column parley.external_activations.min_instances is 'How many always run; 0 for webhooks.';
comment on column parley.external_activations.max_instances is 'How many run at most; for a webhook, requests at once.';
comment on column parley.external_activations.program is 'Program and its arguments; null for webhooks.';
comment on column parley.external_activations.environment_names is 'Names of the variables that it is given.';
comment on column parley.external_activations.working_directory is 'Where it runs; null is the folder of the program.';
comment on column parley.external_activations.stop_timeout_ms is 'Milliseconds from SIGTERM to SIGKILL.';
comment on column parley.external_activations.url is 'Address of the webhook, without its query; null for programs.';
comment on column parley.external_activations.secret_name is
'Name of the secret, or null; the secret itself is not shown.';
comment on column parley.external_activations.timeout_ms is 'Milliseconds for one request.';
comment on column parley.external_activations.batch_size is 'Messages in one request, at most.';
comment on column parley.external_activations.groups is 'Groups of which one request has messages, at most.';
comment on column parley.external_activations.body_format is 'envelope or raw.';
comment on column parley.external_activations.system_messages is 'Whether EndDialog and Error are delivered too.';
comment on column parley.external_activations.max_attempts is
'Refusals after which a conversation is set aside; 0 is never.';
comment on column parley.external_activations.first_retry_ms is
'Milliseconds that a conversation waits after its first refusal.';
comment on column parley.external_activations.longest_retry_ms is 'Milliseconds that it waits at most.';
comment on column parley.external_activations.create_date is 'When it was created.';
comment on column parley.external_activations.modify_date is 'When it was changed last.';

comment on column parley.delivery_failures.queue_name is 'Queue, as statements take it.';
comment on column parley.delivery_failures.service_queue_id is 'Identity of the queue.';
comment on column parley.delivery_failures.conversation_handle is 'Conversation that waits.';
comment on column parley.delivery_failures.failures is 'How often its delivery has failed in a row, but for
refusals together with other conversations.';
comment on column parley.delivery_failures.attempts is 'How many of these count towards max_attempts.';
comment on column parley.delivery_failures.last_error is 'What was wrong the last time.';
comment on column parley.delivery_failures.first_failed_at is 'When it failed first.';
comment on column parley.delivery_failures.failed_at is 'When it failed last.';
comment on column parley.delivery_failures.retry_at is 'When it is tried again.';
comment on column parley.delivery_failures.last_answer is
'What the web address said then, its first 4,096 characters; null when it said nothing.';

comment on column parley.event_notifications.name is 'Name, one for each queue.';
comment on column parley.event_notifications.object_id is 'Identity of the notification.';
comment on column parley.event_notifications.parent_class is 'Always 1.';
comment on column parley.event_notifications.parent_class_desc is 'Always OBJECT_OR_COLUMN.';
comment on column parley.event_notifications.parent_id is 'Identity of the queue.';
comment on column parley.event_notifications.create_date is 'When it was created.';
comment on column parley.event_notifications.modify_date is 'The same: a notification is never altered.';
comment on column parley.event_notifications.is_ms_shipped is 'Always false.';
comment on column parley.event_notifications.service_name is 'Service that is notified.';
comment on column parley.event_notifications.broker_instance is 'Its database, or null for any.';
comment on column parley.event_notifications.creator_sid is 'Always null: roles have no sid.';
comment on column parley.event_notifications.principal_id is 'Oid of the owner.';
comment on column parley.event_notifications.type_desc is 'QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED.';
comment on column parley.event_notifications.is_fan_in is 'Whether it shares its messages with others like it.';
comment on column parley.event_notifications.conversation_handle is 'Conversation that the messages are sent on.';
comment on column parley.event_notifications.queue_name is 'Queue, as statements take it.';

comment on column parley.events.object_id is 'Identity of the event notification.';
comment on column parley.events.type is '160 or 173.';
comment on column parley.events.type_desc is 'BROKER_QUEUE_DISABLED or QUEUE_ACTIVATION.';
comment on column parley.events.is_trigger_event is 'Always false.';
comment on column parley.events.event_group_type is 'Always null: a notification is of one event.';
comment on column parley.events.event_group_type_desc is 'Always null.';

comment on column parley.server_event_notifications.name is 'Name.';
comment on column parley.server_event_notifications.object_id is 'Identity of the notification.';
comment on column parley.server_event_notifications.parent_class is '100.';
comment on column parley.server_event_notifications.parent_class_desc is 'SERVER.';
comment on column parley.server_event_notifications.parent_id is '0.';
comment on column parley.server_event_notifications.create_date is 'When it was created.';
comment on column parley.server_event_notifications.modify_date is 'The same.';
comment on column parley.server_event_notifications.service_name is 'Service that is notified.';
comment on column parley.server_event_notifications.broker_instance is 'Its database, or null for any.';
comment on column parley.server_event_notifications.creator_sid is 'Null: roles have no sid.';
comment on column parley.server_event_notifications.principal_id is 'Oid of the owner.';
