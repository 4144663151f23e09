package sqltest

// Scene is the scene of the refused statements, in the fixture of two services: conversations in each state, named in table c.
const Scene = `
	create table public.c (name text primary key, handle uuid);
	grant select on public.c to public;
	create function public.h(name text) returns uuid language sql stable as 'select c.handle from public.c where c.name = $1';
	create function public.yes(body text) returns boolean language sql as 'select true';
	create function public.fit() returns void language sql as '';
	create procedure public.read() language sql as '';
	create procedure public.greedy(x integer) language sql as '';

	select parley.create_queue('Elsewhere');
	select parley.create_queue('Off', status => false, retention => true);
	select parley.create_service('//test/Elsewhere', 'Elsewhere', array['DEFAULT']);
	select parley.create_service('//test/Off', 'Off');
	select parley.create_broker_priority('Rank', '//test/Work', '//test/Asker');
	select parley.create_queue('Procedure', activation_procedure => 'public.read', execute_as => 'OWNER', max_queue_readers => 1);
	select parley.create_queue('Program');
	select parley.create_program_activation('Program', array['/opt/reader']);
	select parley.create_queue('Simple', kind => 'SIMPLE');
	select parley.create_queue('Event');
	select parley.create_service('//test/Listener', 'Event', array['http://schemas.microsoft.com/SQL/Notifications/PostEventNotification']);
	select parley.create_event_notification('activated', 'Event', 'QUEUE_ACTIVATION', '//test/Listener');
	select parley.create_contract('//test/Free', '{"//test/Note": "ANY"}');
	select parley.trust_peer(repeat('a1', 32), 'friend');
	select parley.trust_peer(repeat('b2', 32), 'enemy');
	select parley.revoke_peer('enemy');

	insert into public.c
	select n.name, parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work', lifetime => 600)
	from unnest(array['new', 'talking', 'ended', 'failed', 'closed']) as n (name);
	insert into public.c select 'from off', parley.begin_dialog('//test/Off', '//test/Answerer');
	insert into public.c select 'elsewhere', parley.begin_dialog('//test/Elsewhere', '//test/Answerer');
	select parley.send(handle, '//test/Request', 'x') from public.c where name in ('talking', 'ended', 'failed', 'closed');
	insert into public.c
	select 'far ' || c.name, f.conversation_handle
	from public.c
	join parley.conversation_endpoints as e on e.conversation_handle = c.handle
	join parley.conversation_endpoints as f on f.conversation_id = e.conversation_id and not f.is_initiator::integer::boolean
	where c.name in ('talking', 'ended', 'failed', 'closed');
	select parley.end_conversation(public.h('ended'));
	select parley.end_conversation(public.h('far failed'), 1, 'no');
	select parley.end_conversation(public.h('closed'));
	select parley.end_conversation(public.h('far closed'));
`

// FullQueue fills the queue of the target.
const FullQueue = `
	do $$ begin
		perform parley.send(parley.begin_dialog('//test/Asker', '//test/Answerer', '//test/Work'), '//test/Request', 'x');
		perform parley.set_queue_quota('Answering', messages => 1);
	end $$`

// QuotaOf sets the quota of the answering queue; arguments are those behind its name.
func (s Session) QuotaOf(arguments string) {
	s.Helper()
	s.Exec("select parley.set_queue_quota('Answering', " + arguments + ")")
}
