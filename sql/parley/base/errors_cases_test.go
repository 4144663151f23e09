package base_test

// Statements that define objects and cannot be right.
var definitionRefusals = []refusal{
	{number: 2714, because: "message type exists", statement: `select parley.create_message_type('//test/Note')`},
	{number: 2714, because: "contract exists", statement: `select parley.create_contract('//test/Work', '{"//test/Note": "ANY"}')`},
	{number: 2714, because: "queue exists", statement: `select parley.create_queue('dbo.[Asking]')`},
	{number: 2714, because: "service exists", statement: `select parley.create_service('//test/Asker', 'Asking')`},
	{number: 2714, because: "priority exists", statement: `select parley.create_broker_priority('Rank')`},

	{number: 3716, because: "contract lists the message type", statement: `select parley.drop_message_type('//test/Note')`},
	{number: 3716, because: "service names the contract", statement: `select parley.drop_contract('//test/Work')`},
	{number: 3716, because: "service is on the queue", statement: `select parley.drop_queue('Asking')`},
	{number: 3716, because: "priority names the service", statement: `select parley.drop_service('//test/Asker')`},

	{number: 8402, because: "unknown validation", statement: `select parley.create_message_type('//new', 'SOME')`},
	{number: 8402, because: "FUNCTION without one", statement: `select parley.create_message_type('//new', 'FUNCTION')`},
	{number: 8402, because: "JSON_SCHEMA without function", statement: `select parley.create_message_type('//new', 'JSON_SCHEMA')`},
	{number: 8402, because: "VALID_XML without anything", statement: `select parley.alter_message_type('//test/Note', 'valid xml')`},
	{number: 8402, because: "function of another shape", statement: `select parley.create_message_type('//new', 'FUNCTION', 'public.yes(text)')`},
	{number: 8402, because: "types are no object", statement: `select parley.create_contract('//new', '[]'::jsonb)`},
	{number: 8402, because: "types are null", statement: `select parley.create_contract('//new', null::jsonb)`},
	{number: 8402, because: "one type is null", statement: `select parley.create_contract('//new', array['//test/Note', null])`},
	{number: 8402, because: "all types are null", statement: `select parley.create_contract('//new', array[null, null]::text[])`},
	{number: 8402, because: "types are no JSON", statement: `select parley.create_contract('//new', '{//test/Note}')`},
	{number: 8402, because: "unknown side", statement: `select parley.create_contract('//new', '{"//test/Note": "BOTH"}')`},
	{number: 8402, because: "side is null", statement: `select parley.create_contract('//new', '{"//test/Note": null}')`},
	{number: 8402, because: "negative readers", statement: `select parley.alter_queue('Asking', max_queue_readers => -1)`},
	{number: 8402, because: "unknown poison action", statement: `select parley.create_queue('New', poison_action => 'IGNORE')`},
	{number: 8402, because: "fewer keys than bodies", statement: `select parley.put_each('Simple', array['x', 'y'], keys => array['k'])`},
	{number: 208, because: "no such schedule", statement: `select parley.run_schedule('none')`},
	{number: 8402, because: "schedule without a time", statement: `select parley.schedule('new', 'Simple', 'x')`},
	{number: 8402, because: "schedule without a place", statement: `select parley.schedule('new', body => 'x', every => '1 day')`},
	{number: 8402, because: "schedule of a queue with a contract", statement: `
		select parley.schedule('new', 'Simple', 'x', every => '1 day', contract => '//test/Work')`},
	{number: 8402, because: "schedule of services with a key", statement: `
		select parley.schedule('new', from_service => '//test/Asker', to_service => '//test/Answerer', every => '1 day', key => 'k')`},
	{number: 8402, because: "limit that is shared without a number", statement: `select parley.set_queue_limits('Simple', shared => 'api', rate => 1)`},
	{number: 8402, because: "time of no rate", statement: `select parley.set_queue_limits('Simple', concurrency => 1, per => '1 minute')`},
	{number: 8402, because: "deduplication of a queue of conversations", statement: `select parley.create_queue('New', deduplication_seconds => 60)`},
	{number: 8402, because: "deduplication of such a queue, later", statement: `select parley.alter_queue('Asking', deduplication_seconds => 300)`},
	{number: 8402, because: "rollbacks and a policy", statement: `select parley.create_queue('New', kind => 'SIMPLE', poison_rollbacks => 3, retry => '{}')`},
	{number: 8402, because: "rollbacks where a policy counts", statement: `do $$
		begin
			perform parley.create_queue('New', kind => 'SIMPLE');
			perform parley.alter_queue('New', poison_rollbacks => 3);
		end $$`},
	{number: 8402, because: "error where the conversation goes on", statement: `do $$
		begin
			perform parley.begin_and_send('//test/Asker', '//test/Answerer', '//test/Note', 'x', contract => '//test/Work');
			perform parley.fail_conversation(q.conversation_handle) from parley.peek('Answering', 100) as q;
			perform parley.discard_poison(p.conversation_handle, message_only => true, error_code => 7)
			from parley.poison_conversations as p;
		end $$`},
	{number: 8402, because: "delay of what is final", statement: `
		select parley.give_back('Simple', gen_random_uuid(), delay => '1 minute', is_final => true)`},
	{number: 8402, because: "delay of a delivery that is final", statement: `
		select parley.fail_delivery('Answering', gen_random_uuid(), 'no', retry_ms => 1000, is_final => true)`},
	{number: 8402, because: "delay of messages that are final", statement: `
		select parley.fail_message_delivery('Simple', array[1024], 'no', retry_ms => 1000, is_final => true)`},
	{number: 8402, because: "three fields", statement: `select parley.schedule('new', 'Simple', 'x', cron => '* * *')`},
	{number: 8402, because: "31 February", statement: `select parley.schedule('new', 'Simple', 'x', cron => '0 0 31 2 *')`},
	{number: 8402, because: "unknown rule for missed times", statement: `select parley.schedule('new', 'Simple', 'x', every => '1 day', missed => 'LATER')`},
	{number: 8402, because: "unknown time zone", statement: `select parley.schedule('new', 'Simple', 'x', every => '1 day', time_zone => 'Mars')`},
	{number: 8402, because: "no retry policy", statement: `select parley.create_queue('New', retry => '{"often": true}')`},
	{number: 8402, because: "no attempts", statement: `select parley.set_retry_policy('Asking', attempts => 0)`},
	{number: 8402, because: "retries of a queue that poison disables", statement: `do $$
		begin
			perform parley.create_queue('New', poison_action => 'DISABLE_QUEUE');
			perform parley.set_retry_policy('New');
		end $$`},
	{number: 8402, because: "unknown kind of a queue", statement: `select parley.create_queue('New', kind => 'STREAM')`},
	{number: 8402, because: "retention of a simple queue", statement: `select parley.alter_queue('Simple', retention => true)`},
	{number: 8402, because: "service on a simple queue", statement: `select parley.create_service('//new', 'Simple')`},
	{number: 8402, because: "no rollbacks", statement: `select parley.alter_queue('Asking', poison_rollbacks => 0)`},
	{number: 8402, because: "too many rollbacks", statement: `select parley.create_queue('New', poison_rollbacks => 16)`},
	{number: 8402, because: "too many readers", statement: `select parley.create_queue('New', max_queue_readers => 32768)`},
	{number: 8402, because: "abandoned at once", statement: `select parley.end_abandoned_after(0)`},
	{number: 8402, because: "abandoned after null", statement: `select parley.end_abandoned_after(null)`},
	{number: 8402, because: "level 0", statement: `select parley.create_broker_priority('New', priority_level => 0)`},
	{number: 8402, because: "level null", statement: `select parley.create_broker_priority('New', priority_level => null)`},
	{number: 8402, because: "level 11", statement: `select parley.alter_broker_priority('Rank', priority_level => 11)`},

	{number: 8403, because: "message type twice", statement: `select parley.create_contract('//new', array['//test/Note', '//test/Note'])`},
	{number: 8404, because: "contract twice", statement: `select parley.create_service('//new', 'Asking', array['DEFAULT', 'DEFAULT'])`},
	{number: 8404, because: "contract accepted already", statement: `select parley.alter_service('//test/Asker', add_contracts => array['DEFAULT'])`},
	{number: 8492, because: "nothing for the initiator", statement: `select parley.create_contract('//new', '{"//test/Note": "TARGET"}')`},
	{number: 8492, because: "no message type", statement: `select parley.create_contract('//new', '{}'::jsonb)`},
	{number: 8493, because: "service unchanged", statement: `select parley.alter_service('//test/Asker')`},
	{number: 8493, because: "priority unchanged", statement: `select parley.alter_broker_priority('Rank')`},

	{number: 9613, because: "nobody to execute as", statement: `select parley.alter_queue('Asking', activation_procedure => 'public.read', activation => true)`},
	{number: 9614, because: "no procedure", statement: `select parley.alter_queue('Asking', execute_as => 'SELF', activation => true)`},
	{number: 9614, because: "procedure is missing", statement: `select parley.create_queue('New', activation_procedure => 'public.missing', execute_as => 'OWNER')`},
	{number: 9614, because: "procedure without its schema", statement: `select parley.create_queue('New', activation_procedure => 'read', execute_as => 'OWNER')`},
	{number: 9620, because: "function", statement: `select parley.create_queue('New', activation_procedure => 'public.fit', execute_as => 'OWNER')`},
	{number: 9653, because: "procedure takes arguments", statement: `select parley.create_queue('New', activation_procedure => 'public.greedy', execute_as => 'OWNER')`},

	{
		number: 9742, because: "temporary procedure",
		statement: `
			do $$
			begin
				create procedure pg_temp.brief() language sql as '';
				perform parley.create_queue('New', activation_procedure => 'pg_temp.brief', execute_as => 'OWNER');
			end $$`,
	},

	{number: 9663, because: "system message type in a contract", statement: `select parley.create_contract('//new',
		'{"http://schemas.microsoft.com/SQL/ServiceBroker/EndDialog": "ANY"}')`},
	{number: 9663, because: "system message type", statement: `select parley.alter_message_type('DEFAULT', 'EMPTY')`},
	{number: 9663, because: "system message type dropped", statement: `select parley.drop_message_type('DEFAULT')`},
	{number: 9663, because: "system contract", statement: `select parley.drop_contract('DEFAULT')`},
	{number: 9663, because: "system queue", statement: `select parley.alter_queue('ServiceBrokerQueue', status => false)`},
	{number: 9663, because: "system queue dropped", statement: `select parley.drop_queue('ServiceBrokerQueue')`},
	{number: 9663, because: "system service", statement: `select parley.drop_service('http://schemas.microsoft.com/SQL/ServiceBroker/ServiceBroker')`},
	{number: 9663, because: "owner of a system object", statement: `select parley.alter_authorization('contract', 'DEFAULT', current_user)`},

	{number: 15151, because: "no such message type", statement: `select parley.drop_message_type('//test/note')`},
	{number: 15151, because: "no such contract", statement: `select parley.drop_contract('//test/work')`},
	{number: 15151, because: "no such service", statement: `select parley.drop_service('//test/asker')`},
	{number: 15151, because: "no such priority to alter", statement: `select parley.alter_broker_priority('rank', priority_level => 1)`},
	{number: 15151, because: "no such priority to drop", statement: `select parley.drop_broker_priority('rank')`},
	{number: 15151, because: "contract of unknown type", statement: `select parley.create_contract('//new', '{"//none": "ANY"}')`},
	{number: 15151, because: "contract not accepted", statement: `select parley.alter_service('//test/Asker', drop_contracts => array['//test/Free'])`},
	{number: 15151, because: "priority of unknown service", statement: `select parley.create_broker_priority('New', local_service_name => '//none')`},
	{number: 15151, because: "no such role", statement: `select parley.create_queue('New', "authorization" => 'nobody at all')`},
}

