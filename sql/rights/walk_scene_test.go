package rights_test

// secret stands in each body, address, argument and description of the walk's scene: a role without rights must not be shown it.
const secret = "TOPSECRET"

// walkScene gives every function an object of another role to work on.
const walkScene = `
	select parley.create_queue('Watched'), parley.set_queue_quota('Answering', 1000);
	select parley.create_program_activation('Watched', array['/opt/reader', 'TOPSECRET'], environment => '{"KEY": "TOPSECRET"}');
	create function public.watched() returns integer language sql security definer
	as $$ select q.object_id from parley.service_queues as q where q.name = 'Watched' $$;
	select parley.create_queue('Hooked');
	select parley.create_webhook_activation('Hooked', 'https://example.com/TOPSECRET', secret => 'TOPSECRET-TOPSECRET');
	create table public.given (name text primary key, literal text);
	grant select on public.given to public;
	insert into public.given (name, literal)
	select 'conversation_handle', format('%L::uuid', parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'));
	select parley.send((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), '//test/Request', 'TOPSECRET 1');
	select parley.send((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), '//test/Request', 'TOPSECRET 2');
	select parley.send(parley.begin_dialog('//test/Asker', '//nowhere', allow_unknown_target => true), 'DEFAULT', 'TOPSECRET 3');
	select parley.create_remote_service_binding('Bound', '//far', current_user);
	select parley.create_route('Far', 'tcp://far:4022', '//far');
	select parley.begin_conversation_timer((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), 0);
	select parley.send((select trim('''' from split_part(literal, '::', 1))::uuid from public.given), '//test/Request', 'TOPSECRET 7', deliver_at =>
		now() + interval '1 day');
	insert into parley._p_set_aside (endpoint_id, service_id, position, moved_position, rollbacks)
	select e.endpoint_id, e.service_id, 0, 0, 5 from parley._p_endpoint as e where not e.is_initiator;
	select parley.create_queue('Jobs', kind => 'SIMPLE');
	select parley.put('Jobs', 'TOPSECRET once'::text, deduplication_key => 'TOPSECRET key');
	select parley.put_batch('Jobs', array['TOPSECRET 4', 'TOPSECRET 5']);
	select parley.put('Jobs', 'TOPSECRET 6', deliver_at => now() + interval '1 day');
	insert into parley._p_set_aside_message (queue_id, position, priority, rollbacks)
	select q.queue_id, 1024, 5, 5 from parley._p_queue as q where q.name = 'Jobs';
	update parley._p_message as m set lane = parley._p_set_aside_lane(s.queue_id)
	from parley._p_set_aside_message as s where m.position = 1024 and parley._p_owner_of_lane(m.lane) = s.queue_id;
	insert into parley._p_edited_message (queue_id, position, role_name, reason, body)
	select q.queue_id, 1024, current_user, 'TOPSECRET 16', 'TOPSECRET 17' from parley._p_queue as q where q.name = 'Jobs';
	insert into parley._p_message_failure (queue_id, position, key_id, failed_at, error)
	select q.queue_id, m.position, m.endpoint_id, now(), 'TOPSECRET 8'
	from parley._p_queue as q
	join parley._p_message as m on parley._p_owner_of_lane(m.lane) = q.queue_id and m.position <> 1024
	where q.name = 'Jobs';
	select parley.create_queue('Retried', kind => 'SIMPLE');
	select parley.keep_finished('Retried', '1 hour'), parley.done('Retried', 7, '"TOPSECRET 13"');
	select parley.put_group('Retried', array['TOPSECRET 14'], 'Retried', 'TOPSECRET 15');
	select parley.set_queue_limits('Retried', ageing => '7 days');
	select parley.schedule('Nightly', 'Retried', 'TOPSECRET 12', every => '1 day'), parley.run_schedule('Nightly');
	select parley.put('Retried', 'TOPSECRET 10'::text);
	select parley.retry('Retried', message_id, 'TOPSECRET 11') from parley.peek_messages('Retried');
	insert into parley._p_message_claim (queue_id, position, claim, claimed_by, claimed_at, leased_until)
	select f.queue_id, max(f.position), gen_random_uuid(), 'TOPSECRET 9', now(), now() + interval '1 hour'
	from parley._p_message_failure as f group by f.queue_id;
`

// literals are arguments by name; what is not here is made from its type.
var literals = map[string]string{
	"queue": "'Answering'", "class": "'queue'", "object": "'Answering'", "permission": "'CONTROL'", "grantee": "'PUBLIC'",
	"owner": "'PUBLIC'", "from_service": "'//test/Asker'", "to_service": "'//test/Answerer'", "contract": "'//test/Work'",
	"message_type": "'//test/Request'", "body": "'x'", "bodies": "array['x']", "timeout": "0", "wait_seconds": "0", "top": "10",
	"contracts": "array['DEFAULT']", "message_types": "array['//test/Request']", "validation": "'NONE'",
	"conversation_handles": "array[(select literal from public.given)]", "from_position": "0",
	"authorization": "null", "broker_instance": "null", "related_conversation": "null", "related_conversation_group": "null",
	"conversation_group_id": "null", "level": "'INFORMATION'", "ignore": "'{}'", "patience": "null", "event": "'QUEUE_ACTIVATION'",
	"error_code": "1", "error_number": "1", "status": "false", "add_contracts": "null", "drop_contracts": "null", "url": "'https://example.com'",
	"address": "'LOCAL'", "fingerprint": "repeat('d4', 32)", "seconds": "1", "retry_ms": "null", "older_than": "'0'", "service_name": "null",
	"poison_action": "null", "activation_procedure": "null", "execute_as": "null", "events": "null", "max_events": "10", "encryption": "false", "lifetime": "null",
}

