package pgdb

// MessageColumns are the columns of RECEIVE in the order of the fields of a message.
const MessageColumns = `status, priority, queuing_order, conversation_group_id, conversation_handle, message_sequence_number,
	service_name, service_id, service_contract_name, service_contract_id, message_type_name, message_type_id,
	validation::text, message_body, message_enqueue_time, message_id,
	coalesce(trace_context, '')`
