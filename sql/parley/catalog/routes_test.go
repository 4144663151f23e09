package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

func TestNewDatabaseHasOneOrdinaryRoute(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	sqltest.Equal(b.Session, 1, `
		select count(*)
		from parley.routes
		where name = 'AutoCreatedLocal' and route_id = 65536 and principal_id = current_user::regrole and address = 'LOCAL' and not is_inbound
			and not is_expired and num_nulls(remote_service_name, broker_instance, lifetime, mirror_address) = 4`)
	sqltest.Equal(b.Session, 1, "select count(*) from parley.routes")
	b.Exec("select parley.alter_route('AutoCreatedLocal', 'tcp://hub:4022')")
	sqltest.Equal(b.Session, "tcp://hub:4022", "select address from parley.routes")
	b.Exec("select parley.drop_route('AutoCreatedLocal')")
	sqltest.Equal(b.Session, 0, "select count(*) from parley.routes")
}

func TestRouteIsShownAsItWasWritten(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	role := b.Role("owner")
	id := sqltest.Value[int](b.Session, `
		select parley.create_route('R', 'TCP://Far.Example.COM:4022/', '//Far', '7D6A4C9E-0000-4000-8000-0123456789AB', 90, 'tcp://[FE80::0001]:4023', "authorization" => $1)`, role)
	b.Afterwards("select parley.drop_route('R')")
	sqltest.Equal(b.Session, fmt.Sprintf("R %d %s //Far 7d6a4c9e-0000-4000-8000-0123456789ab TCP://Far.Example.COM:4022/ tcp://[FE80::0001]:4023 f f", id, role), `
		select format('%s %s %s %s %s %s %s %s %s', name, route_id, pg_get_userbyid(principal_id), remote_service_name, broker_instance, address, mirror_address,
			is_inbound, is_expired)
		from parley.routes where name = 'R'`)
	sqltest.Equal(b.Session, true, "select lifetime between now() + interval '60 seconds' and now() + interval '91 seconds' from parley.routes where name = 'R'")
}

func TestAddressesOfRoutes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	label := strings.Repeat("a", 63)
	for address, want := range map[string]string{
		"tcp://host:4022":                     "tcp://host:4022",
		"TCP://HOST:4022/":                    "tcp://host:4022",
		"tcp://NETBIOS_NAME:1":                "tcp://netbios_name:1",
		"tcp://db-1.example.com.:65535":       "tcp://db-1.example.com.:65535",
		"tcp://host:04022":                    "tcp://host:4022",
		"tcp://10.1.2.3:4022":                 "tcp://10.1.2.3:4022",
		"tcp://[2001:DB8:0:0::1]:4022":        "tcp://[2001:db8::1]:4022",
		"tcp://[::ffff:10.0.0.1]:4022":        "tcp://[::ffff:10.0.0.1]:4022",
		"tcp://[::1]:4022":                    "tcp://[::1]:4022",
		"tcp://" + label + "." + label + ":1": "tcp://" + label + "." + label + ":1",

		"":                             "",
		"LOCAL":                        "",
		"host:4022":                    "",
		"udp://host:4022":              "",
		"tcp://host":                   "",
		"tcp://host:":                  "",
		"tcp://host:0":                 "",
		"tcp://host:65536":             "",
		"tcp://host:4022/path":         "",
		"tcp://:4022":                  "",
		"tcp://ho st:4022":             "",
		" tcp://host:4022":             "",
		"tcp://host:4022\n":            "",
		"tcp://-host:4022":             "",
		"tcp://host-:4022":             "",
		"tcp://a..b:4022":              "",
		"tcp://" + label + "a:4022":    "",
		"tcp://10.1.2:4022":            "",
		"tcp://10.1.2.3.4:4022":        "",
		"tcp://10.1.2.256:4022":        "",
		"tcp://010.1.2.3:4022":         "",
		"tcp://::1:4022":               "",
		"tcp://[::1:4022":              "",
		"tcp://[1.2.3.4]:4022":         "",
		"tcp://[::1.2.3.4]:4022":       "",
		"tcp://[::]:4022":              "",
		"tcp://[2001:db8::1::2]:4022":  "",
		"tcp://[fe80::1%eth0]:4022":    "",
		"tcp://user@host:4022":         "",
		"tcp://host:4022,other:4022":   "",
		"tcp://host,other:4022":        "",
		"tcp://höst:4022":              "",
		"tcp://\u212aelvin:4022":       "", // The Kelvin sign, which lower() may take for a k.
		strings.Repeat("tcp://", 1000): "",
	} {
		sqltest.Equal(b.Session, want, "select coalesce(parley._p_network_address($1), '')", address)
	}
	for _, word := range []string{"local", "Local", "TRANSPORT", "transport"} {
		b.Exec("select parley.create_route($1, $1)", word)
	}
}