// literalsOf are arguments of single functions, where the name is not enough.
var literalsOf = map[string]map[string]string{
	"parley.alter_certificate":            {"name": "'Key'"},
	"parley.alter_message_type":           {"name": "'//test/Note'"},
	"parley.alter_remote_service_binding": {"name": "'Bound'", "with_user": "null"},
	"parley.alter_route":                  {"name": "'Far'", "mirror_address": "null"},
	"parley.alter_service":                {"name": "'//test/Answerer'", "queue": "null"},
	"parley.begin_dialog":                 {"lifetime": "600"},
	"parley.drop_certificate":             {"name": "'Key'"},
	"parley.drop_contract":                {"name": "'//test/Work'"},
	"parley.drop_message_type":            {"name": "'//test/Note'"},
	"parley.drop_remote_service_binding":  {"name": "'Bound'"},
	"parley.drop_route":                   {"name": "'Far'"},
	"parley.drop_service":                 {"name": "'//test/Answerer'"},
	"parley.move_conversation":            {"conversation_group_id": "gen_random_uuid()"},
	"parley.discard_message":              {"queue": "'Jobs'", "message_id": "1024"},
	"parley.edit_message":                 {"queue": "'Jobs'", "message_id": "1024"},
	"parley.peek_messages":                {"queue": "'Jobs'"},
	"parley.put":                          {"queue": "'Jobs'", "key": "null", "priority": "5", "deliver_at": "null"},
	"parley.put_batch":                    {"queue": "'Jobs'", "key": "null", "priority": "5", "deliver_at": "null"},
	"parley.retry_message":                {"queue": "'Jobs'", "message_id": "1024"},
	"parley.retry":                        {"queue": "'Jobs'", "message_id": "2048", "delay": "null"},
	"parley.fail":                         {"queue": "'Jobs'", "message_id": "2048"},
	"parley.schedule":                     {"name": "'Nightly'", "queue": "'Retried'", "cron": "null", "every": "'1 day'", "time_zone": "'UTC'", "missed": "'ONCE'", "from_service": "null", "to_service": "null", "contract": "'DEFAULT'", "message_type": "'DEFAULT'"},
	"parley.unschedule":                   {"name": "'Nightly'"},
	"parley.pause_schedule":               {"name": "'Nightly'"},
	"parley.resume_schedule":              {"name": "'Nightly'"},
	"parley.run_schedule":                 {"name": "'Nightly'"},
	"parley.put_each":                     {"queue": "'Jobs'", "keys": "null", "deduplication_keys": "null", "deliver_at": "null", "trace_context": "null"},
	"parley.cancel":                       {"queue": "'Jobs'", "message_id": "2048", "running": "true"},
	"parley.set_queue_limits":             {"queue": "'Jobs'", "concurrency": "1", "rate": "1", "per": "'1 second'", "ageing": "'1 second'"},
	"parley.put_unique":                   {"queue": "'Jobs'", "key": "null", "deliver_at": "null", "trace_context": "null"},
	"parley.put_group":                    {"queue": "'Jobs'", "then_queue": "'Jobs'", "keys": "null", "trace_context": "null"},
	"parley.done":                         {"queue": "'Jobs'", "message_id": "2048", "result": "null"},
	"parley.keep_finished":                {"queue": "'Jobs'", "keep": "'1 hour'"},
	"parley.claim":                        {"queue": "'Jobs'", "count": "1", "lease": "'1 minute'"},
	"parley.renew":                        {"queue": "'Jobs'", "lease": "'1 minute'", "progress": "null"},
	"parley.complete":                     {"queue": "'Jobs'", "result": "null"},
	"parley.give_back":                    {"queue": "'Jobs'", "delay": "null", "is_final": "false"},
	"parley.set_retry_policy":             {"attempts": "3"},
	"parley.create_queue":                 {"retry": "null"},
	"parley.alter_queue":                  {"retry": "null"},
	"parley.take":                         {"queue": "'Jobs'", "count": "10"},
	"parley.withdraw_message":             {"queue": "'Jobs'", "delayed_id": "1"},
	"parley_mail.grant_right":             {"name": "'SEND'", "role": "'public'"},
	"parley_mail.revoke_right":            {"name": "'SEND'", "role": "'public'"},
	"parley_mail._p_oldest_in":            {"queue": "'SUBMISSION/-/-'"},
	"parley._p_create_contract":           {"message_types": "'{\"DEFAULT\": \"ANY\"}'"},
	"parley._p_create_contract_of_text":   {"message_types": "'{\"DEFAULT\": \"ANY\"}'"},
	"parley._p_sees_definition":           {"queue_id": "public.watched()"},
	"parley._p_sees_poisoned":             {"queue_id": "public.watched()"},
	"parley._p_sees_set_aside":            {"queue_id": "public.watched()"},
}
