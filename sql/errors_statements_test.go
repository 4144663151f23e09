package sql_test

// Statements on conversations that cannot be done.
var conversationRefusals = []refusal{
	{number: 8406, because: "lifetime null", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => null)`},
	{number: 8411, because: "no lifetime", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer', lifetime => 0)`},
	{number: 8412, because: "target empty", statement: `select parley.begin_dialog('//test/Asker', '')`},
	{number: 8412, because: "target of 257 characters", statement: `select parley.begin_dialog('//test/Asker', repeat('x', 257))`},
	{number: 8413, because: "instance is no uuid", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer', broker_instance => 'here')`},
	{number: 8414, because: "group of zeros", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		related_conversation_group => '00000000-0000-0000-0000-000000000000')`},
	{number: 8414, because: "group of ones, which stands for any in RECEIVE", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		related_conversation_group => 'ffffffff-ffff-ffff-ffff-ffffffffffff')`},
	{number: 8417, because: "contract null", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer', null)`},
	{number: 8421, because: "target null", statement: `select parley.begin_dialog('//test/Asker', null)`},
	{number: 8423, because: "unknown initiator", statement: `select parley.begin_dialog('//test/asker', '//test/Answerer')`},
	{number: 8425, because: "unknown contract", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/work')`},
	{number: 8426, because: "unknown relation", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		related_conversation => gen_random_uuid())`},
	{number: 9601, because: "two relations", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		related_conversation => public.h('new'), related_conversation_group => gen_random_uuid())`},
	{number: 9610, because: "group of another service", statement: `select parley.begin_dialog('//test/Asker', '//test/Answerer',
		related_conversation => public.h('elsewhere'))`},

	{number: 8418, because: "send on null", statement: `select parley.send(null::uuid, '//test/Note', 'x')`},
	{number: 8426, because: "send on unknown", statement: `select parley.send(gen_random_uuid(), '//test/Note', 'x')`},
	{number: 8429, because: "send on closed", statement: `select parley.send(public.h('far closed'), '//test/Note', 'x')`},
	{number: 8428, because: "unknown message type", statement: `select parley.send(public.h('talking'), '//test/note', 'x')`},
	{number: 8428, because: "message type null", statement: `select parley.send(public.h('talking'), null, 'x')`},
	{number: 8429, because: "send after own end", statement: `select parley.send(public.h('ended'), '//test/Note', 'x')`},
	{number: 8429, because: "send after far end", statement: `select parley.send(public.h('far ended'), '//test/Note', 'x')`},
	{number: 8429, because: "send after an error", statement: `select parley.send(public.h('failed'), '//test/Note', 'x')`},
	{number: 8431, because: "not in the contract", statement: `select parley.send(public.h('talking'), 'DEFAULT', 'x')`},
	{number: 8432, because: "for the target", statement: `select parley.send(public.h('talking'), '//test/Reply', 'x')`},
	{number: 8434, because: "for the initiator", statement: `select parley.send(public.h('far talking'), '//test/Request', 'x')`},
	{number: 8441, because: "no handles", statement: `select parley.send_to_all('{}', '//test/Note', 'x')`},
	{number: 8441, because: "handles null", statement: `select parley.send_to_all(null, '//test/Note', 'x')`},
	{number: 8441, because: "a handle is null", statement: `select parley.send_to_all(array[public.h('talking'), null], '//test/Note', 'x')`},
	{number: 8451, because: "a handle twice", statement: `select parley.send_to_all(array[public.h('talking'), public.h('talking')], '//test/Note', 'x')`},
	{number: 8429, because: "a handle is closed", statement: `select parley.send_to_all(array[public.h('talking'), public.h('far closed')], '//test/Note', 'x')`},
	{number: 8435, because: "a handle unknown", statement: `select parley.send_to_all(array[public.h('talking'), gen_random_uuid()], '//test/Note', 'x')`},
	{number: 9618, because: "retention on a queue that is off", statement: `select parley.send(public.h('from off'), 'DEFAULT', 'x')`},

	{number: 8418, because: "end null", statement: `select parley.end_conversation(null::uuid)`},
	{number: 8426, because: "end unknown", statement: `select parley.end_conversation(gen_random_uuid())`},
	{number: 8427, because: "end twice", statement: `select parley.end_conversation(public.h('ended'))`},
	{number: 8427, because: "end closed", statement: `select parley.end_conversation(public.h('far closed'))`},
	{number: 8402, because: "error code 0", statement: `select parley.end_conversation(public.h('talking'), 0, 'no')`},
	{number: 8402, because: "description of 3001 characters", statement: `select parley.end_conversation(public.h('talking'), 1, repeat('x', 3001))`},
	{number: 8419, because: "no error code", statement: `select parley.end_conversation(public.h('talking'), null, 'no')`},
	{number: 8422, because: "no description", statement: `select parley.end_conversation(public.h('talking'), 1, null)`},
	{number: 8424, because: "neither", statement: `select parley.end_conversation(public.h('talking'), null, null)`},
	{number: 8426, because: "clean up unknown", statement: `select parley.end_conversation(gen_random_uuid(), cleanup => true)`},

	{number: 8402, because: "negative timeout", statement: `select parley.begin_conversation_timer(public.h('talking'), -1)`},
	{number: 8402, because: "timeout null", statement: `select parley.begin_conversation_timer(public.h('talking'), null)`},
	{number: 8410, because: "timer after the lifetime", statement: `select parley.begin_conversation_timer(public.h('talking'), 3600)`},
	{number: 8426, because: "timer on unknown", statement: `select parley.begin_conversation_timer(gen_random_uuid(), 1)`},
	{number: 8458, because: "timer after own end", statement: `select parley.begin_conversation_timer(public.h('ended'), 1)`},
	{number: 8458, because: "timer after an error", statement: `select parley.begin_conversation_timer(public.h('failed'), 1)`},

	{number: 8420, because: "move to null", statement: `select parley.move_conversation(public.h('talking'), null)`},
	{number: 8426, because: "move unknown", statement: `select parley.move_conversation(gen_random_uuid(), gen_random_uuid())`},
	{number: 8436, because: "move to unknown", statement: `select parley.move_conversation(public.h('talking'), gen_random_uuid())`},
	{number: 8438, because: "move after own end", statement: `select parley.move_conversation(public.h('ended'),
		(select conversation_group_id from parley.conversation_endpoints where conversation_handle = public.h('talking')))`},
	{number: 8439, because: "move to another queue", statement: `select parley.move_conversation(public.h('talking'),
		(select conversation_group_id from parley.conversation_endpoints where conversation_handle = public.h('elsewhere')))`},
}