func TestAlterRouteChangesOnlyWhatIsGiven(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	const show = `
		select concat_ws(' ', address, remote_service_name, broker_instance, mirror_address, next_hop, rank, expires_at is not null)
		from parley._p_route where name = 'r'`
	b.Exec("select parley.create_route('r', 'LOCAL')")
	sqltest.Equal(b.Session, "LOCAL LOCAL 2 f", show)
	for _, step := range [][2]string{
		{"'Tcp://A:1'", "Tcp://A:1 tcp://a:1 3 f"},
		{"service_name => '//far'", "Tcp://A:1 //far tcp://a:1 3 f"},
		{"broker_instance => '" + sqltest.Other + "'", "Tcp://A:1 //far " + sqltest.Other + " tcp://a:1 3 f"},
		{"lifetime => 60", "Tcp://A:1 //far " + sqltest.Other + " tcp://a:1 3 t"},
		{"mirror_address => 'tcp://B:2/'", "Tcp://A:1 //far " + sqltest.Other + " tcp://B:2/ tcp://a:1,b:2 1 t"},
		{"'tcp://c:1'", "tcp://c:1 //far " + sqltest.Other + " tcp://B:2/ tcp://c:1,b:2 1 t"},
	} {
		b.Exec("select parley.alter_route('r', " + step[0] + ")")
		sqltest.Equal(b.Session, step[1], show)
	}
	// The check is of the route as it would be.
	b.Refuses(9743, "select parley.alter_route('r', 'LOCAL')")
	b.Refuses(9747, "select parley.alter_route('r', mirror_address => 'tcp://c:1')")
	b.Refuses(9662, "select parley.alter_route('r', service_name => 'SQL/ServiceBroker/BrokerConfiguration')")
	sqltest.Equal(b.Session, "tcp://c:1 //far "+sqltest.Other+" tcp://B:2/ tcp://c:1,b:2 1 t", show)
}

func TestExpiredRouteStaysAndCanBeRevived(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoutes(sqltest.Route{Address: "tcp://a:1", Service: sqltest.Far})
	b.Exec("select parley.alter_route('r0', lifetime => 2147483647)")
	if got, _ := b.FindRoute(sqltest.Far, ""); got.Address != "tcp://a:1" {
		t.Errorf("found %q before the route expires", got)
	}
	b.Exec("update parley._p_route set expires_at = clock_timestamp() where name = 'r0'")
	sqltest.Equal(b.Session, true, "select is_expired from parley.routes where name = 'r0'")
	if got, _ := b.FindRoute(sqltest.Far, ""); got.Address != "LOCAL" {
		t.Errorf("found %q after the route has expired", got)
	}
	// Another change does not bring it back.
	b.Exec("select parley.alter_route('r0', 'tcp://b:1')")
	if got, _ := b.FindRoute(sqltest.Far, ""); got.Address != "LOCAL" {
		t.Errorf("found %q after the address was changed", got)
	}
	b.Exec("select parley.alter_route('r0', lifetime => 60)")
	sqltest.Equal(b.Session, false, "select is_expired from parley.routes where name = 'r0'")
	if got, _ := b.FindRoute(sqltest.Far, ""); got.Address != "tcp://b:1" {
		t.Errorf("found %q after the route was revived", got)
	}
}

func TestRouteDefinitionIsPartOfItsTransaction(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	tx := b.Begin()
	tx.CreateRoutes(sqltest.Route{Address: "tcp://a:1", Service: sqltest.Far})
	if got, _ := tx.FindRoute(sqltest.Far, ""); got.Address != "tcp://a:1" {
		t.Errorf("found %q in the transaction", got)
	}
	if got, _ := b.FindRoute(sqltest.Far, ""); got.Address != "LOCAL" {
		t.Errorf("found %q beside the transaction", got)
	}
	tx.Rollback()
	sqltest.Equal(b.Session, 1, "select count(*) from parley.routes")
}

func TestInboundRoutesAreForAdministrators(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	role := b.Role("ordinary")
	b.Exec("select parley.create_route('in', 'tcp://a:1', is_inbound => true, \"authorization\" => $1)", role)
	b.Afterwards("select parley.alter_authorization('route', 'in', current_user)")
	b.Grant(sqltest.RightTo("ALTER ANY ROUTE", "database", ""), role)
	s := b.As(role)
	s.RequireAllowed("select parley.create_route('out', 'tcp://a:1')")
	for _, statement := range []string{
		"select parley.create_route('other', 'tcp://a:1', is_inbound => true)",
		"select parley.alter_route('in', 'tcp://b:1')",
		"select parley.drop_route('in')",
	} {
		s.Refuses(15151, statement)
	}
	// And they lead nowhere from here.
	b.Exec("select parley.alter_route('in', service_name => '" + sqltest.Far + "')")
	if got, _ := b.FindRoute(sqltest.Far, ""); got.Address != "LOCAL" {
		t.Errorf("found %q by an inbound route", got)
	}
}

