package definitions_test

import (
	"strings"
	"testing"

	"github.com/parley-broker/parley/internal/sqltest"
)

// Applying present definitions changes nothing, and an export is the same as the definitions that were applied.
func TestDefinitionsAreTheSameAfterExport(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	sqltest.Equal(f.Session, 0, "select count(*)::integer from parley_flow.apply((select parley_flow.export()))")
	exported := sqltest.Value[string](f.Session, "select parley_flow.export()::text")
	other := sqltest.NewBroker(t)
	other.Exec("select parley_flow.apply($1::jsonb)", exported)
	sqltest.Equal(other.Session, exported, "select parley_flow.export()::text")
}

func TestApplyGivesADifferenceAndADryRunChangesNothing(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	change := `{"send port": {"ERP": {"application": "Orders", "host": "Send", "adapter": "TCP", "address": "other:9000", "retry_policy": "twice",
		"filter": [[{"property": "MessageType", "operator": "=", "value": "urn:s#Order"}]]}}, "application": {"More": {}}}`
	before := sqltest.Value[string](f.Session, "select parley_flow.export()::text")
	for range 2 {
		sqltest.Equal(f.Session, `application More create , send port ERP alter address "erp:9000" "other:9000"`, `
			select string_agg(concat_ws(' ', kind, name, action, coalesce(setting, ''), old_value, case when setting is not null then new_value end), ', ')
			from parley_flow.apply($1::jsonb, dry_run => true)`, change)
		sqltest.Equal(f.Session, before, "select parley_flow.export()::text")
	}
	sqltest.Equal(f.Session, 2, "select count(*)::integer from parley_flow.apply($1::jsonb)", change)
	sqltest.Equal(f.Session, "other:9000", "select address from parley_flow.send_ports where name = 'ERP'")
}

