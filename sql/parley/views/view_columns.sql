-- What the columns of the views mean. The names are Service Broker's, and so are the meanings; a column whose subject
-- this broker does not have keeps its place with the value that Service Broker gives to a conversation without it.

comment on column parley.databases.name is 'This database.';
comment on column parley.databases.database_id is 'Its oid.';
comment on column parley.databases.service_broker_guid is
'Its identity as a broker instance, which BEGIN DIALOG may name.';
comment on column parley.databases.is_broker_enabled is 'Whether the broker is enabled.';
comment on column parley.databases.is_honor_broker_priority_on is
'Whether priorities also order what leaves the database (parley.honor_broker_priority).';
comment on column parley.databases.broker_state is
'ENABLED, DISABLED, or ELSEWHERE: this is not the database in which the broker was enabled last
(parley.attach_broker).';
comment on column parley.databases.disabled_at is 'Since when the broker is disabled; null while it is enabled.';
comment on column parley.databases.abandoned_target_seconds is
'After how long a target ends by itself whose initiator has ended and that has nothing left to
read (parley.end_abandoned_after).';

comment on column parley.databases.is_trustworthy_on is 'Always false: rights are those of roles.';
comment on column parley.databases.is_master_key_encrypted_by_server is
'Always false: the master key is a file of the daemon.';

comment on column parley.message_type_xml_schema_collection_usages.message_type_id is 'Message type.';
comment on column parley.message_type_xml_schema_collection_usages.xml_collection_id is 'Its XML schema collection.';

comment on column parley.service_message_types.name is 'Compared byte by byte.';
comment on column parley.service_message_types.message_type_id is 'Below 65536 when built in.';
comment on column parley.service_message_types.principal_id is 'Oid of the owner.';
comment on column parley.service_message_types.validation is
'What a body must be: N anything, E nothing, X XML, J JSON, F what validation_function says.';
comment on column parley.service_message_types.validation_desc is 'NONE, EMPTY, XML, JSON or FUNCTION.';
comment on column parley.service_message_types.xml_collection_id is
'Always null: PostgreSQL has no XML schema collections.';
comment on column parley.service_message_types.validation_function is
'Function that says whether a body is good, or null.';

comment on column parley.service_contracts.name is 'Compared byte by byte.';
comment on column parley.service_contracts.service_contract_id is 'Below 65536 when built in.';
comment on column parley.service_contracts.principal_id is 'Oid of the owner.';

comment on column parley.service_contract_message_usages.service_contract_id is 'Contract.';
comment on column parley.service_contract_message_usages.message_type_id is 'Message type that is part of it.';
comment on column parley.service_contract_message_usages.is_sent_by_initiator is 'Whether the initiator may send it.';
comment on column parley.service_contract_message_usages.is_sent_by_target is
'Whether the target may send it; both is SENT BY ANY.';

comment on column parley.services.name is 'Compared byte by byte.';
comment on column parley.services.service_id is 'Below 65536 when built in.';
comment on column parley.services.principal_id is 'Oid of the owner.';
comment on column parley.services.service_queue_id is 'Queue that its messages arrive in.';
comment on column parley.services.deduplication_seconds is
'For how long a deduplication key that is used as it counts.';

comment on column parley.service_contract_usages.service_id is 'Service.';
comment on column parley.service_contract_usages.service_contract_id is 'Contract that it accepts as target.';

comment on column parley.service_queue_usages.service_id is 'Service.';
comment on column parley.service_queue_usages.service_queue_id is 'Queue that it is bound to.';

comment on column parley.service_queues.name is 'Name without its schema.';
comment on column parley.service_queues.object_id is 'Identity of the queue; below 65536 when built in.';
comment on column parley.service_queues.principal_id is 'Oid of the owner.';
comment on column parley.service_queues.schema_name is
'Schema of the queue, a part of its name only; dbo may be left out.';
comment on column parley.service_queues.parent_object_id is 'Always 0.';
comment on column parley.service_queues.type is 'Always SQ.';
comment on column parley.service_queues.type_desc is 'Always SERVICE_QUEUE.';
comment on column parley.service_queues.create_date is 'When it was created.';
comment on column parley.service_queues.modify_date is 'When its settings were changed last.';
comment on column parley.service_queues.is_ms_shipped is 'Whether it is the broker''s own.';
comment on column parley.service_queues.is_published is 'Always false.';
comment on column parley.service_queues.is_schema_published is 'Always false.';
comment on column parley.service_queues.max_readers is 'MAX_QUEUE_READERS of activation.';
comment on column parley.service_queues.activation_procedure is 'Procedure that activation runs, or null.';
comment on column parley.service_queues.execute_as_principal_id is
'Oid of the role that activation runs as; -2 is the owner of the queue.';
comment on column parley.service_queues.is_activation_enabled is 'Whether activation is on.';
comment on column parley.service_queues.is_receive_enabled is 'Whether messages can be received.';
comment on column parley.service_queues.is_enqueue_enabled is 'Whether messages can arrive.';
comment on column parley.service_queues.is_retention_enabled is 'Whether copies are kept until the conversation ends.';
comment on column parley.service_queues.is_poison_message_handling_enabled is
'Whether rollbacks of a message are counted.';
comment on column parley.service_queues.poison_action is
'What becomes of a message that has come back too often: SET_ASIDE or DISABLE_QUEUE.';
comment on column parley.service_queues.poison_rollbacks is 'How often is too often.';
comment on column parley.service_queues.deduplication_seconds is
'For how long a key of parley.put_once counts, in a simple queue.';
comment on column parley.service_queues.quota_messages is 'How many messages it may hold; null for any number.';
comment on column parley.service_queues.quota_bytes is
'How many bytes of bodies it may hold (parley.set_queue_quota); null for any number.';
comment on column parley.service_queues.readers_paused_at is
'Since when its readers are paused (parley.pause_readers); null when they are not.';
comment on column parley.service_queues.set_aside_conversations is
'Conversations that are set aside: see parley.poison_conversations.';