// Reading what cannot be read.
var readingRefusals = []refusal{
	{number: 208, because: "receive from unknown queue", statement: `select parley.receive('Nowhere')`},
	{number: 208, because: "group of unknown queue", statement: `select parley.get_conversation_group('Nowhere')`},
	{number: 208, because: "look at unknown queue", statement: `select parley.queue_contents('Nowhere')`},
	{number: 8426, because: "receive unknown conversation", statement: `select parley.receive('Asking', conversation_handle => gen_random_uuid())`},
	{number: 8426, because: "receive conversation of another queue", statement: `select parley.receive('Answering', conversation_handle => public.h('talking'))`},
	{number: 8436, because: "receive unknown group", statement: `select parley.receive('Asking', conversation_group_id => gen_random_uuid())`},
	{number: 8436, because: "receive group of another queue", statement: `select parley.receive('Answering', conversation_group_id =>
		(select conversation_group_id from parley.conversation_endpoints where conversation_handle = public.h('talking')))`},
	{number: 8414, because: "receive from a conversation of another group", statement: `select parley.receive('Asking',
		conversation_handle => public.h('talking'), conversation_group_id => gen_random_uuid())`},
	{number: 8418, because: "receive from a null handle", statement: `select parley.receive('Asking', conversation_handle => null)`},
	{number: 8420, because: "receive from a null group", statement: `select parley.receive('Asking', conversation_group_id => null)`},
	// As at the second look of a wait; TestWaitingReceiveByNameHoldsNoLock has the wait.
	{number: 8468, because: "service with another queue", statement: `select parley._p_find_named(q.queue_id, public.h('talking'), null, s.service_id)
		from parley._p_queue as q, parley._p_service as s where q.lookup_name = 'Answering' and s.name = '//test/Asker'`},
	{number: 8470, because: "service dropped", statement: `select parley._p_find_named(q.queue_id, public.h('talking'), null, -1)
		from parley._p_queue as q where q.lookup_name = 'Asking'`},
	{number: 9617, because: "receive from a queue that is off", statement: `select parley.receive('Off')`},
	{number: 9617, because: "group of a queue that is off", statement: `select parley.get_conversation_group('Off')`},
}

// What an ordinary role may not do, and what cannot be granted.
var rightRefusals = []refusal{
	{number: 229, because: "create", statement: `select parley.create_queue('New')`, ordinary: true},
	{number: 229, because: "alter", statement: `select parley.alter_queue('Asking', status => false)`, ordinary: true},
	{number: 229, because: "receive", statement: `select parley.receive('Asking')`, ordinary: true},
	{number: 229, because: "end", statement: `select parley.end_conversation(public.h('talking'))`, ordinary: true},
	{number: 15151, because: "priorities", statement: `select parley.create_broker_priority('New')`, ordinary: true},
	{number: 28006, because: "clean up", statement: `select parley.end_conversation(public.h('talking'), cleanup => true)`, ordinary: true},
	{number: 28006, because: "clean up closed", statement: `select parley.end_conversation(public.h('far closed'), cleanup => true)`, ordinary: true},
	{number: 15151, because: "grant", statement: `select parley.grant('SEND', 'service', '//test/Asker', current_user)`, ordinary: true},
	{number: 15151, because: "revoke", statement: `select parley.revoke('SEND', 'service', '//test/Asker', 'PUBLIC')`, ordinary: true},

	{number: 208, because: "grant on unknown queue", statement: `select parley.grant('RECEIVE', 'queue', 'Nowhere', 'PUBLIC')`},
	{number: 15151, because: "grant on unknown service", statement: `select parley.grant('SEND', 'service', '//none', 'PUBLIC')`},
	{number: 15151, because: "unknown class", statement: `select parley.grant('SEND', 'planet', 'Earth', 'PUBLIC')`},
	{number: 15151, because: "unknown permission", statement: `select parley.grant('RECEIVE', 'service', '//test/Asker', 'PUBLIC')`},
	{number: 15151, because: "unknown grantee", statement: `select parley.grant('SEND', 'service', '//test/Asker', 'nobody at all')`},
	{number: 15151, because: "PUBLIC as owner", statement: `select parley.alter_authorization('service', '//test/Asker', 'PUBLIC')`},
}