// All faults are given at once, each with its place and a remedy, and nothing is changed.
func TestFaultsOfDefinitionsHaveTheirPlace(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	port := func(settings string) string {
		return `{"send port": {"X": {"application": "Orders", "host": "Send", "adapter": "FILE", "address": "/x"` + settings + `}}}`
	}
	for document, want := range map[string]string{
		`[]`:                                                      " document",
		`{"send ports": {}}`:                                      "/send ports kind",
		`{"host": []}`:                                            "/host objects",
		`{"host": {"H": 7}}`:                                      "/host/H settings",
		`{"host": {"H": {}}}`:                                     "/host/H missing",
		`{"host": {"H": {"role": "no such"}}}`:                    "/host/H/role role",
		`{"host": {" ": {"role": "x"}}}`:                          "/host/  name, /host/ /role role",
		port(`, "retries": 3`):                                    "/send port/X/retries setting",
		port(`, "priority": 11`):                                  "/send port/X/priority value",
		port(`, "priority": 1.5`):                                 "/send port/X/priority value",
		port(`, "state": "started"`):                              "/send port/X/state value",
		port(`, "pipeline": "XMLReceive"`):                        "/send port/X/pipeline direction",
		port(`, "pipeline": "Nothing"`):                           "/send port/X/pipeline reference",
		port(`, "retry_policy": "none"`):                          "/send port/X/retry_policy reference",
		port(`, "order_key": "urn:p#Po"`):                         "/send port/X/order_key order key",
		port(`, "ordered": true, "order_key": "urn:p#No"`):        "/send port/X/order_key property",
		port(`, "settings": {"user": "a", "Password": "geheim"}`): "/send port/X/settings/Password secret setting",
		port(`, "settings": {"deep": [{"api_key": "geheim"}]}`):   "/send port/X/settings/deep/0/api_key secret setting",
		port(`, "settings": {"headers": {"Proxy-Authorization": "geheim"}}`): "/send port/X/settings/headers/Proxy-Authorization secret setting",
		port(`, "settings": {"headers": {"cookie": "geheim"}}`):              "/send port/X/settings/headers/cookie secret setting",
		port(`, "secrets": {"password": "geheim"}`):                          "/send port/X/secrets/password secret",
		`{"hosts": {}, "host": [], "receive port": {"X": 1, "Y": {}}, "send port": {"X": {"application": "Orders", "host": "New", "adapter": "TCP",
			"address": 7}}}`: "/host objects, /hosts kind, /receive port/X settings, /receive port/Y missing, /send port/X/address value",
		port(`, "filter": [[]]`): "/send port/X/filter/0 group",
		port(`, "filter": [[{"property": "urn:p#No", "operator": "exists"}]]`):                                              "/send port/X/filter/0/0/property property",
		port(`, "filter": [[{"property": "urn:p#Po", "operator": "like", "value": 1}]]`):                                    "/send port/X/filter/0/0/operator operator",
		port(`, "filter": [[{"property": "urn:p#Amount", "operator": ">", "value": "much"}]]`):                              "/send port/X/filter/0/0/value operand",
		port(`, "filter": [[{"property": "urn:p#Po", "operator": "="}]]`):                                                   "/send port/X/filter/0/0/value operand",
		port(`, "filter": [[{"property": "urn:p#Po", "operator": "in", "value": []}]]`):                                     "/send port/X/filter/0/0/value operand",
		port(`, "filter": [[{"property": "urn:p#Po", "operator": "exists", "value": 1}]]`):                                  "/send port/X/filter/0/0/value operand",
		port(`, "filter": [[{"property": "urn:p#Po", "operator": "=", "value": 1, "v": 2}]]`):                               "/send port/X/filter/0/0/v predicate key",
		port(`, "filter": [[{"property": "ReceivedTime", "operator": "exists"}]]`):                                          "/send port/X/filter/0/0/property unpromoted",
		`{"pipeline": {"P": {"application": "Orders", "direction": "receive", "stages": {"assemble": []}}}}`:                "/pipeline/P/stages/assemble stage",
		`{"pipeline": {"P": {"application": "Orders", "direction": "send", "stages": {"assemble": [{"name": 1}]}}}}`:        "/pipeline/P/stages/assemble/0 component",
		`{"property schema": {"urn:q": {"application": "Orders", "properties": {"A": {"type": "date"}}}}}`:                  "/property schema/urn:q/properties/A/type value",
		`{"message type": {"T": {"application": "Orders", "promotions": {"urn:p#No": "/a"}}}}`:                              "/message type/T/promotions/urn:p#No property",
		`{"message type": {"T": {"application": "Orders", "promotions": {"MessageType": "/a"}}}}`:                           "/message type/T/promotions/MessageType unpromoted",
		`{"retry policy": {"R": {"interval": "soon"}}}`:                                                                     "/retry policy/R/interval value",
		`{"send port group": {"G": {"application": "Orders", "ports": ["ERP", "No"]}}}`:                                     "/send port group/G/ports/1 reference",
		`{"receive location": {"L": {"receive_port": "In", "host": "Receive", "adapter": "A", "address": "ftp://a:b@c/"}}}`: "/receive location/L/address secret address",
	} {
		got := sqltest.Value[*string](f.Session, `
			select string_agg(parley_flow._p_pointer(path) || ' ' || situation, ', ') from parley_flow.check_definitions($1::jsonb)`, document)
		if got == nil || *got != want && !strings.HasPrefix(*got, want) {
			t.Errorf("%s: got faults %v, want %s", document, deref(got), want)
		}
		refusal := f.RefusesFlow(3, "select parley_flow.apply($1::jsonb)", document)
		if !strings.Contains(refusal.Detail, strings.SplitN(strings.TrimSpace(want), " ", 2)[0][:1]) {
			t.Errorf("%s: DETAIL is %q", document, refusal.Detail)
		}
		for _, hidden := range []string{"geheim"} {
			if strings.Contains(refusal.Detail+refusal.Message, hidden) {
				t.Errorf("%s: the error shows the secret: %s", document, refusal.Detail)
			}
		}
	}
	if got := sqltest.Value[int](f.Session, `select count(*)::integer from parley_flow.check_definitions(
		'{"host": {"A": {}, "B": {"x": 1}}, "send port": {"C": {}}}')`); got < 6 {
		t.Errorf("%d faults were given, want all", got)
	}
}

