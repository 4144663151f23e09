package pages

// pageClaims are claims of the guides; those of the pages about what Parley is stand in claims_test.go.
var pageClaims = []claim{
	{"concepts/broker", "| `NONE` (default) |", `
		select public.holds_after('select parley.create_message_type(''//v'')',
			'select validation_desc = ''NONE'' from parley.service_message_types where name = ''//v''')`},
	{"concepts/broker", "| `EMPTY` | nothing | | `WELL_FORMED_XML` | XML, a document or a fragment, or nothing | | `VALID_XML` |", `
		select bool_and(public.number_of(format('select parley.create_message_type(%L, %L)', '//' || v, v)) = 'no error')
		from unnest(array['NONE', 'EMPTY', 'WELL_FORMED_XML', 'JSON']) as v`},
	{"concepts/broker", "An empty body is stored as none, that is as null.", `
		select public.holds_after('select parley.send(public.h(), body => '''')',
			'select bool_or(message_body is null) from parley.peek(''q'', 10)')`},
	{"concepts/broker", "A contract cannot be changed, only dropped.", `
		select not exists (select from pg_proc where pronamespace = 'parley'::regnamespace and proname like 'alter_contract%')`},
	{"concepts/broker", "a message type and a contract called `DEFAULT` are always there", `
		select exists (select from parley.service_message_types where name = 'DEFAULT') and exists (select from parley.service_contracts where name = 'DEFAULT')`},
	{"concepts/broker", "A service without contracts can only call others.", `
		select public.holds_after('select parley.send(parley.begin_dialog(''s'', ''asker''), body => ''x'')',
			'select bool_or(parley.body_text(message_body) like ''%>-8408<%'') from parley.peek(''q'', 10)')`},
	{"concepts/broker", "| SO | STARTED_OUTBOUND | begun, nothing sent yet |", `
		select public.holds_after('create table public.d as select parley.begin_dialog(''asker'', ''s'') as h',
			'select state = ''SO'' and state_desc = ''STARTED_OUTBOUND'' from parley.conversation_endpoints join public.d on h = conversation_handle')`},
	{"concepts/broker", "| CO | CONVERSING |", `
		select state = 'CO' and state_desc = 'CONVERSING' from parley.conversation_endpoints where conversation_handle = public.h()`},
	{"concepts/broker", "| DO | DISCONNECTED_OUTBOUND | this side has ended, the other has not | 8429 |", `
		select public.holds_after('select parley.end_conversation(public.h())', $$
			select bool_and(state = case is_initiator when 1 then 'DO' else 'DI' end
				and public.fails(8429, format('select parley.send(%L::uuid, body => ''x'')', conversation_handle)))
			from parley.conversation_endpoints where is_system = false$$)`},
	{"concepts/broker", "target: CD, gone after 30 minutes", `select tombstone_seconds = 1800 from parley._p_broker`},
	{"concepts/broker", "Codes above 0 are those that the other side gave to `end_conversation`.", `
		select public.fails(8402, 'select parley.end_conversation(public.h(), 0, ''no'')')`},
	{"guides/routing", "A new database has one route, `AutoCreatedLocal`", `select array_agg(name) = '{AutoCreatedLocal}' from parley.routes`},
	{"guides/routing", "| `lifetime` | for ever |", `select lifetime is null from parley.routes`},
	{"guides/routing", "9659 empty, 9660 longer than 256 characters, 9661 mirror without service and instance, 9662 instance without service", `
		select public.fails(9659, 'select parley.create_route(''r'', ''tcp://a:1'', '''')')
			and public.fails(9660, 'select parley.create_route(''r'', ''tcp://a:1'', repeat(''x'', 257))')
			and public.fails(9661, 'select parley.create_route(''r'', ''tcp://a:1'', mirror_address => ''tcp://b:1'')')
			and public.fails(9662, 'select parley.create_route(''r'', ''tcp://a:1'', broker_instance => gen_random_uuid()::text)')`},
	{"guides/routing", "9744 malformed address, 9745 `TRANSPORT` with a service, 9746 lifetime out of range", `
		select public.fails(9744, 'select parley.create_route(''r'', ''tcp://a'')')
			and public.fails(9745, 'select parley.create_route(''r'', ''TRANSPORT'', ''s'')')
			and public.fails(9746, 'select parley.create_route(''r'', ''tcp://a:1'', lifetime => 0)')`},
	{"guides/poison", "is the default of a new queue, and so is `poison_rollbacks => 5`", `
		select poison_action = 'SET_ASIDE' and poison_rollbacks = 5 from parley.service_queues where name = 'q'`},
	{"guides/activation", "is set aside after `max_attempts` (10; 0: never)", `
		select bool_or(pg_get_function_arguments(oid) like '%max_attempts integer DEFAULT 10,%') from pg_proc where pronamespace = 'parley'::regnamespace`},
	{"guides/poison", "refused with error 9617 until", `
		select public.holds_after('select parley.alter_queue(''q'', status => false)', 'select public.fails(9617, ''select parley.receive(''''q'''')'')')`},
	{"guides/operations", "if it is the argument (default 1000), call again", `
		select bool_or(pg_get_function_arguments(oid) like '%DEFAULT 1000%') from pg_proc where proname = 'fire_timers'`},
	{"guides/dialogs", "It is tried again after 4 seconds, twice as long each time, and 64 at most", `
		select array_agg(parley._p_back_off(n) order by n) = '{4s,8s,16s,32s,64s,64s,64s}'::interval[] from generate_series(1, 7) as n`},
	{"concepts/reliability", "tried again only after 64 seconds", `select parley._p_back_off(1000) = interval '64 s'`},
	{"guides/dialog-security", "true, the default", `
		select pg_get_function_arguments(oid) like '%encryption boolean DEFAULT true%' from pg_proc where proname = 'begin_dialog'`},
	{"guides/backup", "ten seconds unless `wait_seconds` says otherwise", `
		select bool_and(pg_get_function_arguments(oid) like '%wait_seconds integer DEFAULT 10%')
		from pg_proc where pronamespace = 'parley'::regnamespace and proname in ('disable_broker', 'enable_broker', 'new_broker', 'error_broker_conversations')`},
	{"guides/monitoring", "It ends after `seconds` (an hour) or `max_events` (a million).", `
		select pg_get_function_arguments(oid) like '%seconds integer DEFAULT 3600, max_events integer DEFAULT 1000000%' from pg_proc where proname = 'start_trace'`},
	{"guides/monitoring", "whoever was granted `ALTER TRACE` on the database", `
		select public.number_of('select parley.grant(''ALTER TRACE'', ''database'', null, ''public'')') = 'no error'`},
	{"guides/monitoring", "A counter called `/sec` is a total, with `cntr_type` 272696576", `
		select bool_and(cntr_type = 272696576) from parley.dm_os_performance_counters where counter_name like '%/sec'`},
	{"guides/monitoring", "The triggers that see messages are disabled", `
		select count(*) = 5 and bool_and(tgenabled = 'D') from pg_trigger where tgname like '\_p\_record%'`},
	{"mail/receiving", "| failed authentications of a source | 10 in 5 minutes (`authentication_lockout`)", `
		select default_value = '300' from parley_mail.setting_definitions where kind = 'receive connector' and setting = 'authentication_lockout'`},
	{"mail/migration", "| `hopcount_limit` | 50 | `max_hops` | 60 |", `
		select bool_and(default_value = '60') from parley_mail.setting_definitions where setting = 'max_hops'`},
	{"mail/migration", "| `maximal_queue_lifetime` | 5 days | `expiry` | 2 days |", `
		select default_value = to_jsonb(2 * 86400) from parley_mail.setting_definitions where setting = 'expiry'`},
	{"mail/migration", "`max_connections_per_domain` | 20 |", `
		select default_value = '20' from parley_mail.setting_definitions where setting = 'max_connections_per_domain'`},
	{"mail/delivery", "| `dsn_window` | 5 s |", `select default_value = '5' from parley_mail.setting_definitions where setting = 'dsn_window'`},
}
