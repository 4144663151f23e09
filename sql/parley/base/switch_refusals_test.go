package base_test

// Switching what cannot be switched.
var switchRefusals = []refusal{
	{number: 5061, because: "somebody sends", statement: `select parley._p_raise_in_use()`},
	{number: 8402, because: "wait less than no time", statement: `select parley.disable_broker(-1)`},
	{number: 8402, because: "wait the least integer", statement: `select parley.enable_broker(wait_seconds => -2147483648)`},
	{number: 8402, because: "wait longer than a lock can be waited for", statement: `select parley.new_broker(2147484)`},
	{number: 9772, because: "original is there", statement: `
		update parley._p_broker set database_oid = (select oid from pg_database where datname = 'postgres'); select parley.enable_broker()`},
	{number: 9775, because: "read-only", statement: `set transaction read only; select parley.new_broker()`},
	{number: 15151, because: "enable", statement: `select parley.enable_broker()`, ordinary: true},
	{number: 15151, because: "disable", statement: `select parley.disable_broker()`, ordinary: true},
	{number: 15151, because: "new", statement: `select parley.new_broker()`, ordinary: true},
	{number: 15151, because: "error", statement: `select parley.error_broker_conversations()`, ordinary: true},
}