func TestRouteOwnersAreShownByDiagnosisWhenTheyAreGone(t *testing.T) {
	t.Parallel()
	b := sqltest.NewBroker(t)
	b.Exec("update parley._p_route set owner = 1")
	sqltest.Equal(b.Session, "AutoCreatedLocal", "select object_name from parley.diagnose_configuration() where code = 'owner-missing' and object_kind = 'route'")
	b.Exec(sqltest.Value[string](b.Session, "select cure from parley.diagnose_configuration() where code = 'owner-missing'"))
	sqltest.Equal(b.Session, 0, "select count(*) from parley.diagnose_configuration()")
}

// A service to which a route leads away from here is not missing here.
func TestDiagnosisOfADialogFollowsTheRoutes(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	const pair = "parley.diagnose_configuration('//test/Asker', '//far/Service', '//test/Work')"
	b.RequireFinding(pair, "service-missing")
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	b.Listen()
	b.Exec("select parley.trust_peer($1, 'far', address => 'tcp://far:4022')", sqltest.OneKey)
	if found := b.Findings(pair); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	b.Exec("select parley.begin_dialog('//test/Asker', '//far/Service')")
	if found := b.Findings(sqltest.Configuration); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	// The other side: its services are here, and the initiator is not.
	const back = "parley.diagnose_configuration('//far/Service', '//test/Answerer', '//test/Work')"
	b.RequireFinding(back, "send-not-granted")
	b.Exec("select parley.grant('SEND', 'service', '//test/Answerer', 'public')")
	if found := b.Findings(back); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	b.Exec("select parley.alter_service('//test/Answerer', drop_contracts => array['//test/Work'])")
	b.RequireFinding(back, "contract-not-accepted")
	// The one that would be asked for a route may know.
	b.Exec("select parley.create_route('configuration', 'tcp://far:4022', $1)", sqltest.ConfigurationService)
	b.RequireNoFinding("parley.diagnose_configuration('//test/Asker', '//unknown/Service')", "service-missing")
}

func TestDiagnosisNamesTheServiceThatMayBeMeant(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.Exec("select parley.drop_route('AutoCreatedLocal')")
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	f := b.RequireFinding("parley.diagnose_configuration(to_service => '//FAR/service')", "route-missing")
	if !strings.Contains(f.Cause, `Did you mean "//far/Service"?`) {
		t.Errorf("the cause is %q", f.Cause)
	}
}

// A conversation that waits for another session's answer is reported as such.
func TestDiagnosisReportsWhatAMessageWaitsFor(t *testing.T) {
	t.Parallel()
	b := sqltest.NewConfigured(t)
	handle := b.DialogWithFar()
	b.Send(handle, sqltest.Request, "x")
	if f := b.RequireFinding(sqltest.Runtime, "undeliverable"); !strings.Contains(f.Cause, "(9770)") {
		t.Errorf("found %+v", f)
	}
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	if f := b.RequireFinding(sqltest.Runtime, "undeliverable"); !strings.Contains(f.Cause, "was asked for a remote service binding, and has not answered (9770)") ||
		!strings.Contains(f.Cure, "create_remote_service_binding('//far/Service', '//far/Service'") {
		t.Errorf("found %+v", f)
	}
	b.Exec("select parley.drop_route('configuration')")
	b.Exec("select parley.fire_timers()")
	b.RequireNoFinding(sqltest.Runtime, "undeliverable")
	b.Exec(`
		select parley._p_park(e.endpoint_id, e.destination_id, 'The queue "There" is off.')
		from parley._p_endpoint as e
		where e.far_service = '//far/Service'`)
	if f := b.RequireFinding(sqltest.Runtime, "undeliverable"); !strings.Contains(f.Cause, `The queue "There" is off.`) {
		t.Errorf("found %+v", f)
	}
}

func TestMessagesForOtherDatabasesNeedADaemon(t *testing.T) {
	t.Parallel()
	b := sqltest.NewWorld(t)
	b.CreateRoute("far", "tcp://far:4022", sqltest.Far)
	b.RequireNoFinding(sqltest.Runtime, "transmission-backlog")
	b.Send(b.DialogWithFar(), sqltest.Request, "x")
	f := b.RequireFinding(sqltest.Runtime, "transmission-backlog")
	if f.ObjectName != "tcp://far:4022" || f.Cure != "parley serve" || !f.HasSince {
		t.Errorf("found %+v", f)
	}
	b.Exec("update parley._p_leader set leader = 'test'")
	b.Exec("select setval('parley._p_leader_lease', (extract(epoch from clock_timestamp()) * 1000000)::bigint + 30000000)")
	if f := b.RequireFinding(sqltest.Runtime, "transmission-backlog"); f.Cure == "parley serve" {
		t.Errorf("found %+v", f)
	}
	b.Exec("select parley.drop_route('far')")
	b.RequireNoFinding(sqltest.Runtime, "transmission-backlog")
}