comment on column parley.conversation_priorities.priority_id is 'Identity of the priority.';
comment on column parley.conversation_priorities.name is 'Its name.';
comment on column parley.conversation_priorities.service_contract_id is 'Contract it is for, or null for ANY.';
comment on column parley.conversation_priorities.local_service_id is 'Service on this side, or null for ANY.';
comment on column parley.conversation_priorities.remote_service_name is 'Service on the other side, or null for ANY.';
comment on column parley.conversation_priorities.priority is 'Level that a new endpoint gets: 1 (low) to 10 (high).';

comment on column parley.permissions.class is
'What it is on: database, message type, contract, queue, service or route.';
comment on column parley.permissions.object_id is 'Identity of the object; 0 for the database.';
comment on column parley.permissions.object_name is 'Name of the object; null for the database.';
comment on column parley.permissions.permission is 'Such as SEND or RECEIVE.';
comment on column parley.permissions.grantee is 'Role that holds it, or PUBLIC.';
comment on column parley.permissions.grantor is 'Role that granted it.';
comment on column parley.permissions.is_grantable is 'Whether the grantee may grant it on.';

comment on column parley.conversation_endpoints.conversation_handle is
'What statements call this side by; each side has its own.';
comment on column parley.conversation_endpoints.conversation_id is
'Identity of the conversation, the same on both sides.';
comment on column parley.conversation_endpoints.is_initiator is
'1 on the side that began the dialog, 0 on the target''s.';
comment on column parley.conversation_endpoints.service_contract_id is 'Contract.';
comment on column parley.conversation_endpoints.conversation_group_id is
'Group that this side is received and locked with.';
comment on column parley.conversation_endpoints.service_id is 'Service of this side.';
comment on column parley.conversation_endpoints.lifetime is
'When the conversation ends with an error if it is still open.';
comment on column parley.conversation_endpoints.state is 'SO, SI, CO, DI, DO, ER or CD; see the page on concepts.';
comment on column parley.conversation_endpoints.state_desc is 'The same in words.';
comment on column parley.conversation_endpoints.far_service is 'Service of the other side.';
comment on column parley.conversation_endpoints.far_broker_instance is
'Broker instance of the other side; null before it is known.';
comment on column parley.conversation_endpoints.principal_id is 'Oid of the owner of this side.';
comment on column parley.conversation_endpoints.far_principal_id is
'Oid of the role that stands for the other side of a secured dialog; 0 when it is not secured,
or the initiator is anonymous.';
comment on column parley.conversation_endpoints.outbound_session_key_identifier is
'All zeros: not secured. In an anonymous dialog it names the session key; in full security keys do not last,
and it is the conversation_id.';
comment on column parley.conversation_endpoints.inbound_session_key_identifier is 'As outbound_session_key_identifier.';
comment on column parley.conversation_endpoints.security_timestamp is
'When the dialog was secured, null when it is not; of a closed target: when it is forgotten.';
comment on column parley.conversation_endpoints.dialog_timer is
'When the conversation timer of this side fires, or null.';
comment on column parley.conversation_endpoints.send_sequence is
'Number of the next message sent, as far as it is known.';
comment on column parley.conversation_endpoints.last_send_tran_id is 'Always null.';
comment on column parley.conversation_endpoints.end_dialog_sequence is 'Always -1.';
comment on column parley.conversation_endpoints.receive_sequence is 'Number of the next message received.';
comment on column parley.conversation_endpoints.receive_sequence_frag is
'Always 0: messages are not cut into fragments.';
comment on column parley.conversation_endpoints.system_sequence is 'Always 0.';
comment on column parley.conversation_endpoints.first_out_of_order_sequence is
'Always -1: nothing arrives out of order.';
comment on column parley.conversation_endpoints.last_out_of_order_sequence is 'Always -1.';
comment on column parley.conversation_endpoints.last_out_of_order_frag is 'Always -1.';
comment on column parley.conversation_endpoints.is_system is 'Whether it is the broker''s own.';
comment on column parley.conversation_endpoints.priority is 'Level of this side, 1 to 10, fixed when it was created.';
comment on column parley.conversation_endpoints.begun_at is 'When this side was created; null when closed.';
comment on column parley.conversation_endpoints.state_since is 'When it got into this state; null when closed.';
comment on column parley.conversation_endpoints.service_name is 'Name of the service of this side.';
comment on column parley.conversation_endpoints.service_contract_name is 'Name of the contract.';