func deref(s *string) string {
	if s == nil {
		return "(none)"
	}
	return *s
}

// Pruning drops what a document leaves out of the applications that it names, and nothing of others.
func TestPruneDropsWhatADocumentLeavesOut(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec(`select parley_flow.apply('{"application": {"Other": {}}, "receive port": {"Other in": {"application": "Other"}}}')`)
	f.Exec(`select parley_flow.apply(jsonb_set(parley_flow.export(), '{send port}', (parley_flow.export() -> 'send port') - 'Big'), prune => true)`)
	sqltest.Equal(f.Session, "ERP", "select string_agg(name, ' ' order by name) from parley_flow.send_ports")
	sqltest.Equal(f.Session, 1, "select count(*)::integer from parley_flow.definitions where name = 'Other in'")
	// Its subscription is gone with it.
	f.PublishFlow("urn:s#Order", `{"urn:p#Amount": 5000}`)
	if got := f.Tx.ClaimFlow("Send"); len(got) != 1 || got[0].Port != "ERP" {
		t.Errorf("claimed %+v", got)
	}
}

// A port for which messages wait keeps its host and its order until they are gone.
func TestPortForWhichMessagesWaitCannotGo(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.PublishFlow("urn:s#Order", `{}`)
	without := `jsonb_set(parley_flow.export(), '{send port}', (parley_flow.export() -> 'send port') - 'ERP')`
	f.RefusesFlow(3, "select parley_flow.apply("+without+", prune => true)")
	f.RefusesFlow(3, `select parley_flow.apply(jsonb_set(parley_flow.export(), '{send port,ERP,ordered}', 'true'))`)
	f.Exec(`select parley_flow.apply(jsonb_set(parley_flow.export(), '{send port,ERP,address}', '"elsewhere"'))`)
	f.Tx.CompleteFlow("Send", f.Tx.ClaimFlow("Send")...)
	f.Exec(`select parley_flow.apply(jsonb_set(parley_flow.export(), '{send port,ERP,ordered}', 'true'))`)
	f.Exec("select parley_flow.apply(" + without + ", prune => true)")
}

// Each change of a pipeline is a version of its own, and the newest is what hosts get.
func TestPipelinesHaveVersions(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	apply := func(component string) {
		f.Exec(`select parley_flow.apply(jsonb_build_object('pipeline', jsonb_build_object('P', jsonb_build_object('application', 'Orders',
			'direction', 'receive', 'stages', jsonb_build_object('decode', jsonb_build_array(jsonb_build_object('component', $1::text)))))))`, component)
	}
	apply("a")
	apply("a")
	apply("b")
	sqltest.Equal(f.Rx, "2 b", `select concat_ws(' ', c #>> '{pipelines,P,version}', c #>> '{pipelines,P,stages,decode,0,component}')
		from parley_flow._p_configuration('Receive') as c`)
	sqltest.Equal(f.Session, "1 2", "select string_agg(version::text, ' ' order by version) from parley_flow._p_pipeline_version where name = 'P'")
}

// States stay where a document does not name them, and are set where it does.
func TestStatesStayUnlessTheyAreNamed(t *testing.T) {
	t.Parallel()
	f := sqltest.NewFlow(t)
	f.Exec("select parley_flow.stop('ERP'), parley_flow.disable('Folder')")
	f.Exec("select parley_flow.apply(parley_flow.export() #- '{send port,ERP,state}' #- '{receive location,Folder,enabled}')")
	sqltest.Equal(f.Session, "Stopped false", "select s.state || ' ' || l.is_enabled from parley_flow.send_ports as s, parley_flow.receive_locations as l where s.name = 'ERP' and l.name = 'Folder'")
	f.Exec("select parley_flow.apply(jsonb_set(parley_flow.export(), '{send port,ERP,state}', '\"Started\"'))")
	sqltest.Equal(f.Session, "Started", "select state from parley_flow.send_ports where name = 'ERP'")
}