// Names that cannot be.
var nameRefusals = []refusal{
	{number: 208, because: "a service's name", statement: `select parley.receive('//test/Asker')`},
	{number: 9609, because: "a service's name with points", statement: `select parley.receive('http://schemas.microsoft.com/SQL/ServiceBroker/ServiceBroker')`},
	{number: 208, because: "no such queue", statement: `select parley.create_service('//new', 'asking')`},
	{number: 9609, because: "empty name", statement: `select parley.create_message_type('')`},
	{number: 9609, because: "null name", statement: `select parley.create_broker_priority(null)`},
	{number: 9609, because: "name of 129 characters", statement: `select parley.create_service(repeat('é', 129), 'Asking')`},
	{number: 9609, because: "contract ANY", statement: `select parley.create_contract('Any', '{"//test/Note": "ANY"}')`},
	{number: 9609, because: "service ANY", statement: `select parley.create_service('ANY', 'Asking')`},
	{number: 9609, because: "queue without name", statement: `select parley.create_queue('dbo.[]')`},
	{number: 9609, because: "temporary queue", statement: `select parley.create_queue('#new')`},
	{number: 9609, because: "queue in another database", statement: `select parley.receive('elsewhere.dbo.Asking')`},
	{number: 9609, because: "queue name of four parts", statement: `select parley.receive('a.b.c.d')`},
	{number: 9609, because: "queue name that does not parse", statement: `select parley.receive('[Asking')`},
	{number: 9609, because: "queue null", statement: `select parley.receive(null)`},
}
