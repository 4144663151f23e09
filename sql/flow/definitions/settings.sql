-- The language of definitions: kinds of objects, their settings, the properties and pipelines that are built in.
--
-- Data alone: flow/definitions/check.sql holds definitions to it, and the JSON Schema for editors is made from it.

create function parley_flow._p_kinds() returns text[]
language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select array[
    'application', 'host', 'property schema', 'message type', 'pipeline', 'retry policy', 'receive port',
    'receive location', 'send port', 'send port group', 'orchestration'
  ]
$$;

comment on function parley_flow._p_kinds() is
'The kinds of objects, in an order in which each refers to those before it.';

create view parley_flow.setting_definitions as
select d.kind, d.setting, d.type, d.is_required, d.default_value::jsonb as default_value, d.lowest, d.highest,
  d.choices, d.refers_to, d.description
from (values
  ('application', 'description', 'text', false, null, null, null, null::text[], null, 'For people.'),
  ('application', 'keep_finished', 'interval', false, '"0 seconds"', '0 seconds', '10 years', null, null,
    'How long messages stay after their last delivery.'),
  ('application', 'tracking', 'boolean', false, 'true', null, null, null, null,
    'Whether what happens to its messages is tracked.'),
  ('host', 'role', 'role', true, null, null, null, null, null,
    'The role of PostgreSQL whose members may serve the host.'),
  ('host', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('host', 'in_process_per_cpu', 'integer', false, '1000', '1', '100000', null, null,
    'How many messages a node may have in its hands for each of its processors.'),
  ('host', 'publishing_throttling', 'choice', false, '"auto"', null, null, '{auto,force,never}', null,
    'Whether intake is throttled: under pressure, always, or never.'),
  ('host', 'correlation_throttling', 'choice', false, '"auto"', null, null, '{auto,force,never}', null,
    'Whether locations that bring correlations are throttled: when memory is short, always, or never.'),
  ('host', 'delivery_throttling', 'choice', false, '"auto"', null, null, '{auto,force,never}', null,
    'Whether claims of what is to be sent are throttled: under pressure, always, or never.'),
  ('property schema', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('property schema', 'properties', 'properties', true, null, null, null, null, null,
    'Properties of this namespace by their names, each {"type", "tracked", "sensitive", "description"}.'),
  ('message type', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('message type', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('message type', 'format', 'choice', false, '"xml"', null, null, '{xml,json,flat,binary}', null,
    'The form in which messages of it are in the box.'),
  ('message type', 'schema', 'object', false, null, null, null, null, null,
    'Its schema, such as {"file": "schemas/order.xsd"}; parley flow apply adds the texts of its files as documents.'),
  ('message type', 'promotions', 'promotions', false, '{}', null, null, null, null,
    'Paths of the values that are promoted, by property.'),
  ('message type', 'written', 'promotions', false, '{}', null, null, null, null,
    'Paths of the values that are written, by property.'),
  ('pipeline', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('pipeline', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('pipeline', 'direction', 'choice', true, null, null, null, '{receive,send}', null, 'Where it runs.'),
  ('pipeline', 'stages', 'stages', true, null, null, null, null, null,
    'Components by stage: decode, disassemble, validate, resolve_party; or pre_assemble, assemble, encode.'),
  ('retry policy', 'count', 'integer', false, '3', '0', '1000', null, null, 'How many times a message is tried again.'),
  ('retry policy', 'interval', 'interval', false, '"5 minutes"', '1 second', '365 days', null, null,
    'How long after the first failure.'),
  ('retry policy', 'factor', 'number', false, '1', '1', '100', null, null,
    'The factor by which each interval is multiplied for the next one.'),
  ('retry policy', 'max_interval', 'interval', false, '"1 day"', '1 second', '365 days', null, null,
    'No interval becomes longer.'),
  ('retry policy', 'jitter', 'number', false, '0.15', '0', '1', null, null,
    'Up to which part an interval is shorter or longer.'),
  ('receive port', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('receive port', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('receive port', 'failed_message_routing', 'boolean', false, 'false', null, null, null, null,
    'Whether what fails is published with ErrorReport properties, instead of being suspended.'),
  ('receive port', 'responds', 'boolean', false, 'false', null, null, null, null,
    'Whether clients of its locations wait for an answer, which comes through the box.'),
  ('receive port', 'response_pipeline', 'reference', false, '"PassThruTransmit"', null, null, null, 'pipeline',
    'The pipeline of answers on their way to clients.'),
  ('receive port', 'response_timeout', 'interval', false, '"20 seconds"', '1 second', '20 minutes', null, null,
    'How long a client waits for an answer.'),
  ('receive port', 'late_answers', 'choice', false, '"suspend"', null, null, '{suspend,drop}', null,
    'What becomes of answers for which no client waits any more.'),
  ('receive port', 'keep_answers', 'interval', false, '"10 minutes"', '0 seconds', '30 days', null, null,
    'How long answers stay for repeats of requests with an idempotency key.'),
  ('receive location', 'receive_port', 'reference', true, null, null, null, null, 'receive port', 'Its port.'),
  ('receive location', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('receive location', 'host', 'reference', true, null, null, null, null, 'host', 'The host that takes in.'),
  ('receive location', 'adapter', 'text', true, null, null, null, null, null,
    'FILE, HTTP, Mail, SFTP, TCP, PostgreSQL, Service.'),
  ('receive location', 'address', 'text', true, null, null, null, null, null, 'Where messages come from.'),
  ('receive location', 'pipeline', 'reference', false, '"PassThruReceive"', null, null, null, 'pipeline',
    'The pipeline of its messages.'),
  ('receive location', 'pipeline_settings', 'object', false, '{}', null, null, null, null,
    'Settings of components of the pipeline, here alone, by the name of the component.'),
  ('receive location', 'enabled', 'boolean', false, null, null, null, null, null,
    'Whether it takes in. Where it is left out it stays as it is, and a new one is enabled.'),
  ('receive location', 'schedule', 'object', false, null, null, null, null, null,
    'When it takes in: time_zone, from, to, windows, weekdays, days, months; null: always.'),
  ('receive location', 'brings', 'choice', false, '"activations"', null, null, '{activations,correlations}', null,
    'Messages that begin something, or those that something waits for: they come in under pressure too.'),
  ('receive location', 'ledger_retention', 'interval', false, '"30 days"', '1 hour', '10 years', null, null,
    'How long the ledger keeps what was taken, after its source was removed.'),
  ('receive location', 'settings', 'object', false, '{}', null, null, null, null, 'Settings of the adapter.'),
  ('receive location', 'secrets', 'secrets', false, '{}', null, null, null, null,
    'Where the host finds secrets: file:, env: or command:.'),
  ('send port', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('send port', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('send port', 'host', 'reference', true, null, null, null, null, 'host', 'The host that sends.'),
  ('send port', 'adapter', 'text', true, null, null, null, null, null,
    'FILE, HTTP, Mail, SFTP, TCP, PostgreSQL, Service.'),
  ('send port', 'address', 'text', true, null, null, null, null, null, 'Where messages go.'),
  ('send port', 'pipeline', 'reference', false, '"PassThruTransmit"', null, null, null, 'pipeline',
    'The pipeline of its messages.'),
  ('send port', 'pipeline_settings', 'object', false, '{}', null, null, null, null,
    'Settings of components of the pipeline, here alone, by the name of the component.'),
  ('send port', 'filter', 'filter', false, '[]', null, null, null, null,
    'Which messages it gets: AND groups of predicates, joined by OR. Without it, those of its groups.'),
  ('send port', 'state', 'choice', false, null, null, null, '{Bound,Stopped,Started}', null,
    'Where it is left out it stays as it is, and a new one is started.'),
  ('send port', 'schedule', 'object', false, null, null, null, null, null,
    'When it sends: time_zone, from, to, windows, weekdays, days, months; null: always.'),
  ('send port', 'priority', 'integer', false, '5', '1', '10', null, null, '1 comes first, 10 last.'),
  ('send port', 'ordered', 'boolean', false, 'false', null, null, null, null,
    'Whether messages are sent in the order in which they were published.'),
  ('send port', 'order_key', 'property', false, null, null, null, null, null,
    'The property within whose values there is order; null: one order for all.'),
  ('send port', 'on_failure', 'choice', false, '"wait"', null, null, '{wait,park,stop}', null,
    'The order after a message that cannot be sent: it waits, goes on without it, or the port is stopped.'),
  ('send port', 'concurrency', 'integer', false, '4', '1', '1000', null, null,
    'How many batches of it a node sends at once.'),
  ('send port', 'batch', 'integer', false, '100', '1', '1000', null, null,
    'How many messages a node gives the adapter at once.'),
  ('send port', 'retry_policy', 'reference', false, null, null, null, null, 'retry policy',
    'When a message is tried again; null: three times after five minutes.'),
  ('send port', 'failed_message_routing', 'boolean', false, 'false', null, null, null, null,
    'Whether what fails is published with ErrorReport properties, instead of being suspended.'),
  ('send port', 'pause_at', 'integer', false, '500000', '1', '1000000000', null, null,
    'From how many messages that wait for it on locations are throttled whose messages go to it alone.'),
  ('send port', 'resume_at', 'integer', false, null, '0', '1000000000', null, null,
    'Until how many are left; null: four fifths of pause_at.'),
  ('send port', 'responds', 'boolean', false, 'false', null, null, null, null,
    'Whether what the destination answers becomes a message.'),
  ('send port', 'response_pipeline', 'reference', false, '"PassThruReceive"', null, null, null, 'pipeline',
    'The pipeline of the answers of the destination.'),
  ('send port', 'settings', 'object', false, '{}', null, null, null, null, 'Settings of the adapter.'),
  ('send port', 'secrets', 'secrets', false, '{}', null, null, null, null,
    'Where the host finds secrets: file:, env: or command:.'),
  ('send port group', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('send port group', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('send port group', 'ports', 'references', true, null, null, null, null, 'send port',
    'The send ports that get its messages.'),
  ('send port group', 'filter', 'filter', false, '[]', null, null, null, null, 'Which messages it gets.'),
  ('send port group', 'state', 'choice', false, null, null, null, '{Bound,Started}', null,
    'Where it is left out it stays as it is, and a new one is started.'),
  ('orchestration', 'application', 'reference', true, null, null, null, null, 'application', 'Whose it is.'),
  ('orchestration', 'description', 'text', false, null, null, null, null, null, 'For people.'),
  ('orchestration', 'host', 'reference', true, null, null, null, null, 'host', 'The host that runs its instances.'),
  ('orchestration', 'state', 'choice', false, null, null, null, '{Bound,Stopped,Started}', null,
    'Where it is left out it stays as it is, and a new one is started.'),
  ('orchestration', 'unread', 'choice', false, '"republish"', null, null, '{republish,hand_over,dead_letter}', null,
    'Messages that an instance has not read when it ends: published again, given to a new instance, or suspended.'),
  ('orchestration', 'namespaces', 'declarations', false, '{}', null, null, null, null,
    'Prefixes that paths use, with their namespaces.'),
  ('orchestration', 'messages', 'declarations', false, '{}', null, null, null, null,
    'The messages that it works with, each with its type, or any.'),
  ('orchestration', 'parameters', 'declarations', false, '{}', null, null, null, null,
    'Values with which it is called or started, each with its type, or {"type", "value"}.'),
  ('orchestration', 'variables', 'declarations', false, '{}', null, null, null, null,
    'Values that it keeps, each with its type, or {"type", "value"}.'),
  ('orchestration', 'correlations', 'declarations', false, '{}', null, null, null, null,
    'Sets of 1 to 8 properties by whose values messages belong to an instance.'),
  ('orchestration', 'ports', 'declarations', false, '{}', null, null, null, null,
    'Its logical ports, each with {"send_port"}; one without is routed by content.'),
  ('orchestration', 'body', 'shapes', true, null, null, null, null, null, 'What it does: a list of shapes.')
) as d (
  kind, setting, type, is_required, default_value, lowest, highest, choices, refers_to, description
);

comment on view parley_flow.setting_definitions is
'The settings of each kind of object: type, default (null: none), bounds, choices, the kind that it refers to.';

create view parley_flow._p_engine_property as
select p.name, p.type
from (values
  ('MessageType', 'text'), ('ReceivePortName', 'text'), ('ReceiveLocationName', 'text'),
  ('InboundTransportType', 'text'), ('InboundTransportLocation', 'text'), ('SourceFileName', 'text'),
  ('MessageID', 'integer'), ('InterchangeID', 'integer'), ('ParentMessageID', 'integer'), ('ReceivedTime', 'timestamp'),
  ('SendPortName', 'text'), ('CorrelationToken', 'text'),
  ('ErrorReport.ErrorType', 'text'), ('ErrorReport.FailureCode', 'text'), ('ErrorReport.FailureCategory', 'text'),
  ('ErrorReport.MessageType', 'text'), ('ErrorReport.ReceivePortName', 'text'),
  ('ErrorReport.InboundTransportLocation', 'text'), ('ErrorReport.SendPortName', 'text'),
  ('ErrorReport.OutboundTransportLocation', 'text'), ('ErrorReport.RoutingFailureReportID', 'integer'),
  ('ErrorReport.Description', 'text'), ('ErrorReport.FailureTime', 'timestamp'),
  ('ErrorReport.FailureMessageID', 'integer'), ('ErrorReport.FailureAdapter', 'text')
) as p (name, type);

comment on view parley_flow._p_engine_property is 'The properties of the engine itself, and their types.';

create view parley_flow._p_built_in_pipeline as
select p.name, p.direction, p.stages::jsonb as stages
from (values
  ('PassThruReceive', 'receive', '{}'),
  ('XMLReceive', 'receive', '{"disassemble": [{"component": "xml-disassembler"}]}'),
  ('JSONReceive', 'receive', '{"disassemble": [{"component": "json-disassembler"}]}'),
  ('PassThruTransmit', 'send', '{}'),
  ('XMLTransmit', 'send', '{"assemble": [{"component": "xml-assembler"}]}'),
  ('JSONTransmit', 'send', '{"assemble": [{"component": "json-assembler"}]}')
) as p (name, direction, stages);

comment on view parley_flow._p_built_in_pipeline is 'The pipelines that need no definition.';
