package base_test

// Routes that cannot be.
var routeRefusals = []refusal{
	{number: 2714, because: "route exists", statement: `select parley.create_route('AutoCreatedLocal', 'LOCAL')`},
	{number: 8413, because: "instance of route malformed", statement: `select parley.create_route('r', 'LOCAL', '//far', 'no guid')`},
	{number: 8413, because: "instance of route over 256 bytes", statement: `select parley.create_route('r', 'LOCAL', '//far', repeat('a', 257))`},
	{number: 8493, because: "nothing to change in route", statement: `select parley.alter_route('AutoCreatedLocal')`},
	{number: 9609, because: "route without name", statement: `select parley.create_route('', 'LOCAL')`},
	{number: 9659, because: "address empty", statement: `select parley.create_route('r', '')`},
	{number: 9659, because: "address missing", statement: `select parley.create_route('r', null)`},
	{number: 9659, because: "service of route empty", statement: `select parley.create_route('r', 'LOCAL', '')`},
	{number: 9659, because: "mirror empty", statement: `select parley.create_route('r', 'tcp://a:1', '//far', gen_random_uuid()::text, mirror_address => '')`},
	{number: 9659, because: "address altered to nothing", statement: `select parley.alter_route('AutoCreatedLocal', '')`},
	{number: 9660, because: "address of 257 characters", statement: `select parley.create_route('r', 'tcp://' || repeat('a', 246) || ':4022')`},
	{number: 9660, because: "service of 257 characters", statement: `select parley.create_route('r', 'LOCAL', repeat('a', 257))`},
	{number: 9661, because: "mirror without instance", statement: `select parley.create_route('r', 'tcp://a:1', '//far', mirror_address => 'tcp://b:1')`},
	{number: 9661, because: "mirror without service", statement: `select parley.create_route('r', 'tcp://a:1', mirror_address => 'tcp://b:1')`},
	{number: 9662, because: "instance without service", statement: `select parley.create_route('r', 'LOCAL', null, gen_random_uuid()::text)`},
	{number: 9662, because: "instance of broker configuration", statement: `
		select parley.create_route('r', 'LOCAL', 'SQL/ServiceBroker/BrokerConfiguration', gen_random_uuid()::text)`},
	{number: 9662, because: "instance altered in without service", statement: `select parley.alter_route('AutoCreatedLocal', broker_instance => 'current database')`},
	{number: 9743, because: "mirror of LOCAL", statement: `select parley.create_route('r', 'LOCAL', '//far', gen_random_uuid()::text, mirror_address => 'tcp://b:1')`},
	{number: 9743, because: "LOCAL as mirror", statement: `select parley.create_route('r', 'tcp://b:1', '//far', gen_random_uuid()::text, mirror_address => 'local')`},
	{number: 9743, because: "TRANSPORT as mirror", statement: `
		select parley.create_route('r', 'tcp://b:1', '//far', gen_random_uuid()::text, mirror_address => 'TRANSPORT')`},
	{number: 9744, because: "no address", statement: `select parley.create_route('r', 'far away')`},
	{number: 9744, because: "all IPv4 addresses of a machine", statement: `select parley.create_route('r', 'tcp://0.0.0.0:4022')`},
	{number: 9744, because: "all addresses of a machine", statement: `select parley.create_route('r', 'tcp://[::]:4022')`},
	{number: 9744, because: "mirror no address", statement: `select parley.create_route('r', 'tcp://a:1', '//far', gen_random_uuid()::text, mirror_address => 'b')`},
	{number: 9745, because: "TRANSPORT with a service", statement: `select parley.create_route('r', 'Transport', '//far')`},
	{number: 9745, because: "service altered into TRANSPORT", statement: `
		select parley.create_route('r', 'TRANSPORT'); select parley.alter_route('r', service_name => '//far')`},
	{number: 9746, because: "lifetime of nothing", statement: `select parley.create_route('r', 'LOCAL', lifetime => 0)`},
	{number: 9746, because: "lifetime negative", statement: `select parley.alter_route('AutoCreatedLocal', lifetime => -1)`},
	{number: 9747, because: "mirror at the same address", statement: `
		select parley.create_route('r', 'TCP://Host:04022/', '//far', gen_random_uuid()::text, mirror_address => 'tcp://host:4022')`},
	{number: 15151, because: "no such route to alter", statement: `select parley.alter_route('autocreatedlocal', 'LOCAL')`},
	{number: 15151, because: "no such route to drop", statement: `select parley.drop_route('r')`},
	{number: 15151, because: "no such owner of route", statement: `select parley.create_route('r', 'LOCAL', "authorization" => 'nobody at all')`},
	{number: 15151, because: "inbound route", statement: `select parley.create_route('r', 'LOCAL', is_inbound => true)`, ordinary: true},
	{number: 229, because: "create route", statement: `select parley.create_route('r', 'LOCAL')`, ordinary: true},
	{number: 229, because: "alter route", statement: `select parley.alter_route('AutoCreatedLocal', lifetime => 1)`, ordinary: true},
	{number: 229, because: "drop route", statement: `select parley.drop_route('AutoCreatedLocal')`, ordinary: true},
}