comment on column parley.conversation_groups.conversation_group_id is
'Identity of the group, a key for state of your own.';
comment on column parley.conversation_groups.service_id is 'Service whose conversations it holds.';
comment on column parley.conversation_groups.is_system is 'Whether it is the broker''s own.';

comment on column parley.transmission_queue.conversation_handle is 'Side that sent the message.';
comment on column parley.transmission_queue.to_service_name is 'Service it is for.';
comment on column parley.transmission_queue.to_broker_instance is 'Broker instance it is for, or null.';
comment on column parley.transmission_queue.from_service_name is 'Service that sent it.';
comment on column parley.transmission_queue.service_contract_name is 'Contract.';
comment on column parley.transmission_queue.enqueue_time is 'When it was sent.';
comment on column parley.transmission_queue.message_sequence_number is
'Its number in its conversation, from 0; for a target in this database its place among those that wait.';
comment on column parley.transmission_queue.message_type_name is 'Message type.';
comment on column parley.transmission_queue.is_conversation_error is 'Whether it is an Error message.';
comment on column parley.transmission_queue.is_end_of_dialog is 'Whether it is an EndDialog message.';
comment on column parley.transmission_queue.message_body is 'Body, or null.';
comment on column parley.transmission_queue.transmission_status is 'Why it is still here.';
comment on column parley.transmission_queue.priority is 'Level of the side that sent it.';
comment on column parley.transmission_queue.address is
'Where it goes, when a route was found that leads out of the database.';
comment on column parley.transmission_queue.attempts is
'How many attempts to get there have failed since the last that did not.';
comment on column parley.transmission_queue.next_attempt_time is
'When the next attempt is due; null when nothing stands against it.';

comment on column parley.one_way_conversations.conversation_handle is 'Side that began the dialog and sent.';
comment on column parley.one_way_conversations.service_name is 'Its service.';
comment on column parley.one_way_conversations.far_service is 'Service of the other side.';
comment on column parley.one_way_conversations.state_since is 'When it sent.';
comment on column parley.stuck_conversations.conversation_handle is 'Side that waits.';
comment on column parley.stuck_conversations.conversation_group_id is 'Its group.';
comment on column parley.stuck_conversations.service_name is 'Its service.';
comment on column parley.stuck_conversations.far_service is 'Service of the other side.';
comment on column parley.stuck_conversations.state is 'State of this side.';
comment on column parley.stuck_conversations.state_since is 'Since when it has been in that state.';
comment on column parley.stuck_conversations.waiting is 'Messages that this side has to receive.';
comment on column parley.stuck_conversations.reason is 'Whom it waits for.';
comment on column parley.stuck_conversations.remedy is 'What to do, often as a statement.';

comment on column parley.received_message.status is
'1 ready, 2 of a conversation that is set aside, 0 received (and retained), 3 copy of a sent message; RECEIVE gives 0.';
comment on column parley.received_message.priority is 'Of the conversation: 1 (low) to 10 (high).';
comment on column parley.received_message.queuing_order is 'Position in the queue; later arrivals have larger ones.';
comment on column parley.received_message.conversation_group_id is
'Group, locked to the end of the transaction by RECEIVE.';
comment on column parley.received_message.conversation_handle is
'Handle of the side that receives: answer and end with it.';
comment on column parley.received_message.message_sequence_number is
'Number in this direction, from 0 without gaps; -1 for Error and DialogTimer.';
comment on column parley.received_message.service_name is 'Service that it arrived at.';
comment on column parley.received_message.service_id is 'Identity of that service.';
comment on column parley.received_message.service_contract_name is 'Contract of the conversation.';
comment on column parley.received_message.service_contract_id is 'Identity of that contract.';
comment on column parley.received_message.message_type_name is 'Message type.';
comment on column parley.received_message.message_type_id is 'Identity of the message type.';
comment on column parley.received_message.validation is 'What the message type asks of a body: N, E, X, J or F.';
comment on column parley.received_message.message_body is
'Body, or null when there is none; parley.body_text reads it as text.';
comment on column parley.received_message.message_enqueue_time is 'When it arrived.';
comment on column parley.received_message.message_id is
'Identity of the message, in views of queues; RECEIVE leaves it null.';
comment on column parley.received_message.trace_context is
'W3C trace context that the sender gave it with send_traced, or null.';
