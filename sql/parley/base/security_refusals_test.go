package base_test

// Definitions of security that cannot be right.
var securityRefusals = []refusal{
	{number: 229, because: "may not create certificates", ordinary: true, statement: `select parley.create_certificate('New', '\x00')`},
	{number: 229, because: "may not create bindings", ordinary: true, statement: `select parley.create_remote_service_binding('New', '//far', 'nobody')`},
	{number: 2714, because: "binding exists", statement: `
		select parley.create_remote_service_binding('Twice', '//far/1', current_user), parley.create_remote_service_binding('Twice', '//far/2', current_user)`},
	{number: 8412, because: "nothing bound", statement: `select parley.create_remote_service_binding('New', '', current_user)`},
	{number: 8493, because: "binding unchanged", statement: `
		select parley.create_remote_service_binding('New', '//far', current_user); select parley.alter_remote_service_binding('New')`},
	{number: 9609, because: "binding without a name", statement: `select parley.create_remote_service_binding('', '//far', current_user)`},
	{number: 9611, because: "nobody to bind to", statement: `select parley.create_remote_service_binding('New', '//far', 'nobody at all')`},
	{number: 9619, because: "service is bound", statement: `
		select parley.create_remote_service_binding('One', '//far', current_user), parley.create_remote_service_binding('Two', '//far', current_user)`},
	{number: 15151, because: "no such binding", statement: `select parley.drop_remote_service_binding('New')`},
	{number: 15151, because: "no such certificate", statement: `select parley.alter_certificate('New', active_for_begin_dialog => false)`},
	{number: 15151, because: "no such certificate to drop", statement: `select parley.drop_certificate('New')`},
	{number: 15297, because: "no certificate", statement: `select parley.create_certificate('New', 'PARLEYC1')`},
	{number: 15297, because: "never valid", statement: `select parley.create_certificate('New', convert_to('PARLEYC1' || repeat('x', 100), 'UTF8'))`},
	{number: 28083, because: "everybody", statement: `select parley.create_remote_service_binding('New', '//far', 'public')`},
	{number: 28083, because: "role of the server", statement: `select parley.create_remote_service_binding('New', '//far', 'pg_monitor')`},
}
